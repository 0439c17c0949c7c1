"""The `svc` program: finds the module of the word that was typed, and runs its handler.

Only that module is imported: the quick commands must stay quick. The module
of a client command has ``WORD``, which writes its arguments down; those of
`server` and `admin` have ``add_parser(subparsers)``, whose parsers name their
handler with ``set_defaults(handler=...)``. A handler takes the arguments and
returns the exit code. What goes wrong is an SvcError, told here and nowhere else.

Standard library only (beside svc itself), so that the manual pages and
docs/cli.md can be made from `build_parser`.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from svc.cli.arguments import Arguments
    from svc.cli.parser import Parser
    from svc.errors import SvcError

DESCRIPTION = (
    "Containerised workspaces on a shared Linux host, each user's in that user's own rootless Podman."
)
# heading: {word: (module, what it is for)}, in the order of `svc --help`
GROUPS = {
    "client commands, for the users of this host": {
        "whoami": ("svc.cli.whoami", "the account that the service sees when you call"),
        "servers": ("svc.cli.servers", "this host's GPUs and their driver"),
        "ws": ("svc.cli.ws.ws", "workspaces: create, start, stop, run commands in them"),
        "template": ("svc.cli.template.template", "what workspaces are made from"),
        "image": ("svc.cli.image", "the templates' images in your own store"),
        "fs": ("svc.cli.fs.fs", "files of your file roots: listed, moved in and out, removed"),
        "token": ("svc.cli.token", "access tokens, for calls of the HTTP API from other hosts"),
        "api": ("svc.cli.api", "one raw request to the HTTP API"),
    },
    "the host": {
        "env": ("svc.cli.env", "the settings in force on this host"),
        "server": ("svc.server", "start the HTTP server"),
        "admin": ("svc.admin", "set up, check and mend the service (as root)"),
    },
}
WORDS = {word: row for rows in GROUPS.values() for word, row in rows.items()}

# "A remote server address, alias, password, session file, PAT or TLS option cannot be given"
REMOTE = (
    "--server", "--url", "--base-url", "--host", "--remote", "--alias", "--password", "--session",
    "--session-file", "--cookie", "--token", "--pat", "--tls", "--tls-verify", "--insecure", "--cert",
    "--cacert",
)  # fmt: skip
EXIT_INTERRUPTED = 130  # as a shell reports SIGINT
EXIT_PIPE_CLOSED = 141  # as a shell reports SIGPIPE


def build_parser(words: Iterable[str] = WORDS) -> Parser:
    """The parser of all words, or of those given."""
    from svc.cli.parser import Parser, add_word

    parser = Parser(prog="svc", description=DESCRIPTION)
    parser.add_argument(
        "--version", action="store_true", help="print the commit that this program was built from"
    )
    chosen = parser.add_subparsers(dest="word", metavar="<command>", prog="svc", required=True)
    for word in words:
        module = _module(word)
        if hasattr(module, "WORD"):
            add_word(chosen, module.WORD, WORDS[word][1])
        else:
            module.add_parser(chosen)
    return parser


def _module(word: str) -> Any:
    """The module of a word, loaded now (importlib itself takes a millisecond to load)."""
    return __import__(WORDS[word][0], fromlist=["WORD"])


def usage() -> str:
    """What `svc --help` prints; made from the table above, so that no word's module is loaded for it."""
    lines = ["usage: svc [--help] [--version] <command> ...", "", DESCRIPTION, ""]
    for heading, rows in GROUPS.items():
        lines += [f"{heading}:", *(f"  {word:<10} {text}" for word, (_, text) in rows.items()), ""]
    lines += [
        "options:",
        "  --help     this text; `svc <command> --help` for a command's own, with examples",
        "  --version  the commit that this program was built from",
        "",
        "exit codes: 0 success; 1 API or network error, or a confirmation not given; 2 wrong usage;",
        "3 this Linux account has no service account, or its setup is incomplete",
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    try:
        code = _run(given)
        sys.stdout.flush()  # here, where a closed pipe or a full disk can still be told
        return code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return EXIT_PIPE_CLOSED
    except OSError as error:
        _drop_output()
        print(
            f"svc: {error.strerror or error}{f': {error.filename}' if error.filename else ''}",
            file=sys.stderr,
        )
        return 1


def _run(argv: list[str]) -> int:
    if argv == ["--version"]:
        from svc.version import commit

        print(commit())
        return 0
    if not argv or argv[0] in ("-h", "--help"):
        print(usage(), file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    from svc.errors import SvcError, UsageError

    try:
        return _dispatch(argv)
    except UsageError as error:
        return _tell(_remote_usage(argv) or error)
    except SvcError as error:
        return _tell(error)


def _dispatch(argv: list[str]) -> int:
    from svc.errors import UsageError

    if argv[0] not in WORDS:
        raise UsageError(f"no such command: {argv[0]}", hint="svc --help")
    argv, inner = _cut(argv)
    args = _read(argv)
    args.inner = inner
    return int(args.handler(args))


def _read(argv: list[str]) -> Arguments:
    """The arguments: read on the spot where they are plainly right, else judged by argparse."""
    from svc.cli.arguments import Arguments, read
    from svc.errors import UsageError

    word = getattr(_module(argv[0]), "WORD", None)
    plain = read(word, argv[1:]) if word is not None else None
    if plain is not None:
        return plain
    args, unknown = build_parser(argv[:1]).parse_known_args(argv, Arguments())
    if unknown:
        verbs = (getattr(args, name, None) for name in ("word", "verb", "inner_verb"))
        told = " ".join(name for name in verbs if name)
        raise UsageError(f"not understood: {' '.join(unknown)}", hint=f"svc {told} --help")
    return args


def _cut(argv: list[str]) -> tuple[list[str], list[str]]:
    """`ws exec`'s command apart from its own arguments: argparse.REMAINDER would swallow its options."""
    if argv[:2] != ["ws", "exec"]:
        return argv, []
    at = argv.index("--") if "--" in argv else len(argv)
    own, command = argv[:at], argv[at + 1 :]
    if own == argv and not {"-h", "--help"} & set(own):
        from svc.errors import UsageError

        raise UsageError("the command is written after --", hint="svc ws exec WORKSPACE -- COMMAND...")
    return own, command


def _remote_usage(argv: list[str]) -> SvcError | None:
    """The clear text for someone who tries to reach another host; None for any other mistake."""
    from svc.errors import UsageError

    own = argv[: argv.index("--")] if "--" in argv else argv
    if own[0] in ("admin", "server") or (own[:2] == ["ws", "exec"] and own == argv):
        return None  # no client command, or one whose own command was put in the wrong place
    remote = next((word for word in own if word.partition("=")[0] in REMOTE or "://" in word), None)
    if remote is None:
        return None
    return UsageError(
        f"client commands talk to the service on this host only, as whoever calls: {remote} has no place",
        hint="from another host call the HTTP API with a personal access token",
    )


def _tell(error: SvcError) -> int:
    """Print `svc: message`, the fields and the hint to standard error; returns the exit code."""
    from svc.cli.output import visible

    lines = [f"svc: {visible(error.message)}"]
    lines += [f"  {visible(field['field'])}: {visible(field['message'])}" for field in error.fields]
    if error.hint:
        lines.append(f"hint: {visible(error.hint)}")
    sys.stdout.flush()
    print("\n".join(lines), file=sys.stderr)
    return error.exit_code


def _prepare_streams() -> None:
    """Standard streams that can be used, whatever the caller has closed and the locale lacks."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # opened first, or the next socket would become the closed stream's descriptor
            setattr(sys, name, open("/dev/null", "r" if name == "stdin" else "w"))  # noqa: SIM115 (for good)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Nobody reads standard output any more: let the interpreter's own last flush go nowhere."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
