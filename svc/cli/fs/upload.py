"""`svc fs upload`: one local file, or standard input, into a file root."""

from __future__ import annotations

import os
import sys

from svc.cli import local_files, output
from svc.cli.arguments import FORCE, Argument, Arguments, Command
from svc.cli.client import ask, done, show_raw
from svc.cli.fs import paths
from svc.errors import BadAnswer, Conflict, FileRefused, SvcError, UsageError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.cli.progress import Moving
    from svc.cli.transport import Answer

BYTES = "application/octet-stream"
UNASKED_MAX = 64 * 1024 * 1024  # below this the server is not asked for its limit first
UPLOADED = (
    ("FILE", "file", output.plain),
    ("SIZE", "size", output.size),
    ("REPLACED", "replaced", output.plain),
)


def upload(args: Arguments) -> int:
    """Upload a local file, or what comes on standard input, to <root>/<path>.

    A / at the end of the destination keeps the local file's name. Nothing is seen
    there until the file is whole, and nothing is left of an upload that breaks
    off: run it again. What is there already stays unless --force is given; it is
    then replaced in one step. With - standard input is sent until it ends.
    """
    from svc.cli import streams  # an HTTP library, which the short requests do without
    from svc.cli.progress import Moving

    local = args.local_file
    if local == "-" and paths.into(args.destination, "") != args.destination:
        raise UsageError("standard input has no name: name the file to write", hint="svc fs upload --help")
    to = paths.into(args.destination, os.path.basename(local))
    again = paths.command("upload", local, to, force=args.force)
    file, size = _source(args, local, to)
    moving = Moving(size)
    path = paths.url(to, "file", force=args.force)
    try:
        answer = done(
            args,
            streams.send(path, file, size, BYTES, method="PUT", moved=moving.add, again=again),
        )
    except SvcError as error:
        if isinstance(error, Conflict) and "it is a directory" in error.message and local != "-":
            error.hint = paths.command("upload", local, f"{to}/")  # by its own name, into that
        raise paths.hinted(error, again, paths.command("upload", local, to, force=True)) from None
    finally:
        moving.end()
        if local != "-":
            file.close()
    return _show(args, answer, to, moving)


def _show(args: Arguments, answer: Answer, to: str, moving: Moving) -> int:
    """Print what the server has taken, which is all of it; raises BadAnswer."""
    record = answer.json()
    if record.get("size") != moving.count:
        raise BadAnswer(f"{moving.count} bytes were sent, and the service took {output.text(record, 'size')}")
    if args.json:
        return show_raw(answer)
    record["file"] = to
    output.say(f"{to} is uploaded ({moving.told()}).", UPLOADED, record)
    return 0


def _source(args: Arguments, local: str, to: str) -> tuple[Any, int | None]:
    """What is sent, and its size where that is known; raises FileRefused for what would not be taken."""
    if local == "-":
        return sys.stdin.buffer, None
    if os.path.isdir(local):
        archived = f"tar -c {output.shell_word(local)} | {paths.command('upload', '-', to + '.tar')}"
        raise FileRefused(f"{local} is a directory; one file is uploaded at a time", hint=archived)
    file, size = local_files.open_regular(local)
    if size > UNASKED_MAX:
        most = output.pick(ask(args, "GET", "/api/fs/roots").json(), "limits.upload_max_bytes")
        if isinstance(most, int) and size > most:
            file.close()
            raise FileRefused(f"{local} has {size} bytes; an upload has at most {most}", hint="svc fs roots")
    if size or not os.pread(file.fileno(), 1, 0):
        return file, size
    return file, None  # one like those of /proc, whose size is only known at its end


COMMANDS = (
    Command(
        "upload",
        upload,
        Argument("LOCAL-FILE", "the file to send; - is standard input", metavar="LOCAL-FILE|-"),
        Argument(
            "DESTINATION",
            "where it goes, such as work/in/data.csv; a / at its end keeps the name",
            type=paths.place,
        ),
        FORCE,
        examples="svc fs upload data.csv work/\n"
        "svc fs upload data.csv work/in/today.csv --force\n"
        "pg_dump shop | svc fs upload - work/shop.sql",
    ),
)
