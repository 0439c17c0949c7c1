"""`svc admin migrate`: create the database or apply pending migrations.

No other command creates a database (`svc server --dev` runs this one). Root
creates the directories and the trial's file; a forked process that has become
the database's owner does the rest.
"""

from __future__ import annotations

import os
import re
import sqlite3
from functools import partial
from typing import Any

from svc.actions.table import ADMIN_NEW_SECRET
from svc.admin.actor import note
from svc.admin.backup.offline import offline
from svc.admin.backup.snapshot import source_of
from svc.admin.backup.snapshots import restore_hint
from svc.admin.command import require_owner, settings_of, sudo_command, wrap_db_errors
from svc.admin.own_files import ensure_directory
from svc.admin.release.rollback import keep
from svc.commandline import output
from svc.commandline.arguments import YES, Argument, Arguments, Command
from svc.db import check, condition, faults, secret_check
from svc.db import migrate as migrations
from svc.db.connect import close_database, database, open_database, write
from svc.db.location import database_path, lost_database, refuse_foreign_directory
from svc.db.lock import hold
from svc.domain import configuration
from svc.domain.accounts import passwords, users
from svc.domain.licence.trial import read_file, resolve, write_file
from svc.domain.templates import lost_values
from svc.errors import Conflict, DatabaseRefused, StorageFailed
from svc.host.accounts import HOME
from svc.host.ids import now
from svc.host.owner import RUN_S, Owner, admin_command, owner_of, run_as, service_owner
from svc.host.restoring import require_none
from svc.host.root_file import checked
from svc.host.secret import ensure_secret, read_secret
from svc.host.sharing import share
from svc.host.switching import IN_SWITCH
from svc.settings import Settings
from svc_helper.wire.limits import USER_NAME

MIGRATE_S = 86400.0  # for a large database on a slow disk: a migration is never interrupted
EXAMPLES = """\
sudo svc admin migrate
svc admin migrate --db ./svc.db"""


@wrap_db_errors
def migrate(args: Arguments) -> int:
    """Apply pending schema migrations; creates the database where there is none.

    Its directory is created too, but none above that. Also seeds the superuser
    root (without a password: `svc admin set-password root`), creates the signing
    secret and records when the trial began; an ordinary user becomes the
    superuser of a database of their own. Running it again changes nothing. With
    migrations pending the service must be stopped, and a database that is there is
    first kept as a recovery set in SVC_RECOVERY_DIR (svc admin rollback list).
    Where a file is missing or empty and root's records show that there was a
    database, it asks before it begins an empty one, or needs --yes.

    --new-secret is for a database whose signing secret is lost: the present one
    takes its place. Passwords are removed, secret variables that it does not
    decrypt become unset, and all sessions end; asks, or needs --yes.
    """
    settings = settings_of(args, ("SVC_DB", "SVC_JWT_SECRET_FILE", "SVC_STATE_DIR", "SVC_RECOVERY_DIR"))
    path = database_path(settings)
    require_owner(path)
    require_none(settings.state_dir, path)
    _confirm_new_database(args, settings, path)
    if args.new_secret:
        _confirm_new_secret(args, settings, path)
    if not os.path.lexists(path):
        refuse_foreign_directory(settings)
        _require_place_of_service(path)
        ensure_directory(os.path.dirname(path))
    else:
        _keep_before(settings, path)
    owner = owner_of(path)
    trial = read_file(settings.state_dir)
    result = run_as(
        owner,
        partial(
            _migrate_as_owner, path, settings.secret_file, trial, os.geteuid(), new_secret=args.new_secret
        ),
        MIGRATE_S,
    )
    _keep_trial(settings, trial, str(result["trial"]))
    print(f"database: {path} (of {owner.name})")
    for line in result["lines"]:
        print(line)
    return 0


