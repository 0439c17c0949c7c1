"""`svc fs download` and `svc fs archive`: a file, or a directory as an archive, from a file root."""

from __future__ import annotations

import os

from svc.cli.fs import paths
from svc.commandline import local_files, output
from svc.commandline.arguments import Argument, Arguments, Command
from svc.errors import SvcError, UsageError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from svc.client.fetching import Fetched
    from svc.commandline.progress import TransferProgress

WRITTEN = (("FILE", "file", output.plain), ("SIZE", "size", output.size))
ARCHIVED = (*WRITTEN, ("MEMBERS", "members", output.plain), ("SKIPPED", "skipped", output.plain))


def download(args: Arguments) -> int:
    """Download <root>/<path> to a local file.

    Without LOCAL-FILE it keeps its name, in the current directory; of a directory it
    is written into that. An existing file is replaced only with --force and only
    when the download is complete; a link there is not followed. With - the file is
    written to standard output.
    """
    name = paths.name(args.file)
    if not name:
        local = [args.local_file] if args.local_file else []
        instead = paths.command("archive", args.file, *local, force=args.force)
        raise UsageError(f"{args.file} is a file root, a directory", hint=instead)
    _, out, progress = _fetch(args, "download", args.file, name)
    if out != "-":
        output.outcome(
            f"{out} is written ({progress.summary()}).", WRITTEN, {"file": out, "size": progress.count}
        )
    return 0


def archive(args: Arguments) -> int:
    """Archive a directory of a file root as a local .tar.gz file.

    Without LOCAL-FILE it is DIRECTORY.tar.gz in the current directory; a local
    directory, --force and - as in `svc fs download`. Links are archived as links. Sockets, pipes, devices,
    unreadable entries, other file systems and paths of more than 3,839 bytes are left
    out; their number is printed at the end.
    """
    root, _, path = args.directory.partition("/")
    name = f"{path.rpartition('/')[2] or root}.tar.gz"
    fetched, out, progress = _fetch(args, "archive", args.directory, name)
    skipped = fetched.fields.get("x-svc-archive-skipped", "")
    if out != "-":
        members = fetched.fields.get("x-svc-archive-members", "")
        record = {"file": out, "size": progress.count, "members": members, "skipped": skipped}
        output.outcome(f"{out} is written ({members} members, {progress.summary()}).", ARCHIVED, record)
    if skipped not in ("", "0"):
        kinds = "sockets, pipes, devices, unreadable entries, other file systems, and paths over 3,839 bytes"
        entries = "1 entry" if skipped == "1" else f"{skipped} entries"
        verb = "is" if skipped == "1" else "are"
        output.note(f"{entries} of {args.directory} {verb} left out: {kinds}, with all below them")
    return 0


def _fetch(args: Arguments, verb: str, location: str, name: str) -> tuple[Fetched, str, TransferProgress]:
    """Fetch a file and write it; returns the answer, the local path and the progress."""
    from svc.client import fetching
    from svc.commandline.progress import TransferProgress

    out = _out(args.local_file, name)
    local = [args.local_file] if args.local_file else []
    again = paths.command(verb, location, *local, force=args.force)
    forced = paths.command(verb, location, *local, force=True)
    if out == "-":
        local_files.refuse_terminal(paths.command(verb, location))
    else:
        local_files.refuse_existing(out, args.force, forced)
    try:
        with fetching.Fetched(paths.url(location, verb), None, again=again) as fetched:
            progress = TransferProgress(fetched.size)
            try:
                parts = progress.counted(fetched.parts())
                if out == "-":
                    local_files.write_out(parts)
                else:
                    local_files.save(parts, out, args.force, forced)
            finally:
                progress.end()
    except SvcError as error:
        paths.hint_at_directory(error, "archive", location, *local, force=args.force)
        raise paths.hinted(error, again, forced) from None
    return fetched, out, progress


def _out(local: str | None, name: str) -> str:
    """The local file to write: as named, or with the remote file's name in a directory."""
    if local == "-" or (local and not local.endswith("/") and not os.path.isdir(local)):
        return local
    if not local:
        return f"./{name}" if name == "-" else name  # a lone - would be standard output
    return os.path.join(local, name)


LOCAL_FILE = Argument(
    "LOCAL-FILE",
    "the file to write, or a directory to write it into; - is standard output",
    metavar="LOCAL-FILE|-",
    optional=True,
)
FORCE = Argument("--force", "replace the local file if there is one", kind="flag")
COMMANDS = (
    Command(
        "download",
        download,
        Argument("FILE", "such as work/notes.txt", type=paths.directory),
        LOCAL_FILE,
        FORCE,
        examples="svc fs download work/results.csv\n"
        "svc fs download work/results.csv today.csv --force\n"
        "svc fs download work/results.csv ~/Downloads\n"
        "svc fs download work/shop.sql - | psql shop",
        json=False,
    ),
    Command(
        "archive",
        archive,
        Argument("DIRECTORY", "such as work or work/results", type=paths.directory),
        LOCAL_FILE,
        FORCE,
        examples="svc fs archive work/results\n"
        "svc fs archive work everything.tar.gz\n"
        "svc fs archive work/results - | tar -tz",
        json=False,
    ),
)
