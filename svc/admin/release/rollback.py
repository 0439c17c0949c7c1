"""`svc admin rollback`: recovery sets listed, made, and applied: the program and the database of before.

Nothing is imported after the package was exchanged (svc.admin.release.switch).
"""

from __future__ import annotations

import os
from typing import Any

from svc.admin.backup import package, recovery_set, recovery_sets
from svc.admin.backup.snapshot import Source, check_of, source_of
from svc.admin.backup.target import alone
from svc.admin.backup.verify import NOBODY, compared, opened_snapshot, side_of
from svc.admin.command import exit_on_signals, for_database, settings_of, sudo_command, wrap_db_errors
from svc.admin.release import switch
from svc.admin.release.switch import Outcome, Switch
from svc.admin.restore.restore import plan
from svc.commandline import output
from svc.commandline.arguments import YES, Argument, Arguments, Command, CommandGroup
from svc.db.migrate import latest
from svc.errors import Conflict, FileRefused, NotFound, UsageError
from svc.host import switching
from svc.host.owner import Owner, service_owner
from svc.host.restoring import require_none
from svc.settings import Settings

NEEDED = (
    "SVC_DB", "SVC_STATE_DIR", "SVC_RECOVERY_DIR", "SVC_JWT_SECRET_FILE", "SVC_LICENSE_PATH", "SVC_TLS_CERT",
)  # fmt: skip
USAGE = "svc admin rollback apply [-h] [--db PATH] (ID [--yes] | --finish)"


def _yes_or_why(value: Any, _human: bool) -> str:
    return value or "yes"


def _yes_or_no(value: Any, _human: bool) -> str:
    return "no" if value else "yes"


COLUMNS = (
    ("ID", "id", output.plain),
    ("VERSION", "version", output.plain),
    ("COMMIT", "commit", output.plain),
    ("SCHEMA", "schema", output.plain),
    ("SIZE", "size_bytes", output.size),
    ("WHY", "why", output.plain),
    ("APPLICABLE", "problem", _yes_or_why),
    ("INSTEAD", "remedy", output.plain),
)
ON_TERMINAL = (*COLUMNS[:-2], ("APPLICABLE", "problem", _yes_or_no))


@wrap_db_errors
def rollback_list(args: Arguments) -> int:
    """List the recovery sets, the newest first, and whether each can be applied.

    Lists retained pre-upgrade recovery sets and whether each can be applied.
    A set is what was before an upgrade, a restore or a migration: the database,
    and with an installed package the program. For a set that cannot be applied:
    exactly why not, and what can be done with it instead. Sizes are compared
    here, digests only by `apply`. Columns: id, version, commit and schema that
    it would bring back, size, why it was made, applicable (yes, or why not),
    command that can be run instead. On a terminal the reason and the command are
    below the table.
    """
    settings = settings_of(args, NEEDED)
    source = source_of(settings)
    directory = recovery_set.path_of(settings, source.database)
    records: list[dict[str, Any]] = []
    if os.path.lexists(directory):
        with recovery_set.directory(settings, source.database, create=False) as top:
            records = recovery_sets.every(top, recovery_sets.here(source.database))
    recovery_sets.report(settings)
    if args.json:
        output.items_json(records)
        return 0
    human = output.on_terminal() and not args.quiet
    empty = f"there is no recovery set in {directory}"
    output.listing(args, ON_TERMINAL if human else COLUMNS, records, empty, spare=("COMMIT", "SCHEMA"))
    for record in records if human else ():
        if record["problem"]:
            print(output.visible(f"{record['id']} cannot be applied: {record['problem']}"))
        if record["remedy"]:
            print(output.visible(f"  instead: {record['remedy']}"))
    return 0


@wrap_db_errors
def rollback_keep(args: Arguments) -> int:
    """Keep the present program and database as a recovery set.

    The package does so before an upgrade, and `svc admin update apply`. Whether or
    not the service runs; what it writes afterwards is not in the set, so that it is
    better stopped. Without an installed package the set holds the database alone.
    """
    exit_on_signals()
    settings = settings_of(args, NEEDED)
    source = source_of(settings)
    require_none(settings.state_dir, source.database)
    if not os.path.lexists(source.database):
        output.note(f"there is no database at {source.database} yet: nothing is kept")
        return 0
    why = {"why": args.why, "next_version": args.for_version or ""}
    with alone(source.lock, "rollback"):
        kept = keep(settings, source, why, kind="upgrade", program=package.own())
    if output.on_terminal():
        print(output.visible(f"{kept['path']}: kept"))
    else:
        print(output.visible(kept["id"]))
    return 0


def keep(
    settings: Settings, source: Source, why: dict[str, Any], *, kind: str, program: Any = None
) -> dict[str, Any]:
    """Keep the present state as a set, then remove old ones; the caller has the lock of backups."""
    with recovery_set.directory(settings, source.database) as top:
        kept = recovery_set.keep(source, top, why, kind=kind, program=program)
        spared = {kept["id"], *recovery_sets.in_use(switching.find(settings.state_dir))}
        recovery_sets.prune(top, recovery_sets.here(source.database), spared)
    recovery_sets.report(settings)
    return kept


