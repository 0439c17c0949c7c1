"""`svc ws exec`: one non-interactive command in a running workspace."""

from __future__ import annotations

import sys

from svc.cli.ws.columns import path
from svc.client.requests import ask, show_raw
from svc.commandline import output
from svc.commandline.arguments import WORKSPACE, Argument, Arguments, Command, whole
from svc.errors import BadAnswer, InvalidRequest, UsageError
from svc.limits import EXEC_TIMEOUT_DEFAULT_S
from svc_helper.wire import quick_json
from svc_helper.wire.limits import EXEC_OUTPUT_MAX, EXEC_TIMEOUT_MAX_S

EXIT_TIMED_OUT = 124  # the API's code too, as that of timeout(1)
ARG_WIDTH = 60  # characters of a word in a message
SLACK_S = 60  # beyond the command's own timeout, for the agent's start and the kill
EXAMPLES = """\
svc ws exec demo -- id
svc ws exec demo --timeout 600 -- make -j4
svc ws exec demo --exit-status -- sh -c 'exit 7'
svc ws exec -i demo -- tar -C /opt -xf - < tools.tar"""


def exec_(args: Arguments) -> int:
    """Run one command in a running workspace of yours and print its output.

    The command's standard input is empty; what waits on svc's own is not passed on,
    and svc says so. With -i it is passed on, of any size and any bytes, and all output
    comes as it is written, without a limit. A command may be as long as Linux allows: 128 KiB for a word,
    about 2 MiB for all. At most 256 KiB of output are kept, both streams together.
    Exit code 0 if the command's is 0, else 1 with the command's code on standard
    error; --exit-status exits with the command's own code, and with 124 after a
    timeout.
    """
    if not args.exec_command:
        raise UsageError("no command after --", hint=f"svc ws exec {args.workspace} -- COMMAND...")
    if args.interactive and args.json:
        raise UsageError("-i passes the output on as it comes, --json collects it", hint="svc ws exec --help")
    timeout_s = args.timeout or EXEC_TIMEOUT_DEFAULT_S
    require_text(args.exec_command, args.workspace)
    request = {"command": args.exec_command, "timeout_s": timeout_s}
    if args.interactive:
        from svc.cli.ws import piping

        return _exit_code(piping.run(path(args, "/exec/stream"), request), timeout_s, args.exit_status)
    body = quick_json.dumps(request, ascii_only=False).encode()
    noted = note_unread(args.workspace)
    answer = ask(args, "POST", path(args, "/exec"), body, wait_s=timeout_s + SLACK_S)
    if not noted:  # it may have come meanwhile
        note_unread(args.workspace)
    result = answer.json()
    if args.json:
        show_raw(answer)
    else:
        _print_streams(result)
    return _exit_code(result, timeout_s, args.exit_status)


def require_text(command: list[str], workspace: str) -> None:
    """Raise InvalidRequest for a word that is not UTF-8, by its place and name: no engine takes one."""
    for number, argument in enumerate(command, 1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise InvalidRequest(
                f"word {number} of the command is not UTF-8, which Podman cannot pass:"
                f" {argument[:ARG_WIDTH]}",
                hint=f"{_by_shell(workspace, 'COMMAND /work/*')}  # the shell inside finds the name",
            ) from None


def _by_shell(workspace: str, line: str) -> str:
    """The command that has a shell in the workspace do it."""
    return f"svc ws exec {output.shell_quote(workspace)} -- sh -c {output.shell_quote(line)}"


def note_unread(workspace: str, remedy: str = "") -> bool:
    """Say that standard input goes nowhere, if something is there: no terminal, no /dev/null, not empty."""
    try:
        waiting = _has_input()
    except (OSError, ValueError):  # it is closed, or tells nothing
        return False
    if waiting:
        output.note("standard input is not passed on: the command's own is empty")
        remedy = remedy or f"svc ws exec -i {output.shell_quote(workspace)} -- COMMAND"
        output.remark(f"hint: {remedy}")
    return waiting


def _has_input() -> bool:
    """Whether a reader of standard input would get bytes now; none are read."""
    import os
    import stat

    status = os.fstat(0)
    if stat.S_ISREG(status.st_mode):
        return status.st_size > os.lseek(0, 0, os.SEEK_CUR)
    if stat.S_ISCHR(status.st_mode):
        return not os.isatty(0) and status.st_rdev != os.stat(os.devnull).st_rdev
    if not stat.S_ISFIFO(status.st_mode) and not stat.S_ISSOCK(status.st_mode):
        return stat.S_ISBLK(status.st_mode)
    import fcntl
    import termios

    return fcntl.ioctl(0, termios.FIONREAD, bytes(4)) != bytes(4)


def _print_streams(result: dict[str, object]) -> None:
    """The command's output, byte for byte."""
    from binascii import Error, a2b_base64

    try:
        out, err = (
            a2b_base64(output.text(result, stream), strict_mode=True) for stream in ("stdout", "stderr")
        )
    except (Error, ValueError):
        raise BadAnswer("the service's answer does not hold the command's output") from None
    output.write_bytes(out)
    sys.stderr.flush()
    sys.stderr.buffer.write(err)
    sys.stderr.buffer.flush()
    if result.get("truncated") is True:
        output.note(f"the output is truncated: at most {EXEC_OUTPUT_MAX // 1024} KiB are kept")


def _exit_code(result: dict[str, object], timeout_s: int, pass_through: bool) -> int:
    code = result.get("exit_code")
    if result.get("timed_out") is True:
        output.note(f"the command was killed after {timeout_s} second{'s' if timeout_s != 1 else ''}")
        return EXIT_TIMED_OUT if pass_through else 1
    if code == 0:
        return 0
    if pass_through and isinstance(code, int) and 0 < code < 256:
        return code
    output.note(f"the command exited with code {output.plain(code, human=True)}")
    return 1


COMMANDS = (
    Command(
        "exec",
        exec_,
        WORKSPACE,
        Argument(
            "--timeout",
            f"kill the command after this time (1-{EXEC_TIMEOUT_MAX_S}, default {EXEC_TIMEOUT_DEFAULT_S})",
            metavar="SECONDS",
            type=whole(1, EXEC_TIMEOUT_MAX_S),
        ),
        Argument("--exit-status", "exit with the command's own code", kind="flag"),
        Argument("-i", "pass standard input on to the command", kind="flag", dest="interactive"),
        examples=EXAMPLES,
        usage="svc ws exec [-i] [--timeout SECONDS] [--exit-status] [--json] WORKSPACE -- COMMAND...",
    ),
)