def _require_place_of_service(path: str) -> None:
    """As root, refuse to create a database where the server's user could not use it."""
    service = service_owner()
    if os.geteuid() != 0 or not service:
        return
    directory, parent = os.path.dirname(path), os.path.dirname(os.path.dirname(path))
    if not os.path.lexists(directory):  # it will be the service's own
        if not os.path.lexists(parent) or run_as(service, partial(os.access, parent, os.X_OK)):
            return  # ensure_directory refuses a missing one
        reason = f"{service.name}, the server's user, cannot reach {parent}"
    elif os.stat(directory).st_uid != service.uid:
        reason = f"{directory} does not belong to {service.name}, the server's user"
    elif not run_as(service, partial(os.access, directory, os.R_OK | os.W_OK | os.X_OK)):
        reason = f"{service.name}, the server's user, cannot reach {directory}"
    else:
        return
    own = f"{HOME}/svc.db"  # else a directory of its own in this one, if only root can change the way there
    if os.path.lexists(directory) and _is_way_of_root(directory):
        own = f"{directory}/data/svc.db"
    raise DatabaseRefused(f"no database is created: {reason}", hint=admin_command("migrate", own))


def _is_way_of_root(directory: str) -> bool:
    """Whether everybody can pass through a directory and all above it, and only root can change them."""
    status = os.stat(directory)
    if status.st_uid != 0 or status.st_mode & 0o023 != 0o001:
        return False
    return directory == "/" or _is_way_of_root(os.path.dirname(directory))


def _keep_before(settings: Settings, path: str) -> None:
    """Keep a database with pending migrations as a recovery set; a switch has kept it already."""
    if os.environ.get(IN_SWITCH) or run_as(owner_of(path), partial(_pending, path)) is not True:
        return
    source = source_of(settings)
    with offline(source, "migrate"):
        kept = keep(settings, source, {"why": "svc admin migrate"}, kind="migrate")
    print(f"kept as it was: {kept['path']}")


def _pending(path: str) -> bool:
    """Whether an existing database of svc has migrations to apply; a new or empty one has nothing to keep."""
    open_database(path, create=True)
    try:
        connection = database.connection()
        return bool(migrations.applied(connection) and migrations.pending(connection))
    finally:
        close_database()


def _confirm_new_database(args: Arguments, settings: Settings, path: str) -> None:
    """Ask before an empty database takes the place of one that is lost."""
    if (lost := lost_database(settings, path)) and not args.yes:
        output.note(lost)
        output.note(f"the way back is a snapshot: {restore_hint(settings, path)}")
        output.confirm("Begin an empty database instead?", args.yes, sudo_command())


def _confirm_new_secret(args: Arguments, settings: Settings, path: str) -> None:
    """Ask, after a check that the present secret is another one; raises Conflict where it is not."""
    found = run_as(owner_of(path), partial(secret_check.compare, path, settings.secret_file))
    is_gone = os.path.lexists(path) and not os.path.lexists(settings.secret_file)
    if not (is_gone or found == secret_check.FOREIGN):
        raise Conflict(
            f"{settings.secret_file} is not known to be another secret than that of {path}",
            hint="sudo svc admin doctor",
        )
    question = "Remove all passwords, and unset secret variables that cannot be decrypted?"
    output.confirm(question, args.yes, sudo_command())


def _migrate_as_owner(
    path: str, secret_file: str, trial: str | None, started_by: int, *, new_secret: bool
) -> dict[str, Any]:
    """Migrate and seed the database, create the secret; returns lines to print and the trial's start."""
    open_database(path, create=True)
    connection = database.connection()
    _require_sound(connection, path)
    lines = []
    if migrations.pending(connection):
        with hold(path, holder="svc admin migrate"):
            try:
                applied = migrations.apply(connection)
            except sqlite3.Error as error:
                raise DatabaseRefused(
                    f"a migration of {path} failed and was rolled back: {error}",
                    hint=admin_command("doctor", path),
                ) from None
        lines += [f"applied: {migration.number:04d} {migration.name}" for migration in applied]
    else:
        lines.append("schema: up to date, nothing to apply")
    if _seed("root", 0):
        lines.append("superuser: root, without a password (svc admin set-password root)")
    if started_by != 0 and _seed(own_name := Owner(started_by, 0).name, started_by):
        lines.append(f"superuser: {own_name}, for `svc server --dev` (single-user mode)")
    if ensure_secret(secret_file):
        lines.append(f"signing secret: {secret_file} created")
    share(path, secret_file)
    lines += _note_secret(path, secret_file, new_secret=new_secret)
    start = resolve(now(), trial)
    lines.append(f"trial: began {start[:10]}")
    close_database()
    return {"lines": lines, "trial": start}


