"""What a build leaves behind when it is ended: processes, working containers, files.

Podman's build cleans up after itself only when it comes to its own end. Each
working container carries the build's mark (the name of a secret that holds
nothing, which Podman notes with it), each file is in the build's own directory,
and each process outside the containers has that directory in its environment.
Names and variables of images get to the same places. So every run has a new
token in its mark and its directory: no image made before it can name these.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import time
from typing import Any, NamedTuple

from svc_helper.agent.process import Process
from svc_helper.agent.runtime import crun, kill_marked

MARK = "svc-build-"
_TEMPORARY = "temporary-"
_PROGRAMS = "/programs"
_RECORD = "buildah-"
_STATE_MAX = 4 * 1024 * 1024
_LIST_MAX = 64 * 1024 * 1024
_KILL_S = 10
_PAUSE_S = 0.02
_COMMAND_S = 120
_SECOND_LOOK_S = 3
_ID = re.compile(r"[0-9a-f]{64}")
_WORKING = re.compile(r"(?:^|-)working-container(?:-[0-9]+)?$")


class Place(NamedTuple):
    """Where a build works: its own directory, the user's store of images, the user's runtime directory."""

    directory: str
    store: str  # of images: <root>/<driver>, to which Podman appends "-containers"
    runtime: str
    token: str = ""  # of one run

    def begun(self) -> Place:
        """The same for a new run, whose token nobody could know."""
        return self._replace(token=os.urandom(8).hex())

    def runs(self) -> list[Place]:
        """The runs that have left anything."""
        try:
            names = os.listdir(self.directory)
        except OSError:
            return []
        return [
            self._replace(token=name.removeprefix(_TEMPORARY))
            for name in names
            if name.startswith(_TEMPORARY)
        ]

    @property
    def mark(self) -> str:
        """What the working containers carry."""
        return MARK + self.token

    @property
    def temporary(self) -> str:
        """Podman's place for temporary files."""
        return f"{self.directory}/{_TEMPORARY}{self.token}"

    @property
    def programs(self) -> str:
        """What Podman finds before the host's own programs."""
        return self.directory + _PROGRAMS


def clear(place: Place) -> None:
    """Remove everything of a build that has ended, or whose builder has."""
    for run in place.runs():
        _kill_processes(run)
        _remove_containers(run)
        _remove_unmarked(run)
        for record in _records(run):
            shutil.rmtree(record, ignore_errors=True)
    _remove_directory(place.directory)


# --- processes ---------------------------------------------------------------------------


def _kill_processes(place: Place) -> None:
    """Kill whatever belongs to the build, until a look finds nothing."""
    end = time.monotonic() + _KILL_S
    while (found := _processes(place)) and time.monotonic() < end:
        for pid in found:
            kill_marked.kill(pid, lambda pid: pid in _processes(place))
        time.sleep(_PAUSE_S)


def _processes(place: Place) -> set[int]:
    """Podman and its helpers by their environment, and the first process of each container.

    Not the process that holds the namespaces of all the user's containers: the
    first Podman starts it, which may have been the build's.
    """
    mark = f"TMPDIR={place.temporary}".encode()
    found = {
        int(name) for name in os.listdir("/proc") if name.isdecimal() and kill_marked.carries(int(name), mark)
    }
    firsts = {pid for record in _records(place) if (pid := _first_process(record))}
    return (found | firsts) - {_pause_pid(place.runtime), os.getpid()}


def _records(place: Place) -> list[str]:
    """The runtime's records of the build's containers.

    Each is named after a temporary directory of Podman's and tells its path: the
    directory may have gone already, what it tells may not be written yet.
    """
    parent = f"{place.runtime}/crun"
    inside = f"{place.temporary}/"
    return [
        f"{parent}/{name}"
        for name in _names(parent)
        if os.path.exists(inside + name.removeprefix(_RECORD))
        or str(_status(f"{parent}/{name}").get("bundle")).startswith(inside)
    ]


def _names(parent: str) -> list[str]:
    try:
        return [name for name in os.listdir(parent) if name.startswith(_RECORD)]
    except OSError:
        return []


