"""`svc admin restore`: a snapshot takes the place of the database, which is kept as a recovery set.

Checked, compared, asked, kept, prepared beside the database, and only then replaced by a rename. Before the
rename root notes what it is about to do; with that note an interrupted replacement is completed
(docs/decisions/0055-a-restore-is-noted-by-root.md). Root opens no database: its owner's processes do.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from json import dumps
from typing import Any

from svc.admin.audit_heads import HASH, RootsHeads
from svc.admin.backup import recovery_set, recovery_sets
from svc.admin.backup.offline import offline
from svc.admin.backup.snapshot import COPY_S, SPARED, Source, source_of
from svc.admin.backup.target import size
from svc.admin.backup.verify import opened_snapshot, record_at
from svc.admin.command import exit_on_signals, settings_of, sudo_command, wrap_db_errors
from svc.admin.own_files import ARCHIVED, RESTORES, ensure_directory
from svc.admin.restore import missing_files, new_database, what_changes
from svc.commandline import output
from svc.commandline.arguments import YES, Argument, Arguments, Command, path
from svc.db.location import HEADS, database_path, refuse_foreign_directory
from svc.domain.audit.chain import Head
from svc.domain.licence import trial
from svc.errors import (
    Conflict,
    DatabaseRefused,
    FileRefused,
    StorageFailed,
    StorageFull,
    SvcError,
    UsageError,
)
from svc.host import restoring, switching
from svc.host.ids import now
from svc.host.owner import admin_command, run_as
from svc.service_commands import start_command
from svc.settings import Settings

NEEDED = ("SVC_DB", "SVC_STATE_DIR", "SVC_RECOVERY_DIR")
USAGE = "svc admin restore [-h] [--db PATH] (PATH [--yes] | --finish)"
EXAMPLES = """\
sudo svc admin restore /var/backups/svc/svc-20261122T031700.123Z.db
sudo svc admin restore --finish"""


@wrap_db_errors
def restore(args: Arguments) -> int:
    """Replace the database by a snapshot.

    The service must be stopped first (`sudo systemctl stop svc`), and the snapshot is checked first: its
    digest, integrity, foreign keys, and that its schema is not newer. Says what
    the database has that the snapshot has not, and asks on a terminal; elsewhere
    --yes is required. The database that is replaced is kept as a recovery set in
    SVC_RECOVERY_DIR, from which it can be restored again.

    An older snapshot is migrated. All sessions end, GPUs are released, and what
    was revoked or closed since the snapshot stays so. The server then looks for
    the container of each workspace, and says of which there is none.

    An interrupted restore leaves the old database, or one that nothing uses until
    --finish has completed the replacement.
    """
    if bool(args.path) == args.finish:
        raise UsageError("one of PATH and --finish is required", hint="svc admin restore --help")
    exit_on_signals()
    settings = settings_of(args, NEEDED)
    _ensure_directory(settings)
    source = source_of(settings)
    switching.require_none(settings.state_dir, source.database)
    with ExitStack() as stack:
        try:
            stack.enter_context(offline(source, "restore"))
        except DatabaseRefused:  # the service need not be stopped for a snapshot that is none
            if args.path:
                with opened_snapshot(os.path.abspath(args.path), "restore") as snapshot:
                    require_restorable(os.path.abspath(args.path), snapshot)
            raise
        note = restoring.find(settings.state_dir, source.database)
        if args.finish:
            return finish(settings, source, note)
        return perform(settings, source, args, is_known=note is None or completes(settings, source, note))


def perform(settings: Settings, source: Source, args: Arguments, *, is_known: bool) -> int:
    """Check, compare, ask, keep, prepare and replace; `is_known`: the present database is whole."""
    name = os.path.abspath(args.path)
    if os.path.lexists(source.database):
        recovery_set.require_directory(settings, source.database)
    with opened_snapshot(name, "restore") as snapshot:
        record = require_restorable(name, snapshot)
        lines = plan(settings, source, record, snapshot, is_known=is_known)
        for line in lines:
            print(output.visible(line))
        output.confirm(f"Replace {source.database} by {name}?", args.yes, sudo_command())
        kept = keep(settings, source, record) if os.path.lexists(source.database) else None
        note = prepare(settings, source, record, snapshot, kept, is_known=is_known)
    replace(settings, source, note)
    report(note)
    prune(settings, source, note)
    for line in (
        *missing_files.find(settings, source.owner, name),
        *missing_files.foreign_secret(settings, source.owner, name),
    ):
        output.note(line)
    return 0


def finish(settings: Settings, source: Source, note: dict[str, Any] | None) -> int:
    """Complete the replacement that was interrupted."""
    if note is None:
        raise Conflict(f"no restore of {source.database} was interrupted", hint="svc admin restore --help")
    if not completes(settings, source, note):
        again = note["kept"] or note["snapshot"]
        raise DatabaseRefused(
            f"the database that was to replace {source.database} is gone, so that it must be restored again",
            hint=admin_command(f"restore {output.shell_quote(again)}", source.database),
        )
    report(note)
    return 0


def completes(settings: Settings, source: Source, note: dict[str, Any]) -> bool:
    """Complete an interrupted replacement; False when the new database is gone."""
    try:
        replace(settings, source, note, is_noted=True)
    except DatabaseRefused:
        return False
    return True


def require_restorable(name: str, snapshot: int) -> dict[str, Any]:
    """What the snapshot is; raises FileRefused for one that cannot be restored."""
    record = record_at(name, snapshot)
    if not record["restorable"]:
        raise FileRefused(
            f"{name} cannot be restored, and nothing was changed: {record['problem']}",
            hint=f"sudo svc admin backup --verify {output.shell_quote(name)}",
        )
    return record


# --- before ------------------------------------------------------------------------------


def plan(
    settings: Settings, source: Source, record: dict[str, Any], snapshot: int, *, is_known: bool
) -> list[str]:
    """What is lost and what ends, for a person to read before the question."""
    origin = f", made {record['created_at']} on {record['host']}" if "created_at" in record else ""
    lines = [f"{record['path']}: schema {record['schema']}{origin}; digest {record['digest']}"]
    if not os.path.lexists(source.database):
        return [*lines, f"There is no database at {source.database}; nothing is replaced, and all tokens end"]
    remembered = RootsHeads(settings.state_dir, HEADS).get(source.database)
    work = partial(what_changes.compare, source.database, snapshot, remembered.id, os.getpid())
    found = what_changes.checked(run_as(source.owner, work))
    if remembered.id and found["recorded"] not in ("", remembered.hash):
        lines.append(
            f"Its audit differs in row {remembered.id} from what root remembers of {source.database}:"
            " it is of another host, or was rewritten"
        )
    if not (found["readable"] and is_known):
        return [
            *lines,
            f"{source.database} cannot be read: what it has more than the snapshot is not known, and is lost;"
            " all tokens end, and accounts that were closed since are open again",
        ]
    lost = [_lost(kind, each) for kind, each in found["newer"].items()]
    changed = [output.plural(number, kind) for kind, number in found["changed"].items()]
    lines += ["What the snapshot has not is lost:", *lost] if lost else ["The snapshot has every row."]
    if changed:
        lines.append(f"Changes since then are lost of: {', '.join(changed)}")
    if not found["related"]:
        lines.append(
            "It is a snapshot of another installation: all tokens end, accounts are as in the snapshot."
        )
    return [*lines, "All sessions end."]


def _lost(kind: str, found: dict[str, Any]) -> str:
    names = ", ".join(found["names"]) + (", ..." if len(found["names"]) < found["count"] else "")
    return f"  {output.plural(found['count'], kind)}" + (f": {names}" if found["names"] else "")


# --- the replacement ---------------------------------------------------------------------


def keep(settings: Settings, source: Source, record: dict[str, Any]) -> dict[str, Any]:
    """Keep the present database as a recovery set."""
    why = {
        "why": f"svc admin restore {record['path']}",
        "snapshot": {key: record[key] for key in ("path", "sha256", "schema")},
    }
    with recovery_set.directory(settings, source.database) as top:
        return recovery_set.keep(source, top, why)


def prune(settings: Settings, source: Source, note: dict[str, Any]) -> None:
    """Remove old recovery sets; the restore is complete whether or not that succeeds."""
    try:
        spared = recovery_sets.in_use(switching.find(settings.state_dir)) | recovery_sets.in_use(note)
        spared.add(os.path.basename(os.path.dirname(note["kept"])))
        with recovery_set.directory(settings, source.database) as top:
            recovery_sets.prune(top, recovery_sets.here(source.database), spared)
    except (SvcError, OSError) as error:
        output.note(f"old recovery sets are not removed: {error}")


def prepare(
    settings: Settings,
    source: Source,
    record: dict[str, Any],
    snapshot: int,
    kept: dict[str, Any] | None,
    *,
    is_known: bool,
) -> dict[str, Any]:
    """Have the new database made beside the present one; returns the note on its taking the place."""
    is_known = is_known and kept is not None and not kept["raw"]
    _require_room(source, record["size_bytes"])
    detail = {
        "snapshot": record["path"], "sha256": record["sha256"], "kept": kept["id"] if kept else "",
        "unknown": not is_known,
    }  # fmt: skip
    work = partial(
        new_database.prepare, source.database, snapshot, record["sha256"],
        trial.read_file(settings.state_dir), detail, os.getpid(),
    )  # fmt: skip
    result = checked(run_as(source.owner, work, COPY_S))
    return {
        "database": source.database, "at": now(), "snapshot": record["path"], "sha256": record["sha256"],
        "kept": kept["database"] if kept else "", **result,
    }  # fmt: skip


def checked(untrusted: Any) -> dict[str, Any]:
    """The result of the preparation with the types that it must have; raises SvcError."""
    try:
        rows = [untrusted["head"], untrusted["archived"]]
        numbers = [untrusted[key] for key in ("inode", "applied", "sessions", "revoked", "closed")]
        numbers += [number for number, _ in rows]
        right = all(type(number) is int and 0 <= number < 2**63 for number in numbers)
        if right and all(type(hash_) is str and HASH.fullmatch(hash_) for _, hash_ in rows):
            keys = ("inode", "applied", "sessions", "revoked", "closed", "head", "archived")
            return {key: untrusted[key] for key in keys}
    except (TypeError, KeyError, ValueError):
        pass
    raise SvcError("preparing the restored database returned no usable result; nothing was replaced")


def replace(settings: Settings, source: Source, note: dict[str, Any], *, is_noted: bool = False) -> None:
    """Put the new database in place; each step may be repeated, and the note is there during all of them.

    Raises DatabaseRefused when the new one is gone, StorageFailed when a step failed.
    """
    try:
        if not is_noted:
            restoring.put(settings.state_dir, note)
        take_place(settings, source, note)
        restoring.remove(settings.state_dir, source.database)
    except DatabaseRefused:
        raise
    except (OSError, SvcError) as error:
        raise interrupted(settings, source, error) from None


def interrupted(settings: Settings, source: Source, error: Exception) -> SvcError:
    """The error for a step that failed: with the note there, the command that completes the replacement."""
    reason = getattr(error, "message", "") or getattr(error, "strerror", "") or str(error)
    if restoring.find(settings.state_dir, source.database) is None:
        hint = admin_command("doctor", source.database)
        return StorageFailed(f"{source.database} was not replaced: {reason}", hint=hint)
    return StorageFailed(
        f"replacing {source.database} was interrupted: {reason}; nothing uses it until that is complete",
        hint=admin_command("restore --finish", source.database),
    )


def take_place(settings: Settings, source: Source, note: dict[str, Any]) -> None:
    """The steps between the note and its removal.

    Root remembers the restored audit from now on, and that it was asked for: the doctor compares.
    """
    run_as(source.owner, partial(new_database.switch, source.database, note["inode"], os.getpid()))
    heads, allowed = (RootsHeads(settings.state_dir, name) for name in (HEADS, ARCHIVED))
    remember(settings, note, heads.get(source.database))
    head, moved = Head(*note["head"]), Head(*note["archived"])
    if head.hash:
        heads.put(source.database, head)
    if moved.id and moved.id >= allowed.get(source.database).id:
        allowed.put(source.database, moved)


def remember(settings: Settings, note: dict[str, Any], before: Any) -> None:
    """Add a line to root's own record of restores, unless it is there already."""
    if os.geteuid() != 0:
        return
    keys = ("at", "database", "snapshot", "sha256", "kept", "head", "archived")
    line = dumps({key: note[key] for key in keys} | {"head_before": list(before)}) + "\n"
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(os.path.join(settings.state_dir, RESTORES), flags, 0o600), "r+") as file:
        os.fchmod(file.fileno(), 0o600)
        text = file.read()
        if f'"at": "{note["at"]}"' in text:
            return
        cut = "\n" if text and not text.endswith("\n") else ""  # a line that an interrupted run left
        file.write(cut + line)
        file.flush()
        os.fsync(file.fileno())


