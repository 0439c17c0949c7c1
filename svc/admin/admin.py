"""`svc admin`: its commands, in the order of its help."""

from __future__ import annotations

from svc.admin.command import DB
from svc.cli.arguments import CommandGroup, Deferred

DESCRIPTION = """\
Set up, check and repair the service (as root).

These commands open the database themselves and need no running server."""

COMMAND = CommandGroup(
    "admin",
    DESCRIPTION,
    Deferred("migrate", "svc.admin.migrate"),
    Deferred("create-user", "svc.admin.create_user"),
    Deferred("set-password", "svc.admin.set_password"),
    Deferred("revoke-tokens", "svc.admin.revoke_tokens"),
    Deferred("list-users", "svc.admin.list_users"),
    Deferred("template", "svc.admin.template_import"),
    Deferred("db-path", "svc.admin.db_path"),
    Deferred("doctor", "svc.admin.doctor"),
    Deferred("tls-fingerprint", "svc.admin.tls_fingerprint"),
    options=(DB,),
)
