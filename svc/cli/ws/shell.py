"""`svc ws shell`: a terminal in a running workspace, which outlives the connection to it."""

from __future__ import annotations

from svc.cli.ws import attaching
from svc.cli.ws.columns import path
from svc.cli.ws.detaching import DEFAULT, keys
from svc.client.requests import ask, items, quote, show_ended, show_raw
from svc.commandline import output
from svc.commandline.arguments import WORKSPACE, Argument, Arguments, Command, reference
from svc.commandline.output import plain, state, when
from svc.errors import UsageError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from svc.cli.ws.viewer import Result

COLUMNS = (
    ("ID", "id", plain),
    ("STATE", "state", state),
    ("COMMAND", "command", plain),
    ("TITLE", "title", plain),
    ("VIEWERS", "viewers", plain),
    ("OPENED", "opened_at", when),
    ("ACTIVE", "active_at", when),
    ("EXIT", "exit_code", plain),
)
LOST = {
    "closed": "the terminal was closed",
    "idle": "the terminal was closed: nobody used it for a day",
    "stopped": "the workspace has stopped, and the terminal with it",
    "lost": "the terminal was lost",
    "refused": "access to the terminal is lost",
}
EXAMPLES = """\
svc ws shell demo
svc ws shell demo --command top
svc ws shell demo --list
svc ws shell demo --attach t-4k2m9x"""


def shell(args: Arguments) -> int:
    """Open a terminal in a running workspace of yours, with your shell or a command.

    The terminal belongs to the workspace: it goes on when the connection breaks, this
    window closes or the service restarts (then svc attaches again by itself). The detach
    keys leave it; --list shows the terminals, --attach returns to one. Exit code 0 if the
    shell's is 0 or you have detached, else 1 with the shell's code on standard error;
    --exit-status exits with the shell's own code. Needs a terminal: scripts use svc ws exec.
    """
    if args.list:
        return _list(args)
    if args.close is not None:
        ask(args, "DELETE", path(args, f"/terminals/{quote(args.close)}"))
        return show_ended(args, f"{args.close} is closed.", closed=args.close)
    if args.json:
        raise UsageError(
            "--json is for --list and --close", hint=f"svc ws shell {args.workspace} --list --json"
        )
    if args.attach is not None and args.command is not None:
        raise UsageError("--command is of a new terminal, --attach returns to one that exists")
    return _view(args)


def _list(args: Arguments) -> int:
    answer = ask(args, "GET", path(args, "/terminals"))
    if args.json:
        return show_raw(answer)
    empty = f"No terminals yet: svc ws shell {output.shell_quote(args.workspace)}"
    output.table(COLUMNS, items(answer.json()), empty)
    return 0


def _view(args: Arguments) -> int:
    if missing := attaching.require():
        raise UsageError(
            f"standard {missing} is not a terminal",
            hint=f"svc ws exec -i {output.shell_quote(args.workspace)} -- sh   # reads commands from there",
        )
    sequence = keys(DEFAULT) if args.detach_keys is None else args.detach_keys
    command = None if args.command is None else ["sh", "-c", args.command]
    terminal, where = args.attach or "", path(args, "/terminal")
    upgrade = attaching.attach(where, terminal, command)
    from svc.cli.ws import tty  # while the service opens the terminal
    from svc.cli.ws.viewer import Viewer

    viewer = Viewer(where, sequence, terminal, upgrade)
    try:
        result = viewer.run()
    except tty.Ended as ended:
        return tty.end_by(ended.number)
    if result.reason != "exited":
        tty.write(b"\r\n")  # the cursor may be anywhere
    return _outcome(args, result, viewer.terminal)


def _outcome(args: Arguments, result: Result, terminal: str) -> int:
    workspace = output.shell_quote(args.workspace)
    again = f"svc ws shell {workspace} --attach {terminal}"
    if result.reason == "detached":
        output.note(f"detached; the terminal runs on: {again}")
        return 0
    if result.reason != "exited":
        why = LOST.get(result.reason, LOST["lost"])
        output.note(f"{why}: {result.message}" if result.message not in ("", result.reason) else why)
        hints = {"lost": again if result.message else "", "stopped": f"svc ws start {workspace}",
                 "refused": "svc whoami"}  # fmt: skip
        if hint := hints.get(result.reason):
            output.remark(f"hint: {hint}")
        return 1
    code = result.exit_code
    if code == 0:
        return 0
    if args.exit_status and code is not None and 0 < code < 256:
        return code
    output.note("the shell has ended" if code is None else f"the shell exited with code {code}")
    return 1


COMMANDS = (
    Command(
        "shell",
        shell,
        WORKSPACE,
        Argument("--command", "run this, by sh, instead of your shell", metavar="COMMAND"),
        Argument("--attach", "return to this terminal", metavar="TERMINAL", type=reference),
        Argument("--list", "print the terminals of the workspace", kind="flag"),
        Argument("--close", "close this terminal, and what runs in it", metavar="TERMINAL", type=reference),
        Argument(
            "--detach-keys", f"keys that leave the terminal (default {DEFAULT}; '' for none)",
            metavar="KEYS", type=keys,
        ),
        Argument("--exit-status", "exit with the shell's own code", kind="flag"),
        examples=EXAMPLES,
    ),
)  # fmt: skip
