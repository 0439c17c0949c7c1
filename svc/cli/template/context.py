"""`svc template context`: the files that a template's Dockerfile is built with."""

from __future__ import annotations

import os

from svc.cli.template.columns import show_change
from svc.client.requests import ask, checked, query, quote, show_list
from svc.commandline import local_files, output
from svc.commandline.arguments import FORCE, TEMPLATE, Argument, Arguments, Command
from svc.errors import FileRefused, UsageError
from svc.limits import BUNDLE_MEMBER_MAX

ACTIONS = ("get", "set", "remove", "replace")
COLUMNS = (
    ("PATH", "path", output.plain),
    ("SIZE", "size", output.size),
    ("EXECUTABLE", "executable", output.plain),
)
HELP = "svc template context --help"
DOCKERFILES = ("Dockerfile", "Containerfile")


def context(args: Arguments) -> int:
    """List the files that a template is built with, or read or change one of a clone's.

    COPY and ADD of the Dockerfile find these files. Columns: path, size, executable.
    --get prints a file, unchanged in a pipe; --set adds or replaces one, --remove
    removes one, --replace replaces all by those of a directory, without what its
    .dockerignore names, or of a tar archive. A file keeps its executable bit; one from
    standard input that of the file it replaces. Links and special files are refused. A
    global template's context is read-only: clone the template. A change disables the
    template until it is built; --json prints the changed template.
    """
    action = _action(args)
    if action == "get":
        return _get(args)
    if action == "set":
        return _set(args)
    if action == "remove":
        answer = ask(args, "DELETE", _url(args, args.remove))
        return show_change(args, answer, "{name} is now at revision {revision}")
    if action == "replace":
        return _replace(args)
    empty = f"No files: svc template context {args.template} --set PATH --file FILE"
    return show_list(args, f"/api/templates/{quote(args.template)}/context", COLUMNS, empty)


def _action(args: Arguments) -> str:
    """The one thing to do, empty for a list; raises UsageError."""
    named = [action for action in ACTIONS if getattr(args, action) is not None]
    if len(named) > 1:
        raise UsageError(f"--{named[0]} and --{named[1]} cannot be combined", hint=HELP)
    action = named[0] if named else ""
    if (action == "set") != (args.file is not None):
        raise UsageError(
            "--set and --file go together",
            hint=f"svc template context {args.template} --set PATH --file FILE",
        )
    if action != "get" and (args.out is not None or args.force):
        raise UsageError("--out and --force go with --get", hint=HELP)
    if action == "get" and args.json:
        raise UsageError("--get prints a file, which --json cannot", hint=HELP)
    return action


def _url(args: Arguments, path: str, **more: object) -> str:
    return f"/api/templates/{quote(args.template)}/context/file{query(path=path, **more)}"


def _get(args: Arguments) -> int:
    from svc.client import fetching

    path, out = args.get, args.out
    command = f"svc template context {args.template} --get {output.shell_quote(path)} --out"
    if out is not None and out != "-" and (out.endswith("/") or os.path.isdir(out)):
        out = os.path.join(out, os.path.basename(path))
    forced = f"{command} {output.shell_quote(out or '')} --force"
    if out not in (None, "-"):
        local_files.refuse_existing(out, args.force, forced)
    with fetching.Fetched(_url(args, path), BUNDLE_MEMBER_MAX) as fetched:
        if out not in (None, "-"):
            executable = fetched.fields.get("x-svc-executable") == "true"
            local_files.save(fetched.parts(), out, args.force, forced, executable=executable)
            return 0
        if not output.on_terminal():
            local_files.write_out(fetched.parts())
            return 0
        content = b"".join(fetched.parts())
    try:
        output.document(content.decode("utf-8"))
    except UnicodeDecodeError:
        local_files.refuse_terminal(f"{command} {output.shell_quote(os.path.basename(path))}")
    return 0


def _set(args: Arguments) -> int:
    from svc.client import sending

    executable = None
    file, size = local_files.open_to_send(args.file)
    if size is not None:
        executable = "true" if os.fstat(file.fileno()).st_mode & 0o111 else "false"
        if size > BUNDLE_MEMBER_MAX:
            raise FileRefused(
                f"{args.file} has {size} bytes; a file of a build context has at most {BUNDLE_MEMBER_MAX}"
            )
    url = _url(args, args.set, executable=executable)
    with file:
        answer = checked(args, sending.send(url, file, size, sending.BYTES, method="PUT"))
    if args.set in DOCKERFILES:
        _note_dockerfile(args, args.file)
    return show_change(args, answer, "{name} is now at revision {revision}")


def _replace(args: Arguments) -> int:
    from svc.cli.template.ignore_rules import IgnoreRules
    from svc.cli.template.trees import Packed
    from svc.client import sending

    packed = Packed()
    if os.path.isdir(args.replace):
        packed.add_directory(args.replace, rules=IgnoreRules.of(args.replace))
    else:
        packed.add_tar(args.replace)
    file, size = packed.finished()
    url = f"/api/templates/{quote(args.template)}/context"
    with file:
        answer = checked(args, sending.send(url, file, size, sending.TAR, method="PUT"))
    for name in DOCKERFILES:
        path = os.path.join(args.replace, name)
        if os.path.isfile(path) and _differs(args, path):
            _note_dockerfile(args, path)
    return show_change(args, answer, "{name} is now at revision {revision}")


def _differs(args: Arguments, path: str) -> bool:
    """Whether a local Dockerfile is another than the template's."""
    text = ask(args, "GET", f"/api/templates/{quote(args.template)}/dockerfile").json().get("dockerfile")
    with open(path, "rb") as file:
        return not isinstance(text, str) or file.read() != text.encode("utf-8", "surrogatepass")


def _note_dockerfile(args: Arguments, path: str) -> None:
    output.note(
        "the image is built from the template's own Dockerfile, not from one in its context:"
        f" svc template dockerfile {args.template} --set --file {output.shell_quote(path)}"
    )


COMMANDS = (
    Command(
        "context",
        context,
        TEMPLATE,
        Argument("--get", "print this file", metavar="PATH"),
        Argument("--out", "write it to this file, or into this directory", metavar="FILE|-"),
        FORCE,
        Argument("--set", "add or replace this file, with --file", metavar="PATH"),
        Argument("--file", "its new content; - is standard input", metavar="FILE|-", short=()),
        Argument("--remove", "remove this file", metavar="PATH"),
        Argument(
            "--replace", "replace all files by those of a directory or archive", metavar="DIR|FILE.tar|-"
        ),
        examples="svc template context my-python\n"
        "svc template context my-python --get requirements.txt > requirements.txt\n"
        "svc template context my-python --set requirements.txt --file requirements.txt\n"
        "svc template context my-python --remove app/old.py\n"
        "svc template context my-python --replace project",
    ),
)
