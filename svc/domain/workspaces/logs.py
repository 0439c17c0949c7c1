"""Logs of a workspace's container or of one of its launchers: the newest lines, and following.

Owner-only, in every state of the workspace. The container's raw stdout and stderr,
or "the bounded persistent captured output of that configured launcher"; programs
started by hand are not captured.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

from svc.domain import untrusted
from svc.domain.principal import Caller
from svc.domain.workspaces import launchers, states
from svc.errors import NotFound
from svc.limits import LOG_BYTES_MAX

HEARTBEAT_S = 15.0  # between the signs of life that a follower gets while there is no output
PIECE_MAX = 64 * 1024  # characters of one message; an agent sends at most 32 KiB


def tail(caller: Caller, ref: str, lines: int, launcher: str | None = None) -> dict[str, Any]:
    """The newest lines: {text, truncated}; empty before the first start. Raises NotFound, OwnerOnly."""
    if launcher is None:
        workspace = states.find(caller, ref)
        verb, arguments = "ctr.logs", {"id": workspace.id, "tail": lines}
    else:
        workspace = states.find_own(caller, ref)
        launchers.get(workspace, launcher)
        verb, arguments = "launcher.logs", {"id": workspace.id, "name": launcher, "tail": lines}
    try:
        reply = caller.ask(verb, arguments)
    except NotFound:
        return {"text": "", "truncated": False}
    return {
        "text": untrusted.get_output_text(reply, "text", LOG_BYTES_MAX),
        "truncated": untrusted.get_flag(reply, "truncated"),
    }


def follow(
    caller: Caller, ref: str, lines: int, launcher: str | None = None, *, hangup_fds: Sequence[int] = ()
) -> Generator[str | None, None, None]:
    """The newest lines and all later ones, piece by piece; None after HEARTBEAT_S without output.

    Ends when the container or the launcher has ended and all is sent, and with
    Conflict when the caller's connection or one of hangup_fds hangs up. Raises
    NotFound at once, before any call to the agent.
    """
    workspace = states.find(caller, ref)
    if launcher is not None:
        launchers.get(workspace, launcher)
    watched = [*([] if caller.hangup_fd is None else [caller.hangup_fd]), *hangup_fds]
    return _pieces(caller, {"id": workspace.id, "launcher": launcher, "tail": lines}, watched)


def _pieces(
    caller: Caller, arguments: dict[str, Any], watched: Sequence[int]
) -> Generator[str | None, None, None]:
    try:
        with closing(
            caller.follow("ctr.follow", arguments, hangup_fds=watched, tick_s=HEARTBEAT_S)
        ) as messages:
            for message in messages:
                yield None if message is None else untrusted.get_output_text(message, "text", PIECE_MAX)
    except NotFound:  # it was never started
        return
