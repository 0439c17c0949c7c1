"""`svc admin audit`: the audit's rows as a file, and old ones moved out of the database."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from svc.actions.table import ADMIN_AUDIT_ARCHIVE
from svc.admin.actor import note
from svc.admin.audit_heads import RootsHeads
from svc.admin.checks.audit import audit_chain
from svc.admin.command import named_file, settings_of, wrap_db_errors
from svc.admin.database import as_owner
from svc.admin.findings import Host
from svc.admin.own_files import ARCHIVED
from svc.commandline import output
from svc.commandline.arguments import YES, Argument, Arguments, Command, CommandGroup, path
from svc.db.location import database_path
from svc.domain.audit import archive
from svc.domain.audit.chain import Head, archived, hash_of
from svc.errors import Conflict, DatabaseRefused, FileRefused, SvcError
from svc.host.owner import owner_of
from svc.settings import Settings
from svc_helper.atomic_file import sync_directory
from svc_helper.wire.quick_json import dumps

WITHIN_S = 3600.0  # of one walk through all rows: a million take half a minute
EXPORT_EXAMPLES = """\
sudo svc admin audit export --out /root/audit.jsonl
sudo svc admin audit export | jq -r 'select(.action == "auth.login") | .at, .user_name'"""
ARCHIVE_EXAMPLES = "sudo svc admin audit archive --before 2026-01-01 --out /root/audit-2025.jsonl --yes"
VERIFY_EXAMPLES = "sudo svc admin audit verify /root/audit-2024.jsonl /root/audit-2025.jsonl"
OUT = Argument("--out", "the new file; `-` (the default) is standard output", metavar="FILE", type=path)
ARCHIVE_OUT = Argument("--out", "the new file", metavar="FILE", type=named_file, required=True)


def date(text: str) -> str:
    """A day, or a time with its offset from UTC, as the rows have it."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.astimezone()
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


BEFORE = Argument(
    "--before", "rows older than this day or time (2026-01-31, 2026-01-31T12:00Z)", metavar="TIME", type=date,
    required=True,
)  # fmt: skip


@wrap_db_errors
def audit_export(args: Arguments) -> int:
    """Copy all rows of the audit into a file, as JSON lines; the database keeps them.

    The file has the hash of each row and of the row before the first, so that
    `svc admin audit verify` finds what was changed in it. The service may run.
    """
    settings = settings_of(args)
    if args.out in (None, "-"):
        with TemporaryFile() as file:
            _as_owner(settings, lambda: archive.write_file(file))
            _copy_to_standard_output(file)
        return 0
    with _new_file(args.out) as file:
        span = _as_owner(settings, lambda: archive.write_file(file))
    print(output.visible(f"{_rows(span)} of the audit are in {args.out}"))
    return 0


@wrap_db_errors
def audit_archive(args: Arguments) -> int:
    """Move the rows before a time out of the database, into a file.

    The database keeps all rows unless this is done. The file is written, made
    durable and verified first; only then are its rows removed, while the service
    goes on. The chain goes on from the file to the database. Keep the file:
    owners and administrators do not see its rows any more.
    """
    settings = settings_of(args, ("SVC_DB", "SVC_STATE_DIR"))
    _require_intact(settings)
    found = _as_owner(settings, lambda: archive.last_before(args.before))
    if found is None:
        raise Conflict(
            f"no row of the audit is older than {args.before}", hint="svc admin audit archive --help"
        )
    until = Head(*found)
    command = f"svc admin audit archive --before {args.before} --out {output.shell_quote(args.out)}"
    output.confirm(f"Move the rows up to {until.id} out of the database?", args.yes, command)
    with _new_file(args.out) as file:
        span = _as_owner(settings, lambda: archive.write_file(file, until.id))
    # Before they go: what the doctor does not find recorded was removed by somebody else.
    RootsHeads(settings.state_dir, ARCHIVED).put(os.path.abspath(database_path(settings)), until)

    def remove() -> int:
        removed = archive.remove(until)
        note(ADMIN_AUDIT_ARCHIVE, str(until.id), "ok", rows=removed, until_hash=until.hash)
        return removed

    as_owner(settings, remove, WITHIN_S)
    print(output.visible(f"{_rows(span)} of the audit are in {args.out}, and no longer in the database"))
    return 0


