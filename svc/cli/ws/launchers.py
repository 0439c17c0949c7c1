"""`svc ws launchers` and `svc ws launcher`: the apps of a template in a workspace."""

from __future__ import annotations

from svc.cli.ws.columns import path
from svc.client.requests import ask, items, quote, show_items, show_outcome
from svc.commandline import output
from svc.commandline.arguments import WORKSPACE, Argument, Arguments, Command, CommandGroup, reference
from svc.commandline.output import plain, state, text, url, when

LAUNCHER = Argument("LAUNCHER", "its name, as `svc ws launchers` shows it", type=reference)
COLUMNS = (
    ("NAME", "name", plain),
    ("STATE", "state", state),
    ("EXIT", "exit_code", plain),
    ("STARTED", "started_at", when),
    ("FINISHED", "finished_at", when),
    ("ADDRESS", "connect", url),
    ("AUTO", "autostart", plain),
    ("TITLE", "title", plain),
)
# Only `launchers` reads tokens: the other commands' lines go into logs of scripts.
IN_PIPE = (*COLUMNS, ("SSH", "ssh", url), ("TOKEN", "token", plain), ("LINK", "link", url))
DESCRIPTION = """\
List, start or stop launchers.

Launchers are the template's named apps; they run inside the workspace. Their
output is kept: `svc ws logs WORKSPACE --launcher NAME`."""


def launchers(args: Arguments) -> int:
    """List a workspace's launchers with their states.

    Columns: name, state (stopped, started, exited), exit (its exit code), started,
    finished, address (of the port that it serves), autostart, title; in a pipe also ssh (the
    command on another computer after which the address works there), token (for logging in,
    where the template says how to find it) and link (the address to open, token included).
    On a terminal these are below the table. Only the workspace's owner sees them. `svc ws
    launcher list` is the same command.
    """
    empty = "The template of this workspace has no launchers."
    answer = ask(args, "GET", path(args, "/launchers"))
    human = output.on_terminal() and not args.json
    show_items(args, answer, COLUMNS if human else IN_PIPE, empty)
    if human:
        from svc.cli.ws.addresses import show

        show(args.workspace, items(answer.json()))
    return 0


def start(args: Arguments) -> int:
    """Start a launcher in a running workspace; no change if it is already started.

    A launcher that serves a named port gets the port's number inside the container
    in the environment variable SVC_PORT. One that exits within a second with an exit code
    other than 0 is an error, with its last lines.
    """
    answer = ask(args, "POST", _path(args, "start"), {})
    how = "{name} is {state}"
    if not args.json and text(answer.json(), "state") == "exited":
        how = "{name} has ended with exit code {exit_code}"
    sentence = f"{how}; its output: svc ws logs {args.workspace} --launcher {args.launcher}"
    return show_outcome(args, answer, COLUMNS, sentence)


def stop(args: Arguments) -> int:
    """Stop a launcher and the processes that it has started.

    They get SIGTERM, and ten seconds later SIGKILL. No change if it is stopped, or its
    workspace is.
    """
    return show_outcome(args, ask(args, "POST", _path(args, "stop"), {}), COLUMNS, "{name} is {state}.")


def _path(args: Arguments, verb: str) -> str:
    return path(args, f"/launchers/{quote(args.launcher)}/{verb}")


COMMANDS = (
    Command(
        "launchers", launchers, WORKSPACE, examples="svc ws launchers demo\nsvc ws launchers demo --json"
    ),
    CommandGroup(
        "launcher",
        DESCRIPTION,
        Command("list", launchers, WORKSPACE, examples="svc ws launcher list demo"),
        Command("start", start, WORKSPACE, LAUNCHER, examples="svc ws launcher start demo jupyter"),
        Command("stop", stop, WORKSPACE, LAUNCHER, examples="svc ws launcher stop demo jupyter"),
    ),
)