@wrap_db_errors
def rollback_apply(args: Arguments) -> int:
    """Put the program and the database of a recovery set in place of the present ones.

    Restores the set's binary, application files and paired database. Everything
    is verified first, then it says what is lost, and asks on a terminal; elsewhere
    --yes is required. The present program and database are kept as a set of their
    own. The service is stopped meanwhile, and started and asked for its health if
    it ran before; if it does not get healthy, everything goes back to what was
    before, and the exit code is 1. Workspaces run on.

    Sessions end, and accounts and tokens that were closed since stay so, as after
    `svc admin restore`. After an interruption --finish undoes it, or completes what
    was complete but for the start.
    """
    if bool(args.id) == args.finish:
        raise UsageError("one of ID and --finish is required", hint="svc admin rollback apply --help")
    settings = settings_of(args, switch.NEEDED)
    switch.require_root()
    if args.finish:
        return _report(switch.finish(settings))
    change = _verified(settings, args)
    return _report(switch.switch(settings, change))


def _verified(settings: Settings, args: Arguments) -> Switch:
    """The set as what is switched to: whole, applicable, and confirmed."""
    source = source_of(settings)
    require_none(settings.state_dir, source.database)
    directory = recovery_set.path_of(settings, source.database)
    if not recovery_set.NAME.fullmatch(args.id) or not os.path.lexists(os.path.join(directory, args.id)):
        raise NotFound(f"there is no recovery set {args.id}", hint=for_database("rollback list", settings))
    with recovery_set.directory(settings, source.database, create=False) as top:
        record = recovery_sets.record_of(top, args.id, recovery_sets.here(source.database))
        if not record["applicable"]:
            raise Conflict(
                f"{args.id} cannot be applied: {record['problem']}",
                hint=record["remedy"] or for_database("rollback list", settings),
            )
        manifest = recovery_sets.require_whole(top, args.id)
    path = os.path.join(record["path"], recovery_set.PROGRAM)
    fields, program = package.fields(path), manifest["program"]
    if fields[:3] != (package.NAME, program["version"], program["architecture"]):
        raise FileRefused(
            f"{path} is not what the manifest says: {' '.join(fields[:3])}",
            hint=for_database("rollback list", settings),
        )
    lines = _plan(settings, source, record, program["schema"])
    for line in lines:
        print(output.visible(line))
    question = f"Put svc {record['version']} and its database of {record['created_at']} in place?"
    output.confirm(question, args.yes, sudo_command())
    digest = next(each["sha256"] for each in manifest["files"] if each["name"] == recovery_set.PROGRAM)
    why = f"svc admin rollback apply {args.id}"
    return Switch(path, digest, record["version"], why, database=record["database"])


def _plan(settings: Settings, source: Source, record: dict[str, Any], known: int) -> list[str]:
    """Check the snapshot as the set's program would; returns what is lost, for people."""
    path = record["database"]
    with opened_snapshot(path, "backup --verify") as snapshot:
        reader = (service_owner() or NOBODY) if os.geteuid() == 0 else Owner(os.geteuid(), os.getegid())
        check = check_of(snapshot, reader)
        digest, changed = compared(check, side_of(path))
        newer = (
            f"its schema {check.schema} is newer than its program's {known}" if check.schema > known else ""
        )
        # what this program thinks of a newer schema does not count: the set's own restores it
        refused = check.refused if check.schema == record["schema"] and not check.schema > _schema() else ""
        if problem := changed or check.fault or check.foreign or newer or refused:
            raise FileRefused(f"{path} cannot be restored, and nothing was changed: {problem}")
        described = record | {"path": path, "schema": check.schema, "digest": digest}
        del described["created_at"]
        return plan(settings, source, described, snapshot, is_known=True)


def _schema() -> int:
    return latest()


def _report(outcome: Outcome) -> int:
    """Say how it ended; without an import, since the program's files may be of the other version by now."""
    kept = f"; what was before is kept as {outcome.kept}" if outcome.kept and outcome.switched else ""
    state = "the service runs and is healthy" if outcome.started else "the service is stopped"
    if outcome.switched:
        print(output.visible(f"switched{kept}; {state}"))
        output.note(
            f"next: {'' if outcome.started else 'sudo systemctl start svc, then: '}sudo svc admin doctor"
        )
        return 0
    print(output.visible(f"nothing has changed: {outcome.reason}; {state}"))
    output.note("next: sudo svc admin doctor")
    return 1


COMMANDS = (
    CommandGroup(
        "rollback",
        "Go back to the program and database of before an upgrade.",
        Command(
            "list",
            rollback_list,
            Argument("--json", "print the sets as JSON", kind="flag"),
            examples="sudo svc admin rollback list\nsudo svc admin rollback list --json",
            json=False,
        ),
        Command(
            "apply",
            rollback_apply,
            Argument("ID", "the set, as `rollback list` names it", optional=True, dest="id"),
            Argument("--finish", "complete or undo what an interruption has left", kind="flag"),
            YES,
            examples="sudo svc admin rollback apply upgrade-20261122T164523.123Z\n"
            "sudo svc admin rollback apply --finish",
            usage=USAGE,
            json=False,
        ),
        Command(
            "keep",
            rollback_keep,
            Argument("--why", "why it is made, for the list", metavar="TEXT", required=True),
            Argument("--for-version", "the version that comes next", metavar="V"),
            examples='sudo svc admin rollback keep --why "before the upgrade"',
            json=False,
        ),
    ),
)