@wrap_db_errors
def audit_verify(args: Arguments) -> int:
    """Verify exported or archived rows: each file, and that one goes on from the other.

    Also says whether the database goes on from the last file. It finds rows that
    were changed, removed, moved or inserted; whoever may write the file and knows
    how can make a whole new chain: keep the hash that it prints somewhere else.
    """
    settings = settings_of(args)
    records: list[dict[str, Any]] = []
    for name in args.files:
        with _open(name) as file:
            rows, after, until = _as_owner(settings, partial(archive.read_file, file), name)
        if records and records[-1]["until"] != Head(*after)._asdict():
            raise FileRefused(f"{name} does not go on from {records[-1]['file']}", hint="name them in order")
        records.append(
            {"file": name, "rows": rows, "after": Head(*after)._asdict(), "until": Head(*until)._asdict()}
        )
    last = Head(**records[-1]["until"])
    goes_on = bool(as_owner(settings, lambda: archived() == last or hash_of(last.id) == last.hash))
    if args.json:
        output.raw(dumps({"items": records, "database_goes_on": goes_on}).encode() + b"\n")
        return 0 if goes_on else 1
    for record in records:
        until = record["until"]
        print(
            output.visible(f"{record['file']}: {record['rows']} rows, to row {until['id']}, {until['hash']}")
        )
    print("the database goes on from there" if goes_on else "the database does not go on from there")
    return 0 if goes_on else 1


def _require_intact(settings: Settings) -> None:
    """Raise DatabaseRefused unless the doctor finds the chain whole; root remembers its newest row then."""
    database = database_path(settings)
    for finding in audit_chain(Host(settings, database, owner_of(database))):
        if finding.level != "ok":
            raise DatabaseRefused(f"the audit is not whole: {finding.found}", hint="sudo svc admin doctor")


def _as_owner(settings: Settings, work: Callable[[], Any], name: str = "") -> Any:
    """As as_owner(), with errors of the file as FileRefused."""

    def done() -> Any:
        try:
            return work()
        except OSError as error:
            raise FileRefused(f"the file cannot be written: {error.strerror}") from None

    try:
        return as_owner(settings, done, WITHIN_S)
    except SvcError as error:
        if name and isinstance(error, FileRefused):
            raise FileRefused(f"{name}: {error.message}", hint="export or restore the file again") from None
        raise


def _new_file(name: str) -> Any:
    """A context with a new file of root's alone; after an error it is removed."""

    @contextmanager
    def created() -> Iterator[BinaryIO]:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, 0o600)
        except OSError as error:
            raise FileRefused(f"cannot create {name}: {error.strerror}", hint="choose another name") from None
        try:
            with open(descriptor, "wb") as file:
                yield file
            sync_directory(os.path.dirname(name))
        except BaseException:  # whatever ends it, no part of a file stays
            os.unlink(name)
            raise

    return created()


def _open(name: str) -> BinaryIO:
    try:
        if name == "-":
            return open(os.dup(0), "rb")  # the owner's process has no standard input
        return open(os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except OSError as error:
        raise FileRefused(f"cannot read {name}: {error.strerror}", hint="check the name") from None


def _copy_to_standard_output(file: BinaryIO) -> None:
    file.seek(0)
    sys.stdout.flush()
    copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _rows(span: Any) -> str:
    count = int(span[0])
    return f"{count} row{'' if count == 1 else 's'}"


COMMANDS = (
    CommandGroup(
        "audit",
        "The audit's rows as a file, and old ones out of the database.",
        Command("export", audit_export, OUT, examples=EXPORT_EXAMPLES, json=False),
        Command("archive", audit_archive, BEFORE, ARCHIVE_OUT, YES, examples=ARCHIVE_EXAMPLES, json=False),
        Command(
            "verify",
            audit_verify,
            Argument(
                "FILE",
                "exported or archived rows, the oldest first; - is standard input",
                kind="list",
                dest="files",
            ),
            Argument("--json", "print the result as JSON", kind="flag"),
            examples=VERIFY_EXAMPLES,
            json=False,
        ),
    ),
)
