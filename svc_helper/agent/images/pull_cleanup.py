"""What pulls leave in the host's temporary directory when Podman itself was killed.

A downloaded layer lies there until it is unpacked, in a directory of the
user's own that nobody comes back for. After a day nothing works with it.
"""

from __future__ import annotations

import os
import time

DIRECTORY = "/var/tmp"  # noqa: S108  Podman's own choice; only the user's own directories are touched
PREFIX = "storage"
OLD_S = 24 * 3600


def sweep(directory: str = DIRECTORY) -> None:
    """Remove the user's own old ones; a link is never followed."""
    old = time.time() - OLD_S
    try:
        with os.scandir(directory) as entries:
            found = [entry.path for entry in entries if _is_left(entry, old)]
    except OSError:
        return
    if found:
        import shutil  # seldom needed, and it costs every pull else

        for path in found:
            shutil.rmtree(path, ignore_errors=True)


def _is_left(entry: os.DirEntry[str], old: float) -> bool:
    """Whether it is a directory of ours in which nothing has come or gone for so long."""
    suffix = entry.name.removeprefix(PREFIX)
    if suffix == entry.name or not suffix.isdecimal():
        return False
    try:
        status = entry.stat(follow_symlinks=False)
        if not entry.is_dir(follow_symlinks=False) or status.st_uid != os.getuid():
            return False
        with os.scandir(entry.path) as inside:
            times = [one.stat(follow_symlinks=False).st_mtime for one in inside]
    except OSError:
        return False
    return max([status.st_mtime, *times]) < old
