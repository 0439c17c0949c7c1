"""`svc admin`: its commands, in the order of its help."""

from __future__ import annotations

from svc.commandline.arguments import Argument, CommandGroup, Deferred, path

DESCRIPTION = """\
Set up, check and repair the service (as root).

These commands open the database themselves and need no running server."""

DB = Argument("--db", "database path (default: SVC_DB, else svc.db)", metavar="PATH", type=path)
COMMAND = CommandGroup(
    "admin",
    DESCRIPTION,
    Deferred(
        "migrate",
        "Apply pending schema migrations; creates the database where there is none",
        "svc.admin.migrate",
    ),
    Deferred(
        "create-user",
        "Create an account; provisions a Linux account if there is none",
        "svc.admin.people.create_user",
    ),
    Deferred(
        "set-password",
        "Set the service password of an account (not the Linux password)",
        "svc.admin.people.set_password",
    ),
    Deferred(
        "edit-user",
        "Change an account: who may use it, its role, its quota, its display name",
        "svc.admin.people.edit_user",
    ),
    Deferred("revoke-tokens", "Revoke all API tokens of a user", "svc.admin.people.revoke_tokens"),
    Deferred(
        "delete-user",
        "Delete an account: its workspaces, images, private templates, tokens and sessions",
        "svc.admin.people.delete_user",
    ),
    Deferred(
        "move-store",
        "Move users' images and workspaces from their homes to the directory of SVC_STORE_DIR",
        "svc.admin.people.move_store",
    ),
    Deferred(
        "list-users",
        "List all users with the superuser flag and the state of their account",
        "svc.admin.people.list_users",
    ),
    Deferred(
        "disk",
        "Show what each user's disks hold: images, build cache, containers, volumes and files",
        "svc.admin.people.disk",
    ),
    Deferred("quota", "Limits of what users may have, as named policies", "svc.admin.quota"),
    Deferred("registry", "The registries that images may come from", "svc.admin.registry"),
    Deferred("template", "Import templates", "svc.admin.template_import"),
    Deferred(
        "backup",
        "Write a snapshot of the database, whether or not the service runs",
        "svc.admin.backup.backup",
    ),
    Deferred(
        "checkpoint",
        "Write the log back into the database, and remove the files beside it",
        "svc.admin.restore.checkpoint",
    ),
    Deferred("restore", "Replace the database by a snapshot", "svc.admin.restore.restore"),
    Deferred("update", "Show, look for and apply releases", "svc.admin.release.update"),
    Deferred(
        "rollback", "Go back to the program and database of before an upgrade", "svc.admin.release.rollback"
    ),
    Deferred("audit", "The audit's rows as a file, and old ones out of the database", "svc.admin.audit"),
    Deferred("db-path", "Print the path of the database that would be used", "svc.admin.db_path"),
    Deferred(
        "doctor", "Check this host's prerequisites; print each finding with its remedy", "svc.admin.doctor"
    ),
    Deferred(
        "report", "Renew the reports about this host that administrators read in the API", "svc.admin.report"
    ),
    Deferred(
        "tls-fingerprint",
        "Print the SHA-256 fingerprint of the serving TLS certificate",
        "svc.admin.tls_fingerprint",
    ),
    Deferred("license", "Show, request, check and install the licence", "svc.admin.license"),
    options=(DB,),
)
