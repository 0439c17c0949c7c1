"""The small files that a restored database needs and this host has not, each with its remedy.

Root reads the archive beside a snapshot only where nobody else could have written it.
"""

from __future__ import annotations

import os
import tarfile
from functools import partial
from typing import Any

from svc.admin.backup.host_files import HostFile, of_root, of_service
from svc.admin.backup.snapshots import HOST
from svc.admin.backup.sqlite_descriptor import end_with
from svc.admin.backup.target import Target
from svc.commandline.output import shell_quote
from svc.db import secret_check
from svc.errors import SvcError
from svc.host.owner import Owner, run_as
from svc.settings import Settings

ARCHIVE_MAX = 64 * 1024 * 1024
# What happens without the file, and what to do where no archive has it. Files that every host begins anew
# (the trial, the clock, what root remembers of the audit) are none of them: they are this host's own.
REMEDIES = {
    "secret.key": (
        "no password is right, and sealed variables are unset",
        "sudo svc admin migrate --new-secret, then: sudo svc admin set-password NAME",
    ),
    "enrolled": ("the service acts for no Linux account", "sudo svc admin create-user NAME"),
    "registries.json": ("no image may be pulled", "sudo svc admin registry set FILE"),
    "registry-logins.json": (
        "pulls from private registries fail",
        "sudo svc admin registry add HOST --login USER",
    ),
    "svc.env": ("all settings are the defaults", "svc env --all"),
    "license.json": ("the trial counts", "sudo svc admin license install FILE"),
    "tls/cert.pem": (
        "the next start makes a new certificate: clients must trust it",
        "sudo systemctl start svc",
    ),
}
OF_NEED = ("secret.key", "enrolled", "registries.json")  # without an archive too: what every service has


def find(settings: Settings, owner: Owner, snapshot: str) -> list[str]:
    """A line for each file that is missing on this host: what happens without it, and the remedy."""
    archive = snapshot + HOST
    archived = names_in(archive)
    lines = []
    for file in missing_files(settings, owner):
        if file.name not in REMEDIES or (file.name not in archived and file.name not in OF_NEED):
            continue
        why, remedy = REMEDIES[file.name]
        if file.name in archived:
            remedy = unpack_command(archive, file, owner)
        lines.append(f"{file.path} is missing: {why}; {remedy}")
    return lines


def foreign_secret(settings: Settings, owner: Owner, snapshot: str) -> list[str]:
    """A line with the remedy where this host's signing secret is not the restored database's."""
    if not settings.is_valid("SVC_JWT_SECRET_FILE"):
        return []
    path = settings.secret_file
    work = partial(secret_check.compare, os.path.abspath(settings.db), path)
    if run_as(owner, work) != secret_check.FOREIGN:
        return []
    archive, remedy = snapshot + HOST, f"if that one is lost: {secret_check.ACCEPT}"
    if "secret.key" in names_in(archive):
        remedy = unpack_command(archive, HostFile("secret.key", path, secret=True), owner, replaces=True)
    why = REMEDIES["secret.key"][0]
    return [f"{secret_check.sentence(path)}: {why}; {remedy}"]


def names_in(archive: str) -> set[str]:
    """The names in the archive of small files; none in one that others could have written."""
    directory, name = os.path.split(archive)
    try:
        parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return set()
    try:
        target = Target(directory, parent)
        status = target.status(name)
        if status is None or not target.is_own_file(name) or status.st_size > ARCHIVE_MAX:
            return set()
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        if not os.path.samestat(os.fstat(descriptor), status):
            os.close(descriptor)
            return set()
        with open(descriptor, "rb") as file, tarfile.open(fileobj=file, mode="r:") as packed:
            return set(packed.getnames())
    except (OSError, tarfile.TarError):
        return set()
    finally:
        os.close(parent)


def missing_files(settings: Settings, owner: Owner) -> list[HostFile]:
    """The files that are not there; those in the service's directory are looked for by its account."""
    of_account = of_service(settings)
    untrusted: Any = run_as(owner, partial(_present, [file.path for file in of_account], os.getpid()))
    if not isinstance(untrusted, list) or len(untrusted) != len(of_account):
        raise SvcError("looking for the service's own files returned no usable result")
    roots = of_root(settings) if os.geteuid() == 0 else []
    absent = [file for file in roots if not os.path.lexists(file.path)]
    return absent + [file for file, there in zip(of_account, untrusted, strict=True) if there is not True]


def unpack_command(archive: str, file: HostFile, owner: Owner, *, replaces: bool = False) -> str:
    """The command that puts a file of the archive where it belongs, written by whom it belongs to.

    A mask decides who can read it, not a chmod afterwards: a secret is nobody else's from its first byte on.
    With `replaces` the present one is kept beside it, as NAME.before.
    """
    command = f"sudo tar -xOf {shell_quote(archive)} {file.name}"
    writer = f"runuser -u {owner.name} -- " if file.name == "secret.key" or "tls/" in file.name else ""
    umask = "027" if writer else "077" if file.secret else "022"
    path = shell_quote(file.path)
    before = f"mv --backup=numbered {path} {shell_quote(file.path + '.before')}; " if replaces else ""
    inner = f"umask {umask}; {before}cat > {path}"
    return f"{command} | sudo {writer}sh -c {shell_quote(inner)}"


def _present(paths: list[str], parent: int) -> list[bool]:
    end_with(parent)
    return [os.path.lexists(path) for path in paths]
