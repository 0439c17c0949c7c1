"""The `svc` program: imports the module of the command on the command line and runs its handler.

Only that module is imported, because the quick commands must stay quick. It has
``COMMAND``, a declaration of svc.commandline.arguments; the handler takes the arguments
and returns the exit code. Errors are SvcError, printed here and nowhere else. Manual
pages, completion and docs/cli.md are made from `build_parser`, which loads all commands.
"""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from typing import NoReturn, TextIO

    from svc.commandline.arguments import Arguments, Command, CommandGroup
    from svc.commandline.parser import Parser
    from svc.errors import SvcError, UsageError

DESCRIPTION = (
    "Containerised workspaces on a shared Linux host, each user's in that user's own rootless Podman."
)
# heading: {command: (module, summary)}, in the order of `svc --help`
GROUPS = {
    "client commands, for the users of this host": {
        "whoami": ("svc.cli.whoami", "the account that the service sees when you call"),
        "servers": ("svc.cli.servers", "this host's GPUs and their driver"),
        "ws": ("svc.cli.ws.ws", "workspaces: create, start, stop, run commands in them"),
        "template": ("svc.cli.template.template", "what workspaces are made from"),
        "image": ("svc.cli.image", "the templates' images in your own store"),
        "operation": ("svc.cli.operation", "pulls, builds and set-ups in the background"),
        "events": ("svc.cli.events", "what has changed, and what changes"),
        "fs": ("svc.cli.fs.fs", "files of your file roots: listed, moved in and out, removed"),
        "token": ("svc.cli.token", "access tokens, for calls of the HTTP API from other hosts"),
        "api": ("svc.cli.api", "one raw request to the HTTP API"),
        "skill": ("svc.cli.skill.skill", "a skill on svc, for your coding agent"),
    },
    "the host": {
        "env": ("svc.cli.env", "the settings in force on this host"),
        "server": ("svc.server", "start the HTTP server"),
        "admin": ("svc.admin.admin", "set up, check and repair the service (as root)"),
    },
}
COMMANDS = {name: row for rows in GROUPS.values() for name, row in rows.items()}

# "A remote server address, alias, password, session file, PAT or TLS option cannot be given"
REMOTE = (
    "--server", "--url", "--base-url", "--host", "--remote", "--alias", "--password", "--session",
    "--session-file", "--cookie", "--token", "--pat", "--tls", "--tls-verify", "--insecure", "--cert",
    "--cacert",
)  # fmt: skip
WITH_COMMAND = (["ws", "exec"], ["ws", "run"])  # what follows -- is a command inside
TERMINAL = {"-t", "--tty", "-it", "-ti"}  # what those have for a terminal who run containers elsewhere
EXIT_INTERRUPTED = 130  # as a shell reports SIGINT
EXIT_PIPE_CLOSED = 141  # as a shell reports SIGPIPE


def build_parser(names: Iterable[str] = COMMANDS, typed: Container[str] | None = None) -> Parser:
    """The argparse parser of the named commands, whole or as far as a command line needs it (`typed`)."""
    from svc.commandline.parser import Parser, add

    parser = Parser(prog="svc", description=DESCRIPTION)
    parser.add_argument(
        "--version", action="store_true", help="print the commit that this program was built from"
    )
    subparsers = parser.add_subparsers(metavar="<command>", prog="svc", required=True)
    for name in names:
        add(subparsers, declaration(name), typed=typed)
    return parser


def declaration(name: str) -> Command | CommandGroup:
    """The declaration of a command, from its module (importlib itself takes a millisecond to load)."""
    module = __import__(COMMANDS[name][0], fromlist=["COMMAND"])
    declared: Command | CommandGroup = module.COMMAND
    return declared


