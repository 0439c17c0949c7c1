"""The last lines that a program has printed in its present run, for the reply to its start."""

from __future__ import annotations

from collections.abc import Iterable

from svc_helper.agent.calls import Call
from svc_helper.agent.containers.logs import open_files
from svc_helper.agent.home import Home
from svc_helper.agent.runtime import log_files
from svc_helper.agent.runtime.log_files import Files, Position
from svc_helper.wire.quick_typing import Any

LINES = 10
_BYTES_MAX = 4000
_READ = 256 * 1024  # a row, which is never read in part, has 64 KiB


def end_of(home: Home, workspace_id: str) -> Position:
    """Where the container's output ends now."""
    with open_files(home, _of(workspace_id)) as files:
        return files.end


def of_container(home: Home, call: Call, workspace_id: str, before: Position) -> str:
    """What it has printed since then."""
    with open_files(home, _of(workspace_id)) as files:
        start = log_files.find_start(files, LINES, _READ, call.check).position
        return _bounded(log_files.output_of(rows) for rows in _from(files, max(start, before)))


def of_launcher(home: Home, call: Call, workspace_id: str, name: str) -> str:
    """What it has printed since the shim's last marker, that of its start."""
    with open_files(home, _of(workspace_id, name)) as files:
        start = log_files.find_start(files, LINES, _READ, call.check).position
        since: list[bytes] = []
        for rows in _from(files, start):
            for kind, text in log_files.pieces_of(rows):
                since = [] if kind == log_files.MARKER else [*since, text]
        return _bounded(since)


def _of(workspace_id: str, launcher: str | None = None) -> dict[str, Any]:
    return {"id": workspace_id, "launcher": launcher}


def _from(files: Files, start: Position) -> Iterable[bytes]:
    return files.forward(start, files.end) if start < files.end else ()


def _bounded(parts: Iterable[bytes]) -> str:
    """As much of the end as goes with another reply."""
    return b"".join(parts).decode(errors="replace")[-_BYTES_MAX:]