def _first_process(record: str) -> int:
    """The first process of a container, whose end is the end of all in it; 0 when it has ended."""
    status = _status(record)
    pid, started = status.get("pid"), status.get("process-start-time")
    return pid if type(pid) is int and pid > 1 and crun.start_time(pid) == started else 0


def _status(record: str) -> dict[str, Any]:
    try:
        with open(f"{record}/status", "rb") as file:
            status = json.loads(file.read(_STATE_MAX))
    except (OSError, ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) else {}


def _pause_pid(runtime: str) -> int:
    try:
        with open(f"{runtime}/libpod/tmp/pause.pid", encoding="ascii") as file:
            return int(file.read(32))
    except (OSError, ValueError):
        return 0


# --- containers and files ----------------------------------------------------------------


def _remove_containers(place: Place) -> None:
    """Have Podman remove the working containers that carry the mark."""
    ids = [container_id for container_id in _containers(place) if _carries(place, container_id)]
    if ids:
        _run("/usr/bin/env", "podman", "rm", "--force", *ids)


def _remove_unmarked(place: Place) -> None:
    """Have Podman remove the working containers that a build was killed over before they had their mark.

    They would hold their image for good. The row in the store comes first and the
    record with the mark at once after it, so one that still has none at a second
    look will never have. Another build of this user may be just between the two.
    """
    ids = set(_unmarked(place))
    if ids:
        time.sleep(_SECOND_LOOK_S)
        ids &= set(_unmarked(place))
    if ids:
        _run("/usr/bin/env", "podman", "rm", "--force", *sorted(ids))


def _unmarked(place: Place) -> list[str]:
    """Containers named and kept as builds do it, begun since this one, and without a builder's record."""
    try:
        began = os.stat(place.programs).st_mtime
    except OSError:
        return []  # it never came to run Podman
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(began))
    return [
        row["id"]
        for row in _rows(place)
        if not row.get("metadata")  # which every container of Podman's own has
        and str(row.get("created")) >= since
        and any(_WORKING.search(str(name)) for name in row.get("names") or [])
        and not os.path.exists(_record(place, row["id"]))
    ]


def _containers(place: Place) -> list[str]:
    return [row["id"] for row in _rows(place)]


def _rows(place: Place) -> list[dict[str, Any]]:
    try:
        with open(f"{place.store}-containers/containers.json", "rb") as file:
            untrusted = json.loads(file.read(_LIST_MAX))
    except (OSError, ValueError, RecursionError):
        return []
    rows = [row for row in untrusted if isinstance(row, dict)] if isinstance(untrusted, list) else []
    return [row for row in rows if _ID.fullmatch(str(row.get("id")))]


def _record(place: Place, container_id: str) -> str:
    return f"{place.store}-containers/{container_id}/userdata/buildah.json"


def _carries(place: Place, container_id: str) -> bool:
    try:
        with open(_record(place, container_id), "rb") as file:
            return f'"id={place.mark},'.encode() in file.read(_STATE_MAX)
    except OSError:
        return False


def _remove_directory(directory: str) -> None:
    """Remove a directory of ours and all in it, whatever its modes and owners; follows no link."""
    try:
        _open_up(directory)
        shutil.rmtree(directory)
    except FileNotFoundError:
        return
    except OSError:  # files of subordinate users: only root of the user's namespace may remove these
        _run("/usr/bin/env", "podman", "unshare", "rm", "-rf", "--one-file-system", "--", directory)


def _open_up(directory: str) -> None:
    """Make every directory readable and writable for its owner, which a killed build's are not."""
    os.chmod(directory, 0o700)
    with os.scandir(directory) as entries:
        below = [entry.path for entry in entries if stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode)]
    for path in below:
        _open_up(path)


def _run(*argv: str) -> None:
    null = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0) for number in (0, 1, 2)]
    process = Process(os.posix_spawn(argv[0], list(argv), os.environ, file_actions=null, setsid=True))
    if not process.wait(_COMMAND_S):
        os.kill(process.pid, signal.SIGKILL)
    os.waitpid(process.pid, 0)