def usage() -> str:
    """The text of `svc --help`, made from the table above without importing the commands."""
    lines = ["usage: svc [-h] [--version] <command> ...", "", DESCRIPTION, ""]
    for heading, rows in GROUPS.items():
        lines += [f"{heading}:", *(f"  {name:<10} {summary}" for name, (_, summary) in rows.items()), ""]
    lines += [
        "options:",
        "  -h, --help  this text; `svc help <command>...` for a command's own, with examples",
        "  --version   the commit that this program was built from",
        "",
        "exit codes: 0 success; 1 API or network error, or a confirmation not given; 2 wrong usage;",
        "3 this Linux account has no service account, or its setup is incomplete",
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    try:
        try:
            code = _run(arguments)
        except SystemExit as ended:  # argparse's, after a help text
            code = int(ended.code or 0)
        sys.stdout.flush()  # here, where a closed pipe or a full disk can still be reported
        return code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_output(sys.stdout, sys.stderr)
        return EXIT_PIPE_CLOSED
    except OSError as error:
        from svc.commandline import output

        _discard_output(sys.stdout)
        where = f": {error.filename}" if error.filename else ""
        is_closed = error.errno == errno.EBADF and not where
        what = "standard output is closed" if is_closed else error.strerror or error
        output.remark(f"svc: {what}{where}{'' if where else _what_is_done()}")
        return 1


def _what_is_done() -> str:
    """What to say of a change whose outcome could not be printed; empty where there was none."""
    transport = sys.modules.get("svc.client.transport")
    return "; the service has done what was asked" if transport and transport.changes else ""


def start() -> NoReturn:
    """Run the process's own command line, and end the process.

    What an interpreter does at its end, to free each object by itself, is a fifth of the time of
    `svc ws list`; the kernel frees them all. A process that has threads waits for them, as usual.
    """
    code = main()
    if "threading" in sys.modules:
        sys.exit(code)
    os._exit(code)  # main() has flushed the output, and errors are written line by line


def _run(argv: list[str]) -> int:
    if argv == ["--version"]:
        from svc.version import commit

        print(commit())
        return 0
    if argv in ([], ["help"], ["-h"], ["--help"]):
        print(usage(), file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    if argv[0] == "__complete":  # called by the shells' completion functions, and in no help
        from svc.cli import completion

        return completion.run(argv[1:])
    if argv[0] in ("help", "-h", "--help"):
        argv = [*argv[1:], "--help"]
    from svc.errors import SvcError, UsageError

    try:
        return _dispatch(argv)
    except UsageError as error:
        return _print_error(error if error.names_url else _remote_usage(argv) or _corrected(argv, error))
    except SvcError as error:
        return _print_error(error)


def _dispatch(argv: list[str]) -> int:
    if argv[0] not in COMMANDS:
        raise _unknown_command(argv)
    argv, exec_command = _split_exec(argv)
    if _group_help(argv):
        return 2
    args = _parse(argv)
    args.exec_command = exec_command
    from svc.errors import Unreachable

    try:
        return int(args.handler(args))
    except Unreachable as error:  # no answer that --json could have printed
        if vars(args).get("json"):
            from svc.commandline import output

            output.json_object(error.body(""))
        raise


def _unknown_command(argv: list[str]) -> UsageError:
    """The usage error for a first word that is no command, with what was probably meant."""
    from svc.commandline.arguments import CommandGroup
    from svc.commandline.suggestions import unknown_command
    from svc.errors import UsageError

    name = argv[0]
    if name == "--version":
        return UsageError("--version stands alone", hint="svc --version")
    if name == "--":
        return UsageError("a command is written before --", hint="svc --help")
    if name.startswith("-"):
        return _misplaced(argv)
    known = [f"svc {each}" for each in COMMANDS]
    for group in ("ws", "template", "image", "operation", "fs", "token"):  # `svc start` is `svc ws start`
        below = declaration(group)
        if isinstance(below, CommandGroup):
            known += [f"svc {group} {each.name}" for each in below.commands if each.name == name]
    return unknown_command(f"svc {name}", known)


def _misplaced(argv: list[str]) -> UsageError:
    """The usage error for a command line that begins with an option; its hint is the right order."""
    from shlex import join

    from svc.commandline.suggestions import nearest
    from svc.errors import UsageError

    name = argv[0]
    if name in ("-V", "-v", "-version") or nearest(name, ("--version",)):
        return UsageError(f"no such option: {name}; did you mean --version?", hint="svc --version")
    at = 2 if name == "--db" else 1
    command, hint = argv[at : at + 1], "svc --help"
    if name == "--json" and command and command[0] in COMMANDS:
        hint = join(["svc", *argv[1:], name])
    elif name.partition("=")[0] == "--db" and command in (["admin"], ["server"]):
        sudo = ["sudo"] if os.geteuid() == 0 else []
        hint = join([*sudo, "svc", *command, *argv[:at], *argv[at + 1 :]])
    return UsageError(f"options are written after the command: {name}", hint=hint)


def _parse(argv: list[str]) -> Arguments:
    """The arguments, without argparse where they are well-formed."""
    from svc.commandline.arguments import Arguments, parse
    from svc.errors import UsageError

    plain = parse(declaration(argv[0]), argv[1:]) or parse(declaration(argv[0]), _with_json(argv[1:]))
    if plain is not None:
        return plain
    argv = [argv[0], *_with_json(argv[1:])]
    args: Arguments
    args, unknown = build_parser(argv[:1], argv).parse_known_args(argv, Arguments())
    if unknown:
        from shlex import join

        from svc.commandline.suggestions import OPTIONS, in_singular, nearest

        if meant := in_singular(argv):
            typed = " ".join(["svc", *argv[:3]])
            raise UsageError(f"no such command: {typed}; did you mean `{meant}`?", hint=f"{meant} --help")
        if unknown[0] in args.options:  # before the command that it belongs to
            moved = [*(each for each in argv if each != unknown[0]), unknown[0]]
            message = f"options are written after the command: {unknown[0]}"
            raise UsageError(message, hint=join(["svc", *moved]))
        name = unknown[0].partition("=")[0]
        near = OPTIONS[name] if OPTIONS.get(name) in args.options else nearest(name, args.options)
        meant = f"; did you mean {near}?" if near else ""
        raise UsageError(f"unknown arguments: {' '.join(unknown)}{meant}", hint=f"{args.prog} --help")
    return args


def _corrected(argv: list[str], error: UsageError) -> UsageError:
    """The usage error; a general hint becomes the command line that was probably meant."""
    if not error.hint.endswith((" --help", " COMMAND...")):
        return error
    from svc.cli.corrections import correct

    end = argv.index("--") if "--" in argv else len(argv)
    remark, line = correct(
        [*_with_json(argv[:end]), *argv[end:]], lambda name: declaration(name) if name in COMMANDS else None
    )
    base, marked, meant = error.message.partition("; did you mean `")
    if marked and line and (remark or meant.rstrip("`?") not in line):
        error.message = base
    error.message += f"; {remark}" if remark else ""
    error.hint = line or error.hint
    return error


def _with_json(argv: list[str]) -> list[str]:
    """The arguments with --json in place of what other programs call it: `-o json`, `--output=json`."""
    found: list[str] = []
    for text in argv:
        if text in ("-ojson", "-o=json", "--output=json", "--json=1", "--json=true"):
            found.append("--json")
        elif text == "json" and found[-1:] in (["-o"], ["--output"]):
            found[-1] = "--json"
        else:
            found.append(text)
    return found


def _group_help(argv: list[str]) -> bool:
    """Print the help of a group that was named without one of its commands to standard error."""
    from svc.commandline.arguments import CommandGroup, Deferred

    found: Command | CommandGroup | Deferred | None = declaration(argv[0])
    for name in argv[1:]:
        found = found.find(name) if isinstance(found, CommandGroup) else None
        found = found.load() if isinstance(found, Deferred) else found
    if not isinstance(found, CommandGroup):
        return False
    from contextlib import redirect_stdout, suppress

    with redirect_stdout(sys.stderr), suppress(SystemExit):
        build_parser(argv[:1], argv).parse_args([*argv, "--help"])
    return True


def _split_exec(argv: list[str]) -> tuple[list[str], list[str]]:
    """Split off the command of `ws exec` or `ws run`: REMAINDER would also take svc's own options."""
    if argv[:2] not in WITH_COMMAND:
        return argv, []
    at = argv.index("--") if "--" in argv else len(argv)
    own, command = argv[:at], argv[at + 1 :]
    if TERMINAL & set(own):
        from svc.commandline.suggestions import no_terminal

        raise no_terminal(own, command, TERMINAL)
    if own == argv and not {"-h", "--help"} & set(own):
        from svc.errors import UsageError

        hint = f"svc ws {argv[1]} {'WORKSPACE' if argv[1] == 'exec' else '--template TEMPLATE'} -- COMMAND..."
        raise UsageError("the command is written after --", hint=hint)
    return own, command


def _remote_usage(argv: list[str]) -> SvcError | None:
    """The error for an attempt to reach another host; None for any other mistake."""
    from svc.errors import UsageError

    own = argv[: argv.index("--")] if "--" in argv else argv
    if own[:1] in (["admin"], ["server"]) or (own[:2] in WITH_COMMAND and own == argv):
        return None  # no client command, or `ws exec` without --, whose command may have any option
    remote = next((text for text in own if text.partition("=")[0] in REMOTE or "://" in text), None)
    if remote is None:
        return None
    return UsageError(
        f"client commands use the service on this host only, as the calling user: {remote} is not accepted",
        hint="from another host call the HTTP API with a personal access token",
    )


def _print_error(error: SvcError) -> int:
    """Print an error to standard error; returns the exit code."""
    from svc.commandline import output

    return output.error(error)


def _prepare_streams() -> None:
    """Open closed standard streams on /dev/null, and escape characters that the locale lacks.

    Standard output is opened only to read, so that a command with something to print fails.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # opened first, or the next socket would get the closed stream's file descriptor
            number = os.open("/dev/null", os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w"))  # noqa: SIM115 (for good)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _discard_output(*streams: TextIO) -> None:
    """Redirect streams to /dev/null, so that the interpreter's last flush cannot fail."""
    from svc.commandline import output

    for stream in streams:
        output.discard(stream)


if __name__ == "__main__":
    start()
