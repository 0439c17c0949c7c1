"""`svc ws launchers` and `svc ws launcher`: the template's named apps in a workspace."""

from __future__ import annotations

from svc.cli import output
from svc.cli.arguments import WORKSPACE, Argument, Arguments, Command, CommandGroup, reference
from svc.cli.client import ask, items, quote, show_outcome, show_raw
from svc.cli.output import plain, state, when

LAUNCHER = Argument("LAUNCHER", "its name, as `svc ws launchers` shows it", type=reference)
COLUMNS = (
    ("NAME", "name", plain),
    ("STATE", "state", state),
    ("EXIT", "exit_code", plain),
    ("STARTED", "started_at", when),
    ("FINISHED", "finished_at", when),
    ("URL", "url", plain),
    ("AUTO", "autostart", plain),
    ("TITLE", "title", plain),
)
DESCRIPTION = """\
Start or stop a launcher.

Launchers are named apps that the template brings; they run inside the workspace,
and what they print is kept: `svc ws logs WORKSPACE --launcher NAME`."""


def launchers(args: Arguments) -> int:
    """List a workspace's launchers and how each is.

    Columns: name, state (stopped, started, exited), exit (its exit code), started,
    finished, url (of the port it serves), autostart, title.
    """
    answer = ask(args, "GET", f"/api/workspaces/{quote(args.workspace)}/launchers")
    if args.json:
        return show_raw(answer)
    output.table(COLUMNS, items(answer.json()), "The template of this workspace has no launchers.")
    return 0


def start(args: Arguments) -> int:
    """Start a launcher in a running workspace; of a started one nothing changes.

    A launcher that serves a named port finds the port's number inside the
    container in the environment variable SVC_PORT.
    """
    sentence = "{name} is {state}; its output: " + f"svc ws logs {args.workspace} --launcher {args.launcher}"
    return show_outcome(args, ask(args, "POST", _path(args, "start"), {}), COLUMNS, sentence)


def stop(args: Arguments) -> int:
    """Stop a launcher and whatever it has started.

    They get SIGTERM, and ten seconds later SIGKILL. Of a stopped one nothing changes.
    """
    return show_outcome(args, ask(args, "POST", _path(args, "stop"), {}), COLUMNS, "{name} is {state}.")


def _path(args: Arguments, verb: str) -> str:
    return f"/api/workspaces/{quote(args.workspace)}/launchers/{quote(args.launcher)}/{verb}"


LAUNCHERS = Command(
    "launchers", launchers, WORKSPACE, examples="svc ws launchers demo\nsvc ws launchers demo --json"
)
LAUNCHER_WORD = CommandGroup(
    "launcher",
    DESCRIPTION,
    Command("start", start, WORKSPACE, LAUNCHER, examples="svc ws launcher start demo jupyter"),
    Command("stop", stop, WORKSPACE, LAUNCHER, examples="svc ws launcher stop demo jupyter"),
)
COMMANDS = (LAUNCHERS, LAUNCHER_WORD)
