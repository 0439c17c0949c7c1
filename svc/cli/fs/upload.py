"""`svc fs upload`: one local file, or standard input, into a file root."""

from __future__ import annotations

import os

from svc.cli.fs import paths
from svc.client.requests import ask, checked, show_raw
from svc.commandline import local_files, output
from svc.commandline.arguments import Argument, Arguments, Command
from svc.errors import BadAnswer, Conflict, FileRefused, SvcError, UsageError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.client.transport import Answer
    from svc.commandline.progress import TransferProgress

BYTES = "application/octet-stream"
UNCHECKED_MAX = 64 * 1024 * 1024  # for larger files the server's limit is requested first
UPLOADED = (
    ("FILE", "file", output.plain),
    ("SIZE", "size", output.size),
    ("REPLACED", "replaced", output.plain),
)


def upload(args: Arguments) -> int:
    """Upload a local file, or standard input, to <root>/<path>.

    A trailing / on the destination keeps the local file's name. The file appears
    there only when complete. An existing one is replaced in one step, or refused with
    --no-clobber; an interrupted upload leaves it as it was. With - standard input
    is sent until EOF.
    """
    if args.force and args.no_clobber:
        raise UsageError("--force and --no-clobber exclude each other", hint="svc fs upload --help")
    from svc.client import sending
    from svc.commandline.progress import TransferProgress

    local = args.local_file
    name = "" if local_files.is_inherited(local) else os.path.basename(local)
    flags = {"force": args.force, "no_clobber": args.no_clobber}
    to = paths.into(args.destination, name, "upload", local, **flags)
    again = paths.command("upload", local, to, no_clobber=args.no_clobber)
    file, size = _source(args, local, to)
    progress = TransferProgress(size)
    path = paths.url(to, "file", force=not args.no_clobber)
    try:
        answer = checked(
            args, sending.send(path, file, size, BYTES, method="PUT", moved=progress.add, again=again)
        )
    except SvcError as error:
        if (
            isinstance(error, Conflict)
            and "is a directory" in error.message
            and not local_files.is_inherited(local)
        ):
            error.hint = paths.command("upload", local, f"{to}/", **flags)  # into it, with the local name
        paths.hint_at_missing(error, to, paths.parent(to))
        raise paths.hinted(error, again, paths.command("upload", local, to)) from None
    finally:
        progress.end()
        if local not in local_files.STANDARD_INPUT:
            file.close()
    return _show(args, answer, to, progress)


def _show(args: Arguments, answer: Answer, to: str, progress: TransferProgress) -> int:
    """Print the outcome; raises BadAnswer unless the server stored all bytes."""
    record = answer.json()
    if record.get("size") != progress.count:
        raise BadAnswer(f"{progress.count} bytes were sent, the service stored {output.text(record, 'size')}")
    if args.json:
        return show_raw(answer)
    record["file"] = to
    done = "replaced" if record.get("replaced") is True else "uploaded"
    output.outcome(f"{to} is {done} ({progress.summary()}).", UPLOADED, record)
    return 0


def _source(args: Arguments, local: str, to: str) -> tuple[Any, int | None]:
    """The file to send, and its size if known; raises FileRefused."""
    if os.path.isdir(local):
        upload_it = paths.command("upload", "-", f"{to}.tar", force=args.force, no_clobber=args.no_clobber)
        archived = f"tar -c {output.shell_quote(local)} | {upload_it}"
        raise FileRefused(f"{local} is a directory; only single files can be uploaded", hint=archived)
    file, size = local_files.open_to_send(local)
    if size is None:
        return file, None
    if size > UNCHECKED_MAX:
        most = output.pick(ask(args, "GET", "/api/fs/roots").json(), "limits.upload_max_bytes")
        if isinstance(most, int) and size > most:
            file.close()
            raise FileRefused(f"{local} has {size} bytes; an upload has at most {most}", hint="svc fs roots")
    if size or not os.pread(file.fileno(), 1, 0):
        return file, size
    return file, None  # such as a file of /proc, whose size is unknown until EOF


COMMANDS = (
    Command(
        "upload",
        upload,
        Argument("LOCAL-FILE", "the file to send; - is standard input", metavar="LOCAL-FILE|-"),
        Argument(
            "DESTINATION", "such as work/in/data.csv; a trailing / keeps the name", type=paths.root_path
        ),
        Argument("--no-clobber", "refuse to replace an existing file", kind="flag"),
        Argument("--force", "replace an existing file, as without it", kind="flag"),
        examples="svc fs upload data.csv work/\n"
        "svc fs upload data.csv work/in/today.csv --no-clobber\n"
        "pg_dump shop | svc fs upload - work/shop.sql",
    ),
)
