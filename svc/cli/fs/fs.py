"""`svc fs`: the files of the caller's file roots, which workspaces have at /work and elsewhere."""

from __future__ import annotations

from svc.cli.fs import listing, paths
from svc.client.requests import ask, items, query, show_outcome, show_raw
from svc.commandline import output
from svc.commandline.arguments import (
    FORCE,
    YES_REMOVE,
    Argument,
    Arguments,
    Command,
    CommandGroup,
    Deferred,
    whole,
)
from svc.commandline.output import plain, size, when
from svc.errors import BadAnswer, Conflict, SvcError, UsageError
from svc.limits import FILE_READ_MAX
from svc_helper.wire.limits import FILES_LISTED_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

DESCRIPTION = """\
Files of your file roots: listed, moved in and out, removed.

A file is named <root>/<path>. The root `work` is what workspaces have at /work;
these commands work with your own rights, and are recorded. A / at the end of what is
read, moved or removed says nothing; of a destination it keeps the name."""
ROOTS = (
    ("ROOT", "id", plain),
    ("IN WORKSPACES", "mounted_at", plain),
    ("READ ONLY", "read_only", plain),
    ("FREE", "free_bytes", size),
    ("SIZE", "size_bytes", size),
    ("PATH", "path", plain),
)
LIMITS = (
    ("an upload", "limits.upload_max_bytes"),
    ("svc fs read", "limits.read_max_bytes"),
    ("an archive", "limits.archive_max_bytes"),
)
ENTRIES = (
    ("TYPE", "type", plain),
    ("MODE", "mode", plain),
    ("SIZE", "size", size),
    ("MODIFIED", "modified_at", when),
    ("NAME", "name", plain),
)
OWNER = ("OWNER", "owner", plain)
ON_TERMINAL = (*ENTRIES[:2], OWNER, *ENTRIES[2:])  # on a terminal
PIPED = (*ENTRIES, ("TARGET", "target", plain), OWNER)
FIRST = 1000  # entries of the first answer; that of a large directory brings the rest line by line
REMOVAL_S = 660  # longer than the agent's own timeout for a large tree


def roots(args: Arguments) -> int:
    """List the file roots with their free space, and the limits.

    Columns: root, in workspaces (its path there), read only, free, size, path.
    """
    answer = ask(args, "GET", "/api/fs/roots")
    if args.json:
        return show_raw(answer)
    found = answer.json()
    output.table(ROOTS, items(found), "No file roots.")
    if output.on_terminal():
        limits = [f"{name} has at most {size(output.pick(found, path), True)}" for name, path in LIMITS]
        members = output.text(found, "limits.archive_max_members")
        print(output.visible(f"{', '.join(limits)} and {members} members."))
    return 0


def ls(args: Arguments) -> int:
    """List a directory, or show one file; alone, the file roots.

    Columns: type, mode, owner, size, modified, name; in a pipe type, mode, size, modified,
    name, the target of a link, owner. Files of a container's user ID have the owner
    container:ID.
    Bytes of a name that are not UTF-8 are printed as \\xNN. --json prints the API's
    first 10,000 entries unchanged, and `next_offset` if there are more.
    """
    if args.directory is None:
        return roots(args)
    human = output.on_terminal()
    root, path = paths.parts(args.directory)
    limit = FILES_LISTED_MAX if human or args.json else FIRST
    answer = ask(args, "GET", f"/api/fs/{root}/list" + query(limit=limit, path=path))
    if args.json:
        return show_raw(answer)
    page = answer.json()
    entry, found = page.get("entry"), items(page)
    is_file = output.text(entry, "type") not in ("", "directory")
    _show([entry] if is_file else found, human, f"{args.directory} is empty.")
    following = page.get("next_offset")
    if found and type(following) is int and following > 0:
        least = FILES_LISTED_MAX if human else FIRST
        for part in listing.rest(args, root, path, following, least):
            _show(part, human)
    return 0


def _show(found: list[Any], human: bool, empty: str = "") -> None:
    if human:
        output.table(ON_TERMINAL, map(_with_target, found), empty)
    else:
        listing.show(found, PIPED)


def _with_target(entry: Any) -> Any:
    """The entry; the name of a link with its target, as `ls -l` prints it."""
    target = output.text(entry, "target")
    return entry | {"name": f"{output.text(entry, 'name')} -> {target}"} if target else entry


def read(args: Arguments) -> int:
    """Print a file, or a part of it: at most 1 MiB; `svc fs download` has no such limit.

    On a terminal control characters are escaped; in a pipe the bytes are unchanged.
    A note on standard error says where the rest begins.
    """
    if not paths.name(args.file):
        raise UsageError(f"{args.file} is a file root, a directory", hint=paths.command("ls", args.file))
    path = paths.url(args.file, "read", offset=args.offset, length=args.length)
    try:
        answer = ask(args, "GET", path)
    except Conflict as error:
        paths.hint_at_directory(error, "ls", args.file)
        raise
    if args.json:
        return show_raw(answer)
    record = answer.json()
    content = _content(record)
    if output.on_terminal():
        output.document(content.decode("utf-8", "backslashreplace"))
    else:
        output.write_bytes(content)
    if record.get("truncated") is True:
        _note_rest(args, output.text(record, "size"), (args.offset or 0) + len(content))
    return 0


def _content(record: dict[str, Any]) -> bytes:
    from binascii import Error, a2b_base64

    try:
        return a2b_base64(record["content"], strict_mode=True)
    except (Error, ValueError, KeyError, TypeError):
        raise BadAnswer("the service's answer does not hold the file's content") from None


