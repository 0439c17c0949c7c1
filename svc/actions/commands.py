"""Command lines made from the table's rows: a hint that knows its request, which a button makes."""

from __future__ import annotations

import json
import shlex
from typing import Any
from urllib.parse import quote

from svc.actions.table import WORKSPACE_EDIT, Action


class Command(str):
    """A command line to type. `action`: the same as a request, {label, method, path, body}, or None."""

    action: dict[str, Any] | None

    def __new__(cls, line: str, action: dict[str, Any] | None = None) -> Command:
        """A line, and what a button does."""
        created = super().__new__(cls, line)
        created.action = action
        return created

    def then(self, line: str) -> Command:
        """This one and a further command; the button does the first."""
        return Command(f"{self} && {line}", self.action)


def command(action: Action, **names: str) -> Command:
    """The row's command for these names: those of the path are in the path, the others are the body."""
    body = {key: name for key, name in names.items() if f"{{{key}}}" not in action.path}
    return Command(_line(action, names), _request(action, names, body))


def edit(workspace: str, patch: dict[str, Any]) -> Command:
    """Change a workspace by this merge patch."""
    names = {"ref": workspace, "patch": json.dumps(patch, ensure_ascii=False)}
    return Command(_line(WORKSPACE_EDIT, names), _request(WORKSPACE_EDIT, {"ref": workspace}, patch))


def upgrade_preview(workspace: str) -> Command:
    """Show what an upgrade would change."""
    line = f"svc ws upgrade {shlex.quote(workspace)} --dry-run"
    return Command(line, _reading("Show what changes", f"/workspaces/{_quoted(workspace)}/upgrade"))


def workspace_log(workspace: str) -> Command:
    """Show the output of a workspace's command."""
    line = f"svc ws logs {shlex.quote(workspace)}"
    return Command(line, _reading("Show its output", f"/workspaces/{_quoted(workspace)}/logs"))


def launcher_log(workspace: str, launcher: str) -> Command:
    """Show the output of a launcher."""
    line = f"svc ws logs {shlex.quote(workspace)} --launcher {shlex.quote(launcher)}"
    path = f"/workspaces/{_quoted(workspace)}/launchers/{_quoted(launcher)}/logs"
    return Command(line, _reading("Show its output", path))


def operation_watch(operation: str) -> Command:
    """Show the progress of an operation."""
    return Command(
        f"svc operation watch {operation}", _reading("Show the progress", f"/operations/{operation}")
    )


def operation_log(operation: str) -> Command:
    """Show the log of an operation."""
    return Command(f"svc operation log {operation}", _reading("Show the log", f"/operations/{operation}/log"))


def action_of(hint: str | None) -> dict[str, Any] | None:
    """{label, method, path, body} of a hint that is a command of the table; None of every other text."""
    return hint.action if isinstance(hint, Command) else None


def _line(action: Action, names: dict[str, str]) -> str:
    return action.command.format(**{key: shlex.quote(name) for key, name in names.items()})


def _request(action: Action, names: dict[str, str], body: dict[str, Any]) -> dict[str, Any] | None:
    if not action.button:
        return None
    path = "/api" + action.path.format(**{key: _quoted(name) for key, name in names.items()})
    return {"label": action.button.format(**names), "method": action.method, "path": path, "body": body}


def _reading(label: str, path: str) -> dict[str, Any]:
    return {"label": label, "method": "GET", "path": f"/api{path}", "body": None}


def _quoted(name: str) -> str:
    return quote(name, safe="")
