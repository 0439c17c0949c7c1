"""How each launcher is, in NAME.json: written by the shim, read by any agent, also when no shim runs.

The directory is the user's: what is read from it is checked as if somebody had made it up.
"""

from __future__ import annotations

import json
import os
import re
import time
from typing import Any, NamedTuple

from svc_helper import atomic_file
from svc_helper.agent.runtime import records
from svc_helper.wire.limits import SLUG

STOPPED, STARTED, EXITED = "stopped", "started", "exited"
LAUNCHERS_MAX = 64  # of one workspace
_NAME = re.compile(SLUG)
_MARK = re.compile(r"[a-z0-9-]{1,120}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_FILE_MAX = 16 * 1024
_NAMES_MAX = 4096


class State(NamedTuple):
    """One launcher; of the last three the shim alone makes use."""

    name: str
    state: str = STOPPED  # by request, or because the workspace ended; or started; or exited: by itself
    exit_code: int | None = None
    pid: int | None = None  # on the host, while it runs
    started_at: str | None = None
    finished_at: str | None = None
    run: str = ""  # of which run of the container
    mark: str = ""  # of its processes
    group: str = ""  # their cgroup, if they have one of their own

    def row(self) -> dict[str, Any]:
        """What a caller gets to know of it."""
        return {
            "name": self.name,
            "state": self.state,
            "exit_code": self.exit_code,
            "pid": self.pid,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
        }


def now() -> str:
    """The time as everywhere: RFC 3339, UTC, seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def ended(state: State) -> State:
    """A launcher whose workspace has ended, without anybody to see when."""
    return state._replace(state=STOPPED, pid=None) if state.state == STARTED else state


def write(directory: str, state: State) -> None:
    """Replace the file of one launcher; readers see the old or the new. Raises OSError."""
    content = json.dumps(state._asdict()).encode("ascii")
    atomic_file.replace(f"{directory}/{state.name}.json", content, durable=False)


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
    """One launcher's; None for one that never ran, or a file that no shim wrote."""
    try:
        untrusted = json.loads(records.read(f"{directory}/{name}.json", _FILE_MAX))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(untrusted, dict) or set(untrusted) != set(State._fields):
        return None
    made = State(**untrusted)
    return made if made.name == name and _plausible(made) else None


def _plausible(untrusted: State) -> bool:
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
