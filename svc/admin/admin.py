"""`svc admin`: its commands, in the order of its help.

Their modules import little (svc.cli, the settings); a handler imports what it works with.
"""

from __future__ import annotations

from svc.admin import (
    create_user,
    db_path,
    doctor,
    list_users,
    migrate,
    revoke_tokens,
    set_password,
    template_import,
    tls_fingerprint,
)
from svc.admin.command import DB
from svc.cli.arguments import CommandGroup

DESCRIPTION = """\
Set up, check and mend the service (as root).

These commands open the database themselves and need no running server."""

COMMAND = CommandGroup(
    "admin",
    DESCRIPTION,
    migrate.COMMAND,
    create_user.COMMAND,
    set_password.COMMAND,
    revoke_tokens.COMMAND,
    list_users.COMMAND,
    template_import.COMMAND,
    db_path.COMMAND,
    doctor.COMMAND,
    tls_fingerprint.COMMAND,
    options=(DB,),
)
