"""The state of each launcher, in NAME.json: written by the shim, read by any agent, also without a shim.

The user can write to the directory: everything read from it is untrusted.
"""

from __future__ import annotations

import json
import os
import re

from svc_helper.agent import user_files
from svc_helper.wire.limits import SLUG
from svc_helper.wire.quick_typing import Any, NamedTuple

STOPPED, STARTED, EXITED = "stopped", "started", "exited"
LAUNCHERS_MAX = 64  # of one workspace
_NAME = re.compile(SLUG)
_MARK = re.compile(r"[a-z0-9-]{1,120}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_FILE_MAX = 16 * 1024
_NAMES_MAX = 4096


class State(NamedTuple):
    """One launcher; only the shim uses the last three fields."""

    name: str
    state: str = STOPPED  # stopped (on request or with the workspace), started, or exited (by itself)
    exit_code: int | None = None
    pid: int | None = None  # on the host, while it runs
    started_at: str | None = None
    finished_at: str | None = None
    run: str = ""  # the run of the container that it belongs to
    mark: str = ""  # in the environment of its processes
    group: str = ""  # their cgroup, if they have one of their own

    def row(self) -> dict[str, Any]:
        """The public fields."""
        return dict(zip(self._fields[:6], self, strict=False))


def ended(state: State) -> State:
    """The state of a launcher whose workspace ended at an unknown time."""
    return state._replace(state=STOPPED, pid=None) if state.state == STARTED else state


def write(directory: str, state: State) -> None:
    """Replace the file of one launcher. Raises OSError."""
    user_files.replace(f"{directory}/{state.name}.json", json.dumps(state._asdict()))


def read_all(directory: str) -> dict[str, State]:
    """Every launcher that ever ran in the workspace, by name."""
    found: dict[str, State] = {}
    try:
        names = sorted(os.listdir(directory))[:_NAMES_MAX]
    except OSError:
        return {}
    for name in names:
        stem = name.removesuffix(".json")
        if stem == name or not _NAME.fullmatch(stem):
            continue
        state = read(directory, stem)
        if state is not None and len(found) < LAUNCHERS_MAX:
            found[stem] = state
    return found


def read(directory: str, name: str) -> State | None:
    """One launcher's state; None if it never ran or its file is not a shim's."""
    untrusted = user_files.read_json(f"{directory}/{name}.json", _FILE_MAX)
    if not isinstance(untrusted, dict) or set(untrusted) != set(State._fields):
        return None
    state = State(**untrusted)
    return state if state.name == name and _is_plausible(state) else None


def _is_plausible(untrusted: State) -> bool:
    texts = (untrusted.run, untrusted.mark, untrusted.group)
    times = (untrusted.started_at, untrusted.finished_at)
    return (
        untrusted.state in (STOPPED, STARTED, EXITED)
        and all(isinstance(text, str) and len(text) < _NAMES_MAX for text in texts)
        and all(time is None or (isinstance(time, str) and _TIME.fullmatch(time)) for time in times)
        and (not untrusted.mark or bool(_MARK.fullmatch(untrusted.mark)))
        and (untrusted.exit_code is None or type(untrusted.exit_code) is int)
        and (untrusted.exit_code is None or 0 <= untrusted.exit_code <= 255)
        and (untrusted.pid is None or (type(untrusted.pid) is int and 0 < untrusted.pid < 2**31))
    )
