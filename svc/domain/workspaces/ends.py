"""Programs that end right after their start: the error for it, with the cause or the last lines.

A workspace's command that ends with 0 is a batch job and no error. What a program or an engine
has printed is for the workspace's owner: it goes into the error and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from svc import engine_errors
from svc.actions.commands import workspace_log
from svc.domain import engine_hints, untrusted
from svc.domain.templates import rows as template_rows
from svc.domain.workspaces.states import Workspace
from svc.errors import EngineFailed, ExitedAtOnce, SvcError
from svc.helper import replies

OUTPUT_MAX = 8000  # characters; an agent sends at most 4000
LINES_MAX, LINE_MAX = 10, 500
KILLED = "{name} was killed at its memory limit as soon as it had started"


class Ended(NamedTuple):
    """How a container has ended, by its agent's reply to the start."""

    exit_code: int | None
    oom_killed: bool
    output: list[str]
    cause: type[EngineFailed] | None  # of a command that never began
    message: str  # of the cause


def of_start(reply: Mapping[str, Any]) -> Ended | None:
    """How the container of a reply to ctr.start has ended; None while it runs."""
    ended = reply.get("ended")
    if type(ended) is not dict:
        return None
    return Ended(
        exit_code=untrusted.find_number(ended, "exit_code"),
        oom_killed=ended.get("oom_killed") is True,
        output=last_lines(ended),
        cause=_cause(ended.get("code")),
        message=replies.printable(ended.get("message")),
    )


def _cause(untrusted_code: Any) -> type[EngineFailed] | None:
    kind = engine_errors.CAUSES.get(untrusted_code) if type(untrusted_code) is str else None
    return kind if kind and issubclass(kind, EngineFailed) else None


def last_lines(reply: Mapping[str, Any]) -> list[str]:
    """The last lines of `output` in a reply, one printable text each; none where it has none."""
    if reply.get("output") is None:
        return []
    text = untrusted.get_output_text(reply, "output", OUTPUT_MAX).rstrip()
    return (
        [replies.escaped(line.expandtabs(4), LINE_MAX) for line in text.split("\n")[-LINES_MAX:]]
        if text
        else []
    )


def error_of(workspace: Workspace, ended: Ended, user: str) -> SvcError | None:
    """The error for a workspace whose command has ended like this; None for one that ended with 0."""
    if ended.exit_code == 0:
        return None
    details: dict[str, Any] = {"exit_code": ended.exit_code}
    if ended.cause is not None:
        details["engine"] = ended.output[-1] if ended.output else ""
        error: SvcError = ended.cause(f"{workspace.name} cannot run: {ended.message}", details=details)
    elif ended.oom_killed:
        error = engine_errors.MemoryTooSmall(KILLED.format(name=workspace.name), details=details)
    else:
        return exited(workspace.name, ended.exit_code, ended.output, workspace_log(workspace.name))
    template = template_rows.reference(workspace.owner_id, workspace.template_id)
    names = {"workspace": workspace.name, "template": template, "user": user}
    engine_hints.complete(error, **names)
    return error


def exited(name: str, exit_code: int | None, output: list[str], hint: str) -> ExitedAtOnce:
    """The error for a workspace or a launcher that has exited by itself, with its last lines."""
    message = f"{name} has exited at once, with exit code {exit_code}"
    message += "" if output else ", and has printed nothing"
    return ExitedAtOnce(message, hint=hint, details={"exit_code": exit_code, "output": output})
