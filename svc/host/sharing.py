"""The modes of the files that the app's accounts share: those of their one group.

The database, its log, the signing secret and the generated certificate belong to the account `svc`;
the listeners and the worker have uids of their own and reach these files by the group. A database
of an ordinary user (`svc server --dev`) is that user's alone. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import stat

from svc.host.owner import service_owner

BESIDE = (
    "-wal",
    "-shm",
    ".reserve",
    ".condition",
    ".head",
    ".held",
    ".events",
)  # suffixes of files that a process makes beside the database
DIRECTORY, FILE, READABLE, PRIVATE_DIRECTORY = 0o2770, 0o660, 0o640, 0o750


def is_private(status: os.stat_result, shared: int = 0o740) -> bool:
    """Whether a file is its owner's alone; the app's accounts may have the bits `shared` by their group."""
    service = service_owner()
    by_group = service is not None and status.st_gid == service.gid
    return not status.st_mode & 0o777 & ~(shared if by_group else 0o700)


def is_shared(status: os.stat_result) -> bool:
    """Whether this process may read and write a file by the group of the app's accounts."""
    service = service_owner()
    ours = service is not None and os.getegid() == service.gid == status.st_gid
    return ours and status.st_mode & 0o060 == 0o060


def mode_beside(database: str) -> int:
    """The mode of a file that is made beside the database: that of the database."""
    try:
        return os.lstat(database).st_mode & 0o660
    except OSError:
        return 0o600


def share(database: str, *secrets: str) -> None:
    """Give the database, its directory and these other files their modes; as their owner, `svc`.

    May be repeated: an installation of an earlier release has modes for one account. Links and files
    of other owners are left alone.
    """
    service = service_owner()
    if service is None or os.geteuid() != service.uid:
        return
    directory = os.path.dirname(os.path.abspath(database))
    tls = os.path.join(directory, "tls")
    _set(directory, DIRECTORY, service.gid)
    for suffix in ("", *BESIDE):
        _set(database + suffix, FILE, service.gid)
    _set(tls, PRIVATE_DIRECTORY, service.gid)
    for path in (*secrets, os.path.join(tls, "cert.pem"), os.path.join(tls, "key.pem")):
        _set(path, READABLE, service.gid)


def _set(path: str, mode: int, gid: int) -> None:
    """Set mode and group of an own file or directory, never through a link.

    By O_PATH, since closing an ordinary descriptor of a database drops this process's locks on it.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            kind = stat.S_ISDIR if mode in (DIRECTORY, PRIVATE_DIRECTORY) else stat.S_ISREG
            if status.st_uid != os.geteuid() or not kind(status.st_mode):
                return
            if status.st_gid != gid:
                os.chown(f"/proc/self/fd/{descriptor}", -1, gid)
            if stat.S_IMODE(status.st_mode) != mode:
                os.chmod(f"/proc/self/fd/{descriptor}", mode)
        finally:
            os.close(descriptor)
