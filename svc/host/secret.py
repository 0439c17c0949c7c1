"""The signing secret: a file beside the database, created once by `svc admin migrate`.

Sessions are signed and passwords are keyed with it, so an existing secret is never
replaced, and a secret that others may read is never used.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat

from svc.errors import HostRefused
from svc.host.owner import admin_command, repair_command
from svc.host.sharing import is_private
from svc_helper import atomic_file

SECRET_BYTES = 32
FILE_MAX = 4096


def ensure_secret(path: str) -> bool:
    """Create the secret (0600, owned by the caller) unless it exists; True when it was created.

    Written under a temporary name and then linked into place, so that it is always
    complete and never replaces another one.
    """
    if os.path.lexists(path):
        read_secret(path)
        return False
    draft = f"{path}.new-{os.getpid()}"
    try:
        atomic_file.write(draft, secrets.token_hex(SECRET_BYTES).encode() + b"\n", 0o600)
        try:
            os.link(draft, path)
        finally:
            os.unlink(draft)
    except OSError as error:
        raise HostRefused(
            f"the signing secret {path} cannot be created: {error.strerror}", hint="sudo svc admin doctor"
        ) from None
    return True


def read_secret(path: str, database: str = "") -> bytes:
    """The secret; HostRefused when it is missing, too short, not a regular file or readable by others.

    With `database` the hints name that one.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise HostRefused(
            f"there is no signing secret at {path}", hint=admin_command("migrate", database)
        ) from None
    except OSError as error:
        why = "is a symbolic link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise HostRefused(f"the signing secret {path} {why}", hint=repair_command(database)) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise HostRefused(
                f"the signing secret {path} is not a regular file", hint=repair_command(database)
            )
        if not is_private(status):
            raise HostRefused(
                f"the signing secret {path} is readable by other users", hint=repair_command(database)
            )
        value = os.read(descriptor, FILE_MAX).strip()
    finally:
        os.close(descriptor)
    if len(value) < SECRET_BYTES:
        raise HostRefused(
            f"the signing secret {path} is too short ({len(value)} bytes)",
            hint=f"{repair_command(database)}, then: {admin_command('migrate', database)}"
            "   (all passwords must be set again)",
        )
    return value
