"""`svc fs download` and `svc fs archive`: a file, or a directory as one, out of a file root."""

from __future__ import annotations

from svc.cli import local_files, output
from svc.cli.arguments import Argument, Arguments, Command
from svc.cli.fs import paths
from svc.errors import SvcError, UsageError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from svc.cli.progress import Moving
    from svc.cli.streams import Fetched

WRITTEN = (("FILE", "file", output.plain), ("SIZE", "size", output.size))
ARCHIVED = (*WRITTEN, ("MEMBERS", "members", output.plain), ("SKIPPED", "skipped", output.plain))


def download(args: Arguments) -> int:
    """Download <root>/<path> to a local file.

    Without a local name it keeps its own, in the current directory. An existing
    file stays as it is unless --force is given; it is replaced only when the
    download is whole, and a link there is not followed. With - the file is
    written to standard output.
    """
    name = paths.name(args.file)
    _, out, moving = _fetch(args, "download", args.file, name)
    if out != "-":
        output.say(f"{out} is written ({moving.told()}).", WRITTEN, {"file": out, "size": moving.count})
    return 0


def archive(args: Arguments) -> int:
    """Archive a directory of a file root as a local .tar.gz file.

    Without a local name it is DIRECTORY.tar.gz in the current directory; --force
    and - as in `svc fs download`. Links are archived as links. Left out are
    sockets, pipes, devices, what you may not read and other file systems; how many
    is said at the end.
    """
    root, _, path = args.directory.partition("/")
    name = f"{path.rpartition('/')[2] or root}.tar.gz"
    fetched, out, moving = _fetch(args, "archive", args.directory, name)
    skipped = fetched.fields.get("x-svc-archive-skipped", "")
    if out != "-":
        members = fetched.fields.get("x-svc-archive-members", "")
        record = {"file": out, "size": moving.count, "members": members, "skipped": skipped}
        output.say(f"{out} is written ({members} members, {moving.told()}).", ARCHIVED, record)
    if skipped not in ("", "0"):
        what = "sockets, pipes, devices, what you may not read, other file systems"
        output.note(f"{skipped} entries of {args.directory} are left out: {what}")
    return 0


def _fetch(args: Arguments, verb: str, place: str, name: str) -> tuple[Fetched, str, Moving]:
    """Fetch a file and write it where it belongs; gives the answer, that place and what has moved."""
    from svc.cli import streams  # an HTTP library, which the short requests do without
    from svc.cli.progress import Moving

    out = _out(args.local_file, name)
    local = [args.local_file] if args.local_file else []
    again = paths.command(verb, place, *local, force=args.force)
    forced = paths.command(verb, place, *local, force=True)
    if out == "-":
        local_files.refuse_terminal(paths.command(verb, place))
    else:
        local_files.refuse_existing(out, args.force, forced)
    try:
        with streams.fetch(paths.url(place, verb), None, again=again) as fetched:
            moving = Moving(fetched.size)
            try:
                parts = moving.counted(fetched.parts())
                if out == "-":
                    local_files.write_out(parts)
                else:
                    local_files.save(parts, out, args.force, forced)
            finally:
                moving.end()
    except SvcError as error:
        raise paths.hinted(error, again, forced) from None
    return fetched, out, moving


def _out(local: str | None, name: str) -> str:
    """The local file to write: as it was named, or under the name that the file has there."""
    if local and not local.endswith("/"):
        return local
    if not name:
        raise UsageError("a root has no name to keep, nor has what ends in /", hint="svc fs download --help")
    return (local or ("./" if name == "-" else "")) + name  # - alone is standard output


LOCAL = "the file to write; - is standard output, a / at its end keeps the name"
FORCE = Argument("--force", "replace the local file if there is one", kind="flag")
COMMANDS = (
    Command(
        "download",
        download,
        Argument("FILE", "such as work/notes.txt", type=paths.place),
        Argument("LOCAL-FILE", LOCAL, metavar="LOCAL-FILE|-", optional=True),
        FORCE,
        examples="svc fs download work/results.csv\n"
        "svc fs download work/results.csv today.csv --force\n"
        "svc fs download work/shop.sql - | psql shop",
        json=False,
    ),
    Command(
        "archive",
        archive,
        Argument("DIRECTORY", "such as work or work/results", type=paths.directory),
        Argument("LOCAL-FILE", LOCAL, metavar="LOCAL-FILE|-", optional=True),
        FORCE,
        examples="svc fs archive work/results\n"
        "svc fs archive work everything.tar.gz\n"
        "svc fs archive work/results - | tar -tz",
        json=False,
    ),
)
