"""`svc admin backup`: a snapshot of the database while the service runs, checked before it gets its name.

Root opens no database: processes of the database's owner copy and check it, through descriptors of files
that root has made where nobody else can write (docs/backup.md).
"""

from __future__ import annotations

import os
import re
from typing import Any

from svc.admin.backup import snapshots
from svc.admin.backup.host_files import ASK
from svc.admin.backup.snapshot import Source, require_free, source_of, write, write_raw
from svc.admin.backup.target import alone, opened
from svc.admin.backup.verify import verify
from svc.admin.command import exit_on_signals, named_file, print_json, settings_of, wrap_db_errors
from svc.commandline import output
from svc.commandline.arguments import FORCE, Argument, Arguments, Command, path, whole
from svc.errors import FileRefused, UsageError
from svc.host.restoring import require_none
from svc.settings import Settings

NEEDED = ("SVC_DB", "SVC_STATE_DIR")
FOR_SECRETS = ("SVC_JWT_SECRET_FILE", "SVC_TLS_CERT")
KEEP_MAX = 100_000
USAGE = """\
svc admin backup [-h] [--db PATH] (--out PATH [--force] [--raw] | [--dir DIR] --retention N | --verify PATH)
       [--with-secrets] [--json]"""
EXAMPLES = """\
sudo svc admin backup --retention 14
sudo svc admin backup --dir /srv/backups/svc --retention 30
sudo svc admin backup --out /root/before-the-move.db --with-secrets
sudo svc admin backup --verify /root/before-the-move.db"""


@wrap_db_errors
def backup(args: Arguments) -> int:
    """Write a snapshot of the database, whether or not the service runs.

    With --out into this file; with --retention into a new file in the directory
    of backups, of which the newest N are kept. A snapshot is one plain SQLite
    file that only root can read. Before it gets its name, its integrity, its
    foreign keys and its schema are checked. Beside it are a file with its digest
    and what it holds (.json), and the small files of this host (.host.tar):
    settings, registry policy, enrolment list, certificate, licence. The signing
    secret is not among them unless --with-secrets is given: docs/backup.md.

    With --verify nothing is written: it says what a snapshot holds, and whether
    this program could restore it.

    Prints nothing without a terminal, unless it fails or --json is given. Exit
    code 0 when the snapshot is complete, else 1: a damaged database, a full
    disk, another backup under way. An interrupted run leaves no file that looks
    like a snapshot.

    Every night, as a line of /etc/cron.d/svc-backup:

        17 3 * * * root /usr/local/bin/svc admin backup --retention 14
    """
    require_one_form(args)
    exit_on_signals()
    if args.verify:
        return verify(args, settings_of(args, ()))
    settings = settings_of(args, (*NEEDED, *FOR_SECRETS) if args.with_secrets else NEEDED)
    source = source_of(settings)
    require_none(settings.state_dir, source.database)
    record = into_directory(args, settings, source) if args.retention else into_file(args, source)
    snapshots.report(settings)
    if args.json:
        print_json(record)
    elif output.on_terminal():
        print(output.visible(sentence(record)))
        if left_out := secrets_left_out(record):
            output.note(f"not beside it: {left_out}; another host needs them: --with-secrets")
    return 0


def require_one_form(args: Arguments) -> None:
    """Raise UsageError unless the options are those of one of the forms."""
    forms = [name for name in ("out", "retention", "verify") if getattr(args, name) is not None]
    hint = "svc admin backup --help"
    if len(forms) != 1:
        raise UsageError("exactly one of --out PATH, --retention N and --verify PATH is required", hint=hint)
    allowed = {"out": {"force", "raw", "with_secrets"}, "retention": {"dir", "with_secrets"}, "verify": set()}
    for name in ("dir", "force", "raw", "with_secrets"):
        if getattr(args, name) and name not in allowed[forms[0]]:
            raise UsageError(f"--{name.replace('_', '-')} does not go with --{forms[0]}", hint=hint)
    if args.raw and args.with_secrets:
        raise UsageError("--with-secrets does not go with --raw", hint=hint)


def into_directory(args: Arguments, settings: Settings, source: Source) -> dict[str, Any]:
    """A snapshot with a name of its own; then only the newest ones are kept."""
    directory = os.path.abspath(args.dir or settings.backup_dir)
    is_default = not args.dir and settings.resolved["SVC_BACKUP_DIR"].source == "default"
    instead = f"sudo svc admin backup --dir /var/backups/svc --retention {args.retention}"
    with alone(source.lock), opened(directory, instead=instead, create=is_default) as target:
        snapshots.remove_stale(target)
        older = snapshots.complete(target, source.database)
        name = snapshots.new_name(target)
        number = older[-1].number + 1 if older else 1
        record = write(source, target, name, number=number, with_secrets=args.with_secrets)
        try:
            removed = snapshots.prune(target, source.database, args.retention, name)
        except OSError as error:
            raise FileRefused(
                f"{record['path']} is complete, but older ones could not be removed: {error.strerror}",
                hint=f"ls -l {directory}",
            ) from None
    return record | {"kept": len(older) + 1 - len(removed), "removed": removed}


def into_file(args: Arguments, source: Source) -> dict[str, Any]:
    """A snapshot in the file that was named."""
    directory, name = os.path.split(os.path.abspath(args.out))
    command = f"sudo svc admin backup {'--raw ' if args.raw else ''}--out "
    instead, again = (command + output.shell_quote(path) for path in (f"/root/{name}", args.out))
    with alone(source.lock), opened(directory, instead=instead) as target:
        require_free(source, target, name, force=args.force, again=f"{again} --force")
        of_this_name = rf"{re.escape(name)}(-wal|{re.escape(snapshots.SIDE)}|{re.escape(snapshots.HOST)})?"
        target.remove_stale_drafts(re.compile(of_this_name))
        if args.raw:
            return write_raw(source, target, name)
        return write(source, target, name, with_secrets=args.with_secrets)


def sentence(record: dict[str, Any]) -> str:
    """What was done, for people."""
    text = f"{record['path']}: {output.size(record['size_bytes'], True)}, "
    if record["raw"]:
        lost = record["unreadable_bytes"]
        unread = f"; {output.size(lost, True)} could not be read and are zeros" if lost else ""
        return f"{text}a raw copy, not checked{unread}"
    text += f"schema {record['schema']}, checked"
    if record["refused"]:
        text += f"; this program cannot restore it: {record['refused']}"
    if "kept" in record:
        text += f"; {record['kept']} kept, {len(record['removed'])} removed"
    return text


def secrets_left_out(record: dict[str, Any]) -> str:
    """The secrets that exist and are not in the archive, for people."""
    left_out = record.get("host_files", {}).get("left_out", {})
    return " and ".join(sorted(name for name, why in left_out.items() if why == ASK))


COMMANDS = (
    Command(
        "backup",
        backup,
        Argument("--out", "write the snapshot into this file", metavar="PATH", type=named_file),
        Argument("--dir", "the directory of backups (default: SVC_BACKUP_DIR)", metavar="DIR", type=path),
        Argument("--retention", "keep the newest N snapshots there", metavar="N", type=whole(1, KEEP_MAX)),
        Argument("--verify", "check this snapshot and say what it holds", metavar="PATH", type=named_file),
        FORCE,
        Argument("--raw", "copy a damaged database's files as they are (stopped service)", kind="flag"),
        Argument("--with-secrets", "put the signing secret and the TLS key beside it", kind="flag"),
        Argument("--json", "print the snapshot's record as JSON", kind="flag"),
        examples=EXAMPLES,
        usage=USAGE,
        json=False,
    ),
)