def _note_rest(args: Arguments, size: str, end: int) -> None:
    """Print the command that reads on."""
    output.note(f"the output ends at byte {end} of {size}")
    length = f" --length {args.length}" if args.length else ""
    output.remark(f"hint: {paths.command('read', args.file)} --offset {end}{length}")


def mkdir(args: Arguments) -> int:
    """Create a directory, with --parents also missing parents."""
    try:
        answer = ask(args, "POST", paths.url(args.directory, "mkdir"), {"parents": args.parents})
    except SvcError as error:
        paths.hint_at_missing(error, args.directory, args.directory)
        in_the_way = error.message.partition(": ")[0]
        is_above = args.directory.startswith(f"{in_the_way}/")  # not a directory: below it is nothing
        listed = paths.parent(in_the_way) if is_above else args.directory
        raise paths.hinted(error, "", paths.command("ls", listed)) from None
    return show_outcome(args, answer, ENTRIES, f"{args.directory} is created.")


def mv(args: Arguments) -> int:
    """Move or rename a file or a directory within its root.

    A trailing / on the destination keeps the name. An existing file is replaced
    only with --force. Between roots nothing is moved: download and upload it.
    """
    to = paths.into(args.destination, paths.name(args.source), "mv", args.source, force=args.force)
    if paths.parts(to)[0] != paths.parts(args.source)[0]:
        raise UsageError(
            "cannot move a file to another root; copy it",
            hint=f"{paths.command('download', args.source, '-')} | {paths.command('upload', '-', to)}",
        )
    body = {"to": paths.encoded(to), "force": args.force}
    try:
        answer = ask(args, "POST", paths.url(args.source, "move"), body)
    except SvcError as error:
        paths.hint_at_missing(error, to, paths.parent(to))
        if error.message.endswith("moves into it"):  # a directory is there, in which the name would be kept
            error.hint = paths.command("mv", args.source, f"{to}/")
            raise
        forced = paths.command("mv", args.source, to, force=True)
        raise paths.hinted(error, "", forced) from None
    return show_outcome(args, answer, ENTRIES, f"{args.source} is now {to}.")


def rm(args: Arguments) -> int:
    """Remove a file, or with --recursive a directory and its content.

    A link is removed, not its target; file systems mounted below stay. What cannot be
    removed is listed, the rest is removed, and the exit code is 1. Asks for
    confirmation on a terminal; elsewhere --yes is required.
    """
    all_of_it = " and its content" if args.recursive else ""
    again = output.again(args, "svc", "fs", "rm", args.path)
    output.confirm(f"Remove {args.path}{all_of_it}?", args.yes, again)
    path = paths.url(args.path, "file", recursive=args.recursive)
    try:
        answer = ask(args, "DELETE", path, wait_s=REMOVAL_S)
    except Conflict as error:
        if not args.recursive and "not empty" in error.message:
            error.hint = f"{again} --recursive"
        raise
    if args.json:
        return show_raw(answer)
    if output.on_terminal():
        count = output.text(answer.json(), "removed")
        print(output.visible(f"{args.path} is removed{f', {count} in all' if args.recursive else ''}."))
    return 0


DIRECTORY = Argument("DIRECTORY", "such as work or work/results", type=paths.directory)

COMMAND = CommandGroup(
    "fs",
    DESCRIPTION,
    Command("roots", roots, examples="svc fs roots\nsvc fs roots --json"),
    Command(
        "ls",
        ls,
        Argument("DIRECTORY", "such as work or work/results", type=paths.directory, optional=True),
        examples="svc fs ls\nsvc fs ls work\nsvc fs ls work/results | cut -f3,5",
    ),
    Command(
        "read",
        read,
        Argument("FILE", "such as work/notes.txt", type=paths.directory),
        Argument("--offset", "start at this byte", metavar="BYTES", type=whole(0, 2**53)),
        Argument("--length", "at most so many bytes", metavar="BYTES", type=whole(1, FILE_READ_MAX)),
        examples="svc fs read work/notes.txt\nsvc fs read work/big.log --offset 1048576 --length 4096",
    ),
    Deferred("upload", "Upload a local file, or standard input, to <root>/<path>", "svc.cli.fs.upload"),
    Deferred("download", "Download <root>/<path> to a local file", "svc.cli.fs.download"),
    Deferred("archive", "Archive a directory of a file root as a local .tar.gz file", "svc.cli.fs.download"),
    Command(
        "rm",
        rm,
        Argument("PATH", "what to remove, such as work/old.csv", type=paths.directory),
        Argument("--recursive", "a directory and its content", kind="flag"),
        YES_REMOVE,
        examples="svc fs rm work/old.csv\nsvc fs rm work/results --recursive --yes",
    ),
    Command(
        "mkdir",
        mkdir,
        DIRECTORY,
        Argument("--parents", "also missing parents; an existing directory is no error", kind="flag"),
        examples="svc fs mkdir work/results\nsvc fs mkdir work/a/b/c --parents",
    ),
    Command(
        "mv",
        mv,
        Argument("SOURCE", "what to move, such as work/draft.md", type=paths.directory),
        Argument("DESTINATION", "in the same root; a trailing / keeps the name", type=paths.root_path),
        FORCE,
        examples="svc fs mv work/draft.md work/final.md\nsvc fs mv work/final.md work/done/ --force",
    ),
)
