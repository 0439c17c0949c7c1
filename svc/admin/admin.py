"""`svc admin`: its commands, in the order of its help."""

from __future__ import annotations

from svc.admin.command import DB
from svc.commandline.arguments import CommandGroup, Deferred

DESCRIPTION = """\
Set up, check and repair the service (as root).

These commands open the database themselves and need no running server."""

COMMAND = CommandGroup(
    "admin",
    DESCRIPTION,
    Deferred("migrate", "svc.admin.migrate"),
    Deferred("create-user", "svc.admin.people.create_user"),
    Deferred("set-password", "svc.admin.people.set_password"),
    Deferred("edit-user", "svc.admin.people.edit_user"),
    Deferred("revoke-tokens", "svc.admin.people.revoke_tokens"),
    Deferred("delete-user", "svc.admin.people.delete_user"),
    Deferred("move-store", "svc.admin.people.move_store"),
    Deferred("list-users", "svc.admin.people.list_users"),
    Deferred("disk", "svc.admin.people.disk"),
    Deferred("quota", "svc.admin.policy.quota"),
    Deferred("registry", "svc.admin.policy.registry"),
    Deferred("template", "svc.admin.template_import"),
    Deferred("backup", "svc.admin.backup.backup"),
    Deferred("checkpoint", "svc.admin.restore.checkpoint"),
    Deferred("restore", "svc.admin.restore.restore"),
    Deferred("update", "svc.admin.release.update"),
    Deferred("rollback", "svc.admin.release.rollback"),
    Deferred("audit", "svc.admin.audit"),
    Deferred("db-path", "svc.admin.db_path"),
    Deferred("doctor", "svc.admin.doctor"),
    Deferred("report", "svc.admin.report"),
    Deferred("tls-fingerprint", "svc.admin.tls_fingerprint"),
    Deferred("license", "svc.admin.licence.license"),
    options=(DB,),
)
