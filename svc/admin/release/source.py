"""Where releases come from: a directory, or an https URL that a process without privileges asks.

Root opens the files that are written, and checks what is in them when nobody can write any more.
"""

from __future__ import annotations

import errno
import fcntl
import os
from functools import partial
from typing import Any

from svc.admin.backup.snapshot_check import sha256_of
from svc.admin.release import fetch, signed
from svc.admin.release.folder import require_room
from svc.admin.release.signed import Package
from svc.commandline.local_files import open_regular
from svc.errors import FileRefused, HostRefused, ReleaseInvalid, ReleaseUnavailable, SvcError
from svc.host.owner import Owner, run_as

PART = 1024 * 1024
MANIFEST_S = 120.0  # for the process that asks: it ends by itself before
DOWNLOAD_S = 86400.0  # of a package over a slow line: its rate is bounded below
SETTING = "sudo editor /etc/svc/svc.env   (SVC_UPDATE_SOURCE: a directory or an https:// URL)"


class Source:
    """A source of releases; `worker` is the account that asks a server."""

    def __init__(self, place: str, worker: Owner) -> None:
        if not place:
            raise HostRefused("no source of releases is set", hint=SETTING)
        self.place = place.rstrip("/") or "/"
        self.worker = worker
        self.is_remote = not place.startswith("/")

    def manifest(self) -> bytes:
        """The content of release.json, untrusted; raises ReleaseUnavailable."""
        where = f"{self.place}/{signed.NAME}"
        if self.is_remote:
            untrusted = self._ask(partial(fetch.small, where, signed.FILE_MAX, os.getpid()), MANIFEST_S)
            try:
                return bytes.fromhex(untrusted["content"])
            except (KeyError, TypeError, ValueError):
                raise SvcError("fetching the release returned no usable result") from None
        try:
            with open_regular(where)[0] as file:
                return file.read(signed.FILE_MAX + 1) or b""
        except (FileRefused, OSError) as error:
            raise ReleaseUnavailable(_text(error), hint=SETTING) from None

    def fetch(self, package: Package, descriptor: int) -> None:
        """Complete the package's file through root's descriptor; raises ReleaseUnavailable, StorageFull."""
        where = f"{self.place}/{package.file}"
        if not self.is_remote:
            _copy(where, descriptor, package.size_bytes)
            return
        work = partial(fetch.whole, where, descriptor, package.size_bytes, os.getpid())
        self._ask(work, DOWNLOAD_S)

    def _ask(self, work: Any, within_s: float) -> Any:
        try:
            return run_as(self.worker, work, within_s)
        except ReleaseUnavailable as error:
            raise ReleaseUnavailable(error.message) from None  # with its own hint, not the worker's
        except SvcError as error:
            if type(error) is not SvcError:
                raise
            raise ReleaseUnavailable(f"{self.place} did not answer in time") from None  # it was killed


def download(source: Source, package: Package, folder: str) -> str:
    """The path of the package in root's folder, complete and with its digest.

    What an earlier run has fetched is resumed; if the whole then has another digest, it is fetched
    again from the beginning, once.
    """
    path = os.path.join(folder, f"{package.sha256}.deb")
    try:
        _complete(source, package, folder, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise HostRefused(
            f"the package cannot be fetched to {path}: {reason}", hint=f"df -h {folder}"
        ) from None
    _require_right(path, package)
    return path


def _complete(source: Source, package: Package, folder: str, path: str) -> None:
    """Fetch what is missing of the package, durably."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        present = os.fstat(descriptor).st_size
        if present > package.size_bytes:
            os.ftruncate(descriptor, 0)
        require_room(folder, package.size_bytes - min(present, package.size_bytes))
        source.fetch(package, descriptor)
        if not _is_right(descriptor, package) and present:
            os.ftruncate(descriptor, 0)
            source.fetch(package, descriptor)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_right(descriptor: int, package: Package) -> bool:
    return sha256_of(descriptor) == package.sha256


def _require_right(path: str, package: Package) -> None:
    """Raise ReleaseInvalid, and remove the file, unless it is what was signed and has no writer left."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _require_no_writer(descriptor)
        size, right = os.fstat(descriptor).st_size, _is_right(descriptor, package)
    finally:
        os.close(descriptor)
    if right:
        return
    os.unlink(path)
    what = "size" if size != package.size_bytes else "content"
    raise ReleaseInvalid(f"{package.file} has another {what} than the one that was signed; it was removed")


def _require_no_writer(descriptor: int) -> None:
    """By the kernel's word: it gives this lease only where no writer is left."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            raise SvcError("another process still has the package open for writing") from None


def _copy(path: str, descriptor: int, size: int) -> None:
    try:
        file, present = open_regular(path)
    except FileRefused as error:
        raise ReleaseUnavailable(error.message) from None
    with file:
        if present != size:
            raise ReleaseInvalid(f"{path} has {present} bytes, and {size} were signed")
        os.ftruncate(descriptor, 0)
        at = 0
        while part := file.read(min(PART, size - at)):
            at += _write(descriptor, part, at)


def _write(descriptor: int, part: bytes, at: int) -> int:
    """Write all of it, also where the disk takes a part at a time; returns its length."""
    done = 0
    while done < len(part):
        done += os.pwrite(descriptor, part[done:], at + done)
    return done


def _text(error: FileRefused | OSError) -> str:
    return error.message if isinstance(error, FileRefused) else str(error.strerror)
