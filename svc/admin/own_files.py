"""The service's own files: where each is, who must own it, and with which mode.

The doctor compares them (by lstat: it opens nothing in a directory that others can
write), svc.admin.repair sets them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from svc.db.location import ENROLLED, HEADS
from svc.db.lock import lock_path
from svc.domain import host_reports
from svc.errors import DatabaseRefused
from svc.host import restoring, switching
from svc.host.accounts import HOME, own_uids
from svc.host.owner import Owner, service_owner
from svc.host.secret import SECRET_BYTES
from svc.host.sharing import BESIDE, DIRECTORY, FILE, PRIVATE_DIRECTORY, READABLE
from svc.settings import ENV_FILE, Settings

ROOT = Owner(0, 0)
ARCHIVED = "audit-archived"
RESTORES = "restores"  # what root was asked to restore, a line of JSON each
ROOT_FILES = (
    ENROLLED, "registries.json", "registries.conf", "trial", "clock", HEADS, ARCHIVED, "update.json",
)  # fmt: skip
LOCKS = ("backup.lock", "switch.lock", "enrolled.lock", "registries.json.lock", "update.json.lock")
LOGINS = "registry-logins"  # of private registries, and the folder of the accounts' copies
KINDS = {
    "regular file": stat.S_ISREG,
    "directory": stat.S_ISDIR,
    "socket": stat.S_ISSOCK,
}


class OwnFile(NamedTuple):
    """One file, directory or socket; `names` lead from `top` to it, and are empty for `top` itself.

    Only root may change the way to `top`; below it others may write.
    """

    top: str
    names: tuple[str, ...]
    kind: str
    owner: Owner
    mode: int
    min_bytes: int = 0  # a smaller file is what a full disk or a crash has left
    creators: frozenset[int] = frozenset()  # other uids that may own it: SQLite's logs are their creator's

    @property
    def path(self) -> str:
        """The whole path."""
        return os.path.join(self.top, *self.names)


def of_root(settings: Settings) -> Iterator[OwnFile]:
    """The files that root alone may write, each after its directory."""
    yield OwnFile(settings.state_dir, (), "directory", ROOT, 0o755)
    for name in ROOT_FILES:
        yield OwnFile(settings.state_dir, (name,), "regular file", ROOT, 0o644)
    for name in (*LOCKS, RESTORES, restoring.NAME, switching.NAME):
        yield OwnFile(settings.state_dir, (name,), "regular file", ROOT, 0o600)
    yield OwnFile(settings.state_dir, (f"{LOGINS}.json",), "regular file", ROOT, 0o600)
    yield OwnFile(settings.state_dir, (LOGINS,), "directory", ROOT, 0o711)
    yield OwnFile(settings.state_dir, ("update",), "directory", ROOT, 0o711)
    readers = Owner(0, data_owner().gid)  # what administrators read in the API
    yield OwnFile(
        settings.state_dir, (host_reports.DIRECTORY,), "directory", readers, host_reports.FOLDER_MODE
    )
    for kind in host_reports.KINDS:
        name = os.path.basename(host_reports.path_of("", kind))
        yield OwnFile(
            settings.state_dir,
            (host_reports.DIRECTORY, name),
            "regular file",
            readers,
            host_reports.FILE_MODE,
        )
    run_dir, name = os.path.split(settings.socket)
    yield OwnFile(run_dir, (), "directory", ROOT, 0o755)
    yield OwnFile(run_dir, (name,), "socket", ROOT, 0o666)


def settings_file(path: str = ENV_FILE) -> Iterator[OwnFile]:
    """The environment file and its directory, which are checked before any setting is known."""
    yield OwnFile(os.path.dirname(path), (), "directory", ROOT, 0o755)
    yield OwnFile(path, (), "regular file", ROOT, 0o644)


def of_data(settings: Settings, database: str) -> Iterator[OwnFile]:
    """The data directory and the files in it, as the service creates them."""
    owner = data_owner()
    top, name = os.path.split(os.path.abspath(database))
    yield OwnFile(top, (), "directory", owner, _mode(DIRECTORY))
    yield OwnFile(top, (name,), "regular file", owner, _mode(FILE))
    for file in (f"{name}{suffix}" for suffix in BESIDE):
        creators = frozenset(own_uids() if os.geteuid() == 0 else ())
        yield OwnFile(top, (file,), "regular file", owner, _mode(FILE), creators=creators)
    yield OwnFile(top, (os.path.basename(lock_path(database)),), "regular file", owner, 0o600)
    yield secret(settings)
    yield OwnFile(top, ("tls",), "directory", owner, _mode(PRIVATE_DIRECTORY))
    for file in ("cert.pem", "key.pem"):
        yield OwnFile(top, ("tls", file), "regular file", owner, _mode(READABLE))


def _mode(shared: int) -> int:
    """The mode by which the app's accounts share a file; for an ordinary user's `--dev` that user's alone."""
    return shared if os.geteuid() == 0 and service_owner() else shared & 0o700


def secret(settings: Settings) -> OwnFile:
    """The signing secret."""
    top, name = os.path.split(os.path.abspath(settings.secret_file))
    return OwnFile(top, (name,), "regular file", data_owner(), _mode(READABLE), SECRET_BYTES)


def data_owner() -> Owner:
    """The account that the service's data belongs to; for an ordinary user's `--dev` that user."""
    if os.geteuid() != 0:
        return Owner(os.geteuid(), os.getegid())
    return service_owner() or ROOT


def strangeness(file: OwnFile, status: os.stat_result) -> str:
    """Why this is not what the service made (`is a symbolic link`); empty when it may be."""
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if not KINDS[file.kind](status.st_mode):
        return f"is not a {file.kind}"
    if file.kind == "regular file" and status.st_nlink > 1:
        return f"has {status.st_nlink} names (hard links)"
    if status.st_size < file.min_bytes:
        return f"has only {status.st_size} bytes"
    return ""


def description(status: os.stat_result) -> str:
    """Owner and mode: `svc 0600`."""
    return f"{Owner(status.st_uid, status.st_gid).name} {stat.S_IMODE(status.st_mode):04o}"


def ensure_directory(directory: str) -> None:
    """Create the data directory: as root the service's own, else private; parents for the default path alone.

    A mistyped path would leave directories wherever it leads.
    """
    if os.path.isdir(directory):
        return
    parent = os.path.dirname(directory)
    if directory != HOME and not os.path.lexists(parent):
        raise DatabaseRefused(
            f"there is no directory {parent} for {directory}; create it first if the path is right",
            hint="svc admin db-path   (prints the configured path)",
        )
    umask = os.umask(0o022)  # that of a hardened root would keep the service from its directory
    try:
        os.makedirs(parent, mode=0o755, exist_ok=True)
        os.mkdir(directory, 0o700)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            owner = service_owner()
            if owner and os.geteuid() == 0:
                os.fchown(descriptor, owner.uid, owner.gid)
                os.fchmod(descriptor, DIRECTORY)
            else:
                os.fchmod(descriptor, 0o700)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise DatabaseRefused(
            f"cannot create {directory}: {error.strerror}",
            hint=f"sudo svc admin migrate --db {directory}/svc.db",
        ) from None
    finally:
        os.umask(umask)
