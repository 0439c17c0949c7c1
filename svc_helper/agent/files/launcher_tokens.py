"""The login token of a running launcher, where its template says it is: its output, or a file inside.

A pattern is literal text around one `{token}`; it is no regular expression, so nobody's
template can keep the agent busy. What is found is in the reply and nowhere else: never
in a log, on a disk or in an argument.
"""

from __future__ import annotations

import os
import re
import stat

from svc_helper.agent import paths
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers.logs import open_files
from svc_helper.agent.containers.running import find_by_crun
from svc_helper.agent.files import beneath
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import crun, launcher_states, log_files
from svc_helper.agent.runtime.launcher_states import STARTED
from svc_helper.agent.runtime.log_files import Files, Position
from svc_helper.wire import log_frames
from svc_helper.wire.limits import PLACEHOLDER
from svc_helper.wire.quick_typing import Any

_TOKEN = rb"([A-Za-z0-9._~+/=:@%$!*-]{1,256})"
_WHOLE = re.compile(rb"\s*([!-~]{1,256})\s*")
_OUTPUT_MAX = 1024 * 1024  # of a run, from its beginning: programs print it as they start
_FILE_MAX = 64 * 1024
_STARTED = b"started "  # the marker of a run's beginning
_FOUND_MAX = 64
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


Key = tuple[str, str, str | None, str]  # workspace, launcher, pattern, mark of the run
_found: dict[Key, str] = {}  # in outputs, which only grow; in the memory of the user's own agent


def find(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """The token of one launcher; null while it does not run, or has none yet."""
    directory = paths.launchers(podman.home.home, args["id"])
    state = launcher_states.read(directory, args["name"])
    if state is None or state.state != STARTED:
        return {"token": None}
    key = (args["id"], args["name"], args["pattern"], state.mark)
    if args["file"] is None and key in _found:
        return {"token": _found[key]}
    pattern = _WHOLE if args["pattern"] is None else _compiled(args["pattern"])
    if args["file"] is not None:
        token = _in_file(podman, call, args, pattern)
    else:
        with open_files(podman.home, {"id": args["id"], "launcher": args["name"]}) as files:
            token = _in_output(call, files, pattern)
        if token is not None:
            _remember(key, token)
    return {"token": token}


def _remember(key: Key, token: str) -> None:
    """Spare lists that are asked for again and again the output of a long run."""
    while len(_found) >= _FOUND_MAX:
        _found.pop(next(iter(_found)), None)
    _found[key] = token


def _compiled(pattern: str) -> re.Pattern[bytes]:
    before, mark, after = pattern.partition(PLACEHOLDER)
    if not mark or PLACEHOLDER in after:
        raise Failure("protocol", "a pattern without exactly one token")
    return re.compile(re.escape(before.encode()) + _TOKEN + re.escape(after.encode()))


def _in(line: bytes, pattern: re.Pattern[bytes]) -> str | None:
    match = pattern.fullmatch(line) if pattern is _WHOLE else pattern.search(line)
    return match[1].decode("ascii") if match else None


# --- in its output ----------------------------------------------------------------------


def _in_output(call: Call, files: Files, pattern: re.Pattern[bytes]) -> str | None:
    seen, rest = 0, b""
    for rows in files.forward(_start_of_run(call, files), files.end):
        call.check()
        text = rest + log_files.output_of(rows)
        *lines, rest = text.split(b"\n")
        for line in lines:
            if (token := _in(line, pattern)) is not None:
                return token
        seen += len(text)
        if seen > _OUTPUT_MAX:
            return None
    return _in(rest, pattern)


def _start_of_run(call: Call, files: Files) -> Position:
    """Where the newest run begins; the beginning of what is kept when that is in a longer run."""
    for position, rows in files.backward():
        call.check()
        at = position.offset
        for row in reversed(rows):
            if row[log_frames.STREAM] == log_frames.MARKER and row[log_frames.HEAD :].startswith(_STARTED):
                return Position(position.number, at)
            at -= len(row) + 1
    return files.first


# --- in a file inside -------------------------------------------------------------------


def _in_file(podman: Podman, call: Call, args: dict[str, Any], pattern: re.Pattern[bytes]) -> str | None:
    """In a regular file that this user may read; what else lies there, or nothing, has no token."""
    try:
        running = find_by_crun(podman, call, args["id"])
        if running is None:
            return None
        lines = _read_inside(running, args["file"].lstrip("/").encode()).split(b"\n")
    except (OSError, Failure):
        return None
    if pattern is _WHOLE:
        lines = [line for line in lines if line.strip()][:1]
    return next((token for line in lines if (token := _in(line, pattern)) is not None), None)


def _read_inside(running: crun.Running, path: bytes) -> bytes:
    """The beginning of a file, opened as the container's own processes see it: no link leads out."""
    with beneath.closing(os.open(f"/proc/{running.pid}/root", beneath.DIRECTORY | os.O_CLOEXEC)) as root:
        if crun.start_time(running.pid) != running.started:  # the pid was reused
            return b""
        with beneath.closing(beneath.open_in_root(root, path, _FLAGS)) as file:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return b""
            return os.read(file, _FILE_MAX)