def report(note: dict[str, Any]) -> None:
    """Say what was done, and what to do next."""
    parts = [f"{note['database']} is restored from {note['snapshot']}"]
    if note["applied"]:
        parts.append(f"{output.plural(note['applied'], 'migration')} applied")
    parts.append(f"{output.plural(note['sessions'], 'session')} ended")
    if note["revoked"]:
        parts.append(f"{output.plural(note['revoked'], 'token')} revoked")
    if note["closed"]:
        parts.append(f"{output.plural(note['closed'], 'account')} closed again (svc admin list-users)")
    print(output.visible("; ".join(parts)))
    if note["kept"]:
        again = admin_command(f"restore {output.shell_quote(note['kept'])}", note["database"])
        way = again if not note["kept"].endswith("damaged.db") else f"{note['kept']}, damaged as it was"
        print(output.visible(f"what it replaced: {way}"))
    output.note(f"next: sudo svc admin doctor, then: {start_command()}")


def _ensure_directory(settings: Settings) -> None:
    """On a new host: the directory of the database, as `migrate` makes it."""
    database = database_path(settings)
    if not os.path.lexists(database):
        refuse_foreign_directory(settings)
        ensure_directory(os.path.dirname(database))


def _require_room(source: Source, needed: int) -> None:
    directory = os.path.dirname(source.database)
    status = os.statvfs(directory)
    room = status.f_bavail * status.f_frsize
    if room < needed + SPARED:
        raise StorageFull(
            f"not enough room in {directory}: the restored database needs {size(needed)} beside the present"
            f" one, {size(room)} are free; nothing was changed",
            hint=f"df -h {directory}",
        )


COMMANDS = (
    Command(
        "restore",
        restore,
        Argument("PATH", "the snapshot", type=path, optional=True, dest="path"),
        Argument("--finish", "complete the replacement that an interrupted restore began", kind="flag"),
        YES,
        examples=EXAMPLES,
        usage=USAGE,
        json=False,
    ),
)
