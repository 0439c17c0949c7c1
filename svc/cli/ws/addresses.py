"""The ways into the running programs of a workspace, for people: addresses, tokens and `ssh -L`.

Below the tables of `svc ws launchers`, after `svc ws get` and after a start, on a terminal only.
"""

from __future__ import annotations

from svc.cli.ws.columns import path_of
from svc.client.requests import ask, items
from svc.commandline import output
from svc.commandline.output import pick, text
from svc.errors import SvcError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.commandline.arguments import Arguments


def show_for(args: Arguments, record: Any) -> None:
    """The ways into the launchers of one's own running workspace; nothing where they cannot be read."""
    launchers = pick(record, "launchers")
    if pick(record, "status") != "running" or not (isinstance(launchers, list) and launchers):
        return
    try:
        answer = ask(args, "GET", path_of(text(record, "id"), "/launchers"))
    except SvcError as error:
        output.note(f"the launchers could not be read: {error.message}")
        return
    found = items(answer.json())
    for one in found:
        print(output.visible(f"{text(one, 'name')} is {text(one, 'state')}{_exit_code(one)}"))
    show(text(record, "name"), found)


def note_failed(args: Arguments, records: list[Any]) -> None:
    """Name, below a list of one's own workspaces, the launchers of running ones that have failed.

    The list itself comes from the database, which does not know: a failure of this is none of the list.
    """
    names = {text(record, "id"): text(record, "name") for record in records}
    try:
        found = items(ask(args, "GET", "/api/usage/workspaces").json())
    except SvcError:
        return
    for use in found:
        launchers = pick(use, "launchers")
        for one in launchers if isinstance(launchers, list) else []:
            if text(one, "state") == "exited" and text(one, "exit_code") not in ("", "0"):
                workspace = names.get(text(use, "id"), text(use, "id"))
                name = text(one, "name")
                log = f"svc ws logs {workspace} --launcher {name}"
                output.note(f"the launcher {name} of {workspace} has exited{_exit_code(one)}: {log}")


def _exit_code(launcher: Any) -> str:
    code = text(launcher, "exit_code")
    return f" with exit code {code}" if text(launcher, "state") == "exited" and code else ""


def show(workspace: str, launchers: list[Any]) -> None:
    """Print how a person comes to each one that has been started, and to its log where it has ended."""
    lines: list[str] = []
    for one in launchers:
        name, state = text(one, "name"), text(one, "state")
        if state == "exited":
            lines.append(f"The output of {name}: svc ws logs {workspace} --launcher {name}")
        if state == "started":
            lines += _ways(name, one)
    ssh = list(dict.fromkeys(text(one, "ssh") for one in launchers if text(one, "state") == "started"))
    lines += [f"From another computer, first: {line}" for line in ssh if line]
    if lines:
        print()
    for line in lines:
        print(output.visible(line))


def _ways(name: str, launcher: Any) -> list[str]:
    token, address = text(launcher, "token"), text(launcher, "link") or text(launcher, "connect")
    lines = [f"{name}: {address}"] if address else []
    if token and not text(launcher, "link"):
        lines.append(f"{name}: its token is {token}")
    return lines
