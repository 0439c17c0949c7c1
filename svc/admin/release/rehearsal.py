"""The rehearsal: the new program migrates a copy of the database, before anything of the host is changed.

Everything is in a directory of its own, which is removed afterwards. The new program runs as the
database's owner, without any privilege, and knows no other path than those of the copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from svc.admin.backup import owner_copy
from svc.admin.backup.package import NAME, PROGRAM, last_lines
from svc.admin.backup.snapshot import COPY_S, Source, check_of
from svc.admin.release.folder import MODE, require_room
from svc.admin.release.signed import Release
from svc.errors import HostRefused, StorageFailed, StorageFull, SvcError, UpdateFailed
from svc.host.owner import Owner, run_as

DPKG_DEB, SETPRIV = "/usr/bin/dpkg-deb", "/usr/bin/setpriv"
WITH_PARENT = (SETPRIV, "--pdeathsig", "KILL")
DATABASE = "svc.db"
GROWTH = 2  # a migration may write every page again
EXTRACT_S, ANSWER_S, MIGRATE_S = 600.0, 60.0, 86400.0
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
WITHOUT_PRIVILEGE = (
    "--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all",
)  # fmt: skip


def rehearse(package: str, release: Release, source: Source, folder: str) -> None:
    """Try the package's program out on a copy of the database, in root's folder; raises UpdateFailed."""
    try:
        with _place(folder) as place:
            program = _extract(package, place, release)
            data = _copy(source, place)
            _require_commit(program, release, source.owner, data)
            _migrate(program, source.owner, data)
            _require_sound(data, release, source.owner)
    except UpdateFailed as error:
        raise UpdateFailed(
            f"{release.version} failed in its rehearsal, and nothing was changed: {error.message}",
            hint="sudo svc admin update status   (the vendor needs the reason that it shows)",
        ) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise HostRefused(
            f"{release.version} cannot be rehearsed in {folder}, and nothing was changed: {reason}",
            hint=f"df -h {folder}",
        ) from None


@contextmanager
def _place(folder: str) -> Iterator[str]:
    place = tempfile.mkdtemp(prefix="rehearsal-", dir=folder)
    os.chmod(place, MODE)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def _extract(package: str, place: str, release: Release) -> str:
    """Unpack the package; the path of its program."""
    fields = _said(
        [
            *WITH_PARENT,
            "--",
            DPKG_DEB,
            "--show",
            "--showformat=${Package} ${Version} ${Installed-Size} ${Svc-Release}",
            package,
        ],
        EXTRACT_S,
    )
    name, version, size_kib, number = (*fields.split(" "), "", "", "")[:4]
    if (name, number or version) != (NAME, release.version):
        raise UpdateFailed(f"the package is {name} {version}, and {release.version} of {NAME} was signed")
    require_room(place, int(size_kib or 0) * 1024)
    tree = os.path.join(place, "tree")
    _said([*WITH_PARENT, "--", DPKG_DEB, "--extract", package, tree], EXTRACT_S)
    return os.path.join(tree, PROGRAM)  # which finds its modules beside itself


def _copy(source: Source, place: str) -> str:
    """A copy of the database in a directory that then belongs to its owner; the directory's path."""
    data = os.path.join(place, "data")
    os.mkdir(data, 0o700)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(os.path.join(data, DATABASE), flags, 0o600)
    try:
        needed = os.stat(source.database).st_size * GROWTH
        if os.path.exists(f"{source.database}-wal"):
            needed += os.stat(f"{source.database}-wal").st_size
        require_room(place, needed)
        status = os.fstatvfs(descriptor)
        most = status.f_bavail * status.f_frsize
        try:
            run_as(
                source.owner, partial(owner_copy.copy, source.database, descriptor, most, os.getpid()), COPY_S
            )
        except (StorageFull, StorageFailed) as error:
            error.hint = error.hint or f"df -h {place}"
            raise
        os.fchown(descriptor, *source.owner)
    finally:
        os.close(descriptor)
    os.chown(data, *source.owner)  # last: until here nobody else could enter
    return data


def _require_commit(program: str, release: Release, owner: Owner, data: str) -> None:
    commit = _said_by(program, owner, data, ANSWER_S, "--version").strip()
    if commit != release.commit:
        raise UpdateFailed(
            f"the program says that it is commit {commit[:64]}, and {release.commit} was signed"
        )


def _migrate(program: str, owner: Owner, data: str) -> None:
    _said_by(program, owner, data, MIGRATE_S, "admin", "migrate", "--db", os.path.join(data, DATABASE))


def _require_sound(data: str, release: Release, owner: Owner) -> None:
    """Raise UpdateFailed unless the copy is whole and has the schema that was signed."""
    path = os.path.join(data, DATABASE)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = check_of(descriptor, owner)
    finally:
        os.close(descriptor)
    if found.fault or found.foreign:
        raise UpdateFailed(
            f"after the migration the copy of the database fails: {found.fault or found.foreign}"
        )
    if found.schema != release.schema:
        raise UpdateFailed(
            f"after the migration the schema is {found.schema}, and {release.schema} was signed"
        )


# --- programs --------------------------------------------------------------------------------


def _said_by(program: str, owner: Owner, data: str, within_s: float, *arguments: str) -> str:
    """What the new program prints, run as the database's owner with the paths of the copy."""
    account = [*WITH_PARENT, f"--reuid={owner.uid}", f"--regid={owner.gid}", *WITHOUT_PRIVILEGE, "--"]
    paths = {
        "SVC_STATE_DIR": data,
        "SVC_JWT_SECRET_FILE": os.path.join(data, "secret.key"),
        "SVC_RECOVERY_DIR": data,
        "SVC_SWITCHING": "1",  # so that it keeps no recovery set of the copy
    }
    return _said([*account, program, *arguments], within_s, paths)


def _said(command: list[str], within_s: float, settings: dict[str, str] | None = None) -> str:
    """What a program prints; raises UpdateFailed with the last of what it said, when it fails."""
    try:
        done = subprocess.run(
            command, env=ENVIRONMENT | (settings or {}), cwd="/", stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=within_s, start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UpdateFailed(f"{os.path.basename(command[0])} did not end within {within_s:.0f} s") from None
    except OSError as error:
        raise SvcError(
            f"{command[0]} could not be run: {error.strerror}", hint="sudo svc admin doctor"
        ) from None
    if done.returncode:
        raise UpdateFailed(f"exit code {done.returncode}: {_reason(done.stderr or done.stdout)}")
    return done.stdout


def _reason(text: str) -> str:
    """The last of what a program said, without warnings and hints of svc."""
    lines = [line for line in text.splitlines() if not line.startswith(("svc: warning:", "hint:"))]
    return last_lines([line.removeprefix("svc: ") for line in lines]) or "it gave no reason"
