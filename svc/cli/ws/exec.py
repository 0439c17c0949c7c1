"""`svc ws exec`: one non-interactive command in a running workspace."""

from __future__ import annotations

import sys

from svc.cli import output
from svc.cli.arguments import WORKSPACE, Argument, Arguments, Command, whole
from svc.cli.client import ask, show_raw
from svc.cli.ws.columns import path
from svc.errors import BadAnswer, UsageError
from svc.limits import EXEC_OUTPUT_MAX, EXEC_TIMEOUT_DEFAULT_S, EXEC_TIMEOUT_MAX_S

SLACK_S = 60  # beyond the command's own timeout, for the agent's start and the kill
EXAMPLES = """\
svc ws exec demo -- id
svc ws exec demo --timeout 600 -- make -j4
svc ws exec demo --exit-status -- sh -c 'exit 7'"""


def exec_(args: Arguments) -> int:
    """Run one command in a running workspace of yours and print its output.

    The command's standard input is empty. At most 256 KiB of output are kept, both
    streams together. Exit code 0 if the command's is 0, else 1 with the command's
    code on standard error; --exit-status exits with the command's own code.
    """
    if not args.exec_command:
        raise UsageError("no command after --", hint=f"svc ws exec {args.workspace} -- COMMAND...")
    timeout_s = args.timeout or EXEC_TIMEOUT_DEFAULT_S
    request = {"command": args.exec_command, "timeout_s": timeout_s}
    answer = ask(args, "POST", path(args, "/exec"), request, wait_s=timeout_s + SLACK_S)
    result = answer.json()
    if args.json:
        show_raw(answer)
    else:
        _print_streams(result)
    return _exit_code(result, timeout_s, args.exit_status)


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
        output.note(f"the command was killed after {timeout_s} seconds")
        return 1
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
        examples=EXAMPLES,
        usage="svc ws exec [--timeout SECONDS] [--exit-status] [--json] WORKSPACE -- COMMAND...",
    ),
)
