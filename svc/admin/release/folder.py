"""Root's folder of updates, `update` in SVC_STATE_DIR: the download, and where it is tried out.

What an interrupted run has left is removed by the next one, but for the download that it goes on with.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

from svc.admin.backup.snapshot import SPARED_FOR_SERVICE
from svc.admin.backup.target import size
from svc.errors import HostRefused, OperationInProgress, StorageFull

NAME = "update"
ENDING_S, RETRY_S = 5.0, 0.05  # for what an interrupted run has started
MODE = 0o711  # the account of the service tries the new program out below it


@contextmanager
def alone(state_dir: str) -> Iterator[str]:
    """The folder's path, for the one apply at a time; raises OperationInProgress."""
    path = os.path.join(state_dir, NAME)
    try:
        os.makedirs(path, MODE, exist_ok=True)  # never readable: whoever opens it could hold its lock
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise HostRefused(
            f"{path} cannot be used: {error.strerror}", hint="sudo svc admin doctor --repair"
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperationInProgress(
                "another `svc admin update apply` is running; this one has not begun",
                hint="sudo svc admin update status",
            ) from None
        os.fchown(descriptor, os.geteuid(), os.getegid())
        os.fchmod(descriptor, MODE)
        yield path
    finally:
        os.close(descriptor)


def clean(path: str, kept: str = "") -> None:
    """Remove everything in the folder but that name; what others own there is not followed.

    The processes of a killed run may take a moment to end, and write until then. Raises HostRefused.
    """
    deadline = time.monotonic() + ENDING_S
    while True:
        try:
            for entry in os.scandir(path):
                if entry.name != kept:
                    _remove(entry)
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise HostRefused(
                    f"{path} cannot be emptied: {error.filename}: {error.strerror}",
                    hint="sudo svc admin update apply   (when that is mended)",
                ) from None
            time.sleep(RETRY_S)


def _remove(entry: os.DirEntry[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        shutil.rmtree(entry.path)
    else:
        os.unlink(entry.path)


def require_room(path: str, needed: int) -> None:
    """Raise StorageFull unless so many bytes fit, with what the service needs left over."""
    status = os.statvfs(path)
    room = status.f_bavail * status.f_frsize
    if room < needed + SPARED_FOR_SERVICE:
        raise StorageFull(
            f"not enough room in {path}: {size(needed)} are needed and {size(SPARED_FOR_SERVICE)} must stay"
            f" free, {size(room)} are free",
            hint=f"df -h {path}",
        )