def _require_sound(connection: sqlite3.Connection, path: str) -> None:
    """Raise DatabaseRefused for a damaged database; the process must then end without closing it.

    What the service has found is looked for as thoroughly as it looks; a whole check ends its condition.
    """
    known = condition.find_damage(path) is not None
    try:
        if known:
            wrong = check.update_condition(connection, path, RUN_S, indexes=True)
        else:
            fault = check.first_fault(connection, check.AT_START_S)
            if not fault and migrations.applied(connection) and not migrations.pending(connection):
                fault = migrations.difference(connection)
            wrong = faults.damaged(fault) if fault else None
    except sqlite3.DatabaseError as error:
        wrong = faults.error_of(error) or faults.damaged(str(error))
    if isinstance(wrong, StorageFailed):
        raise wrong
    if wrong is not None:
        raise DatabaseRefused(f"{path}: {wrong.message}", hint=faults.RESTORE)


def _note_secret(path: str, secret_file: str, *, new_secret: bool) -> list[str]:
    """Store the secret's check value; with `new_secret` end what depends on the former one."""
    secret = read_secret(secret_file)
    if not new_secret and secret_check.ensure(secret):
        return []
    if not new_secret:
        return [
            f"signing secret: {secret_check.sentence(secret_file)}; put that one back (docs/backup.md),"
            f" or if it is lost: {secret_check.ACCEPT}"
        ]
    with hold(path, holder="svc admin migrate"):
        passwords, sessions, variables = _end_what_is_keyed(secret)
    return [
        f"signing secret: {secret_file} is this database's from now on; removed: {passwords} passwords,"
        f" {sessions} sessions, {variables} values of secret variables"
    ]


def _end_what_is_keyed(secret: bytes) -> tuple[int, int, int]:
    """Remove what only the former secret could verify or decrypt; returns how many of each kind."""
    configuration.configure_only(secret=secret)
    with write():
        keyed = database.execute_sql(
            "UPDATE users SET password_hash = NULL, password_length = NULL WHERE password_hash LIKE ?",
            (f"{passwords.SCHEME}%",),
        ).rowcount
        sessions = database.execute_sql("DELETE FROM sessions").rowcount
        values = lost_values.unset()
        secret_check.replace(secret)
        note(ADMIN_NEW_SECRET, "", "ok", passwords=keyed, sessions=sessions, variables=values)
    return keyed, sessions, values


def _seed(name: str, uid: int) -> bool:
    """Create this superuser unless it exists or its name is not a valid account name; True if created."""
    if users.find(name) is not None or not re.fullmatch(USER_NAME, name):
        return False
    users.create(name, uid=uid, superuser=True, provisioning=users.READY)
    return True


def _keep_trial(settings: Settings, in_file: str | None, untrusted_start: str) -> None:
    """Write the root-owned file when it is missing or has a later time than the database."""
    start = checked(untrusted_start)
    if os.geteuid() == 0 and start and start <= now() and (in_file is None or start < in_file):
        write_file(settings.state_dir, start)


COMMANDS = (
    Command(
        "migrate",
        migrate,
        Argument("--new-secret", "the database's signing secret is lost: use the present one", kind="flag"),
        YES,
        examples=EXAMPLES,
        json=False,
    ),
)
