"""Cleanup after a build that was stopped: processes, working containers, files.

Podman's build cleans up only when it ends by itself. Each working container is
marked (by the name of an empty secret, which Podman records), each file is in the
build's directory, and each process outside the containers has that directory in
its environment. Names and variables of images get into the same places, so every
run has a new random token in its mark and its directory.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import time

from svc_helper.agent.images import store as image_store
from svc_helper.agent.images.descriptions import texts
from svc_helper.agent.images.store import Store, container_rows, rows_of
from svc_helper.agent.process import start
from svc_helper.agent.runtime import crun, kill_marked
from svc_helper.wire.quick_typing import Any, NamedTuple

MARK = "svc-build-"
_TEMPORARY = "temporary-"
_PROGRAMS = "/programs"
_RECORD = "buildah-"
_STATE_MAX = 4 * 1024 * 1024
_KILL_S = 10
_PAUSE_S = 0.02
_COMMAND_S = 120
_RECORD_DELAY_S = 3  # from a row in the store to what is written right after it
_ID = re.compile(r"[0-9a-f]{64}")
_WORKING = re.compile(r"(?:^|-)working-container(?:-[0-9]+)?$")


class BuildPaths(NamedTuple):
    """A build's own directory, the user's store of images, the user's runtime directory."""

    directory: str
    store: str  # of images: <root>/<driver>, to which Podman appends "-containers"
    runtime: str
    token: str = ""  # of one run

    def new_run(self) -> BuildPaths:
        """The same with a new random token."""
        return self._replace(token=os.urandom(8).hex())

    def runs(self) -> list[BuildPaths]:
        """The runs that left a directory."""
        names = _names(self.directory, _TEMPORARY)
        return [self._replace(token=name.removeprefix(_TEMPORARY)) for name in names]

    @property
    def mark(self) -> str:
        """The mark of the working containers."""
        return MARK + self.token

    @property
    def temporary(self) -> str:
        """Podman's directory for temporary files."""
        return f"{self.directory}/{_TEMPORARY}{self.token}"

    @property
    def image_id(self) -> str:
        """The file into which Podman writes the built image's id."""
        return f"{self.temporary}/image-id"

    @property
    def built_images(self) -> str:
        """The file of the ids of the images that svc has built for this user."""
        return f"{os.path.dirname(os.path.dirname(self.directory))}/built-images"

    @property
    def programs(self) -> str:
        """The directory of programs that comes first on Podman's PATH."""
        return self.directory + _PROGRAMS


def clean_up(paths: BuildPaths) -> None:
    """Remove everything of a build that has ended, or whose build program has."""
    for run in paths.runs():
        _kill_processes(run)
        _remove_containers(paths, _marked(run))
        unmarked, unfinished = _unmarked(run), _unfinished(run)
        if unmarked or unfinished:
            time.sleep(_RECORD_DELAY_S)
            _remove_containers(paths, unmarked & _unmarked(run))
            _remove_images(unfinished & _unfinished(run))
        for record in _records(run):
            shutil.rmtree(record, ignore_errors=True)
    _remove_directory(paths.directory)


def _names(directory: str, prefix: str) -> list[str]:
    try:
        return [name for name in os.listdir(directory) if name.startswith(prefix)]
    except OSError:
        return []


# --- processes ---------------------------------------------------------------------------


def _kill_processes(paths: BuildPaths) -> None:
    """Kill the build's processes, repeatedly until none is found."""
    end = time.monotonic() + _KILL_S
    while (found := _processes(paths)) and time.monotonic() < end:
        for pid in found:
            kill_marked.kill(pid, lambda pid: pid in _processes(paths))
        time.sleep(_PAUSE_S)


def _processes(paths: BuildPaths) -> set[int]:
    """Podman and its helpers by their environment, and the first process of each container.

    Not the process that holds the namespaces of all the user's containers: the
    first Podman starts it, which may have been the build's.
    """
    mark = f"TMPDIR={paths.temporary}".encode()
    found = {
        int(name) for name in os.listdir("/proc") if name.isdecimal() and kill_marked.carries(int(name), mark)
    }
    firsts = {pid for record in _records(paths) if (pid := _first_process(record))}
    return (found | firsts) - {_pause_pid(paths.runtime), os.getpid()}


def _records(paths: BuildPaths) -> list[str]:
    """The runtime's records of the build's containers.

    Each is named after a temporary directory of Podman's and contains its path:
    the directory may be removed already, the path may not be written yet.
    """
    parent = f"{paths.runtime}/crun"
    inside = f"{paths.temporary}/"
    return [
        f"{parent}/{name}"
        for name in _names(parent, _RECORD)
        if os.path.exists(inside + name.removeprefix(_RECORD))
        or str(_status(f"{parent}/{name}").get("bundle")).startswith(inside)
    ]


def _first_process(record: str) -> int:
    """The first process of a container, which ends all others with it; 0 when it has exited."""
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


def _remove_containers(paths: BuildPaths, ids: set[str]) -> None:
    if ids:
        _run("/usr/bin/env", "podman", "rm", "--force", *sorted(ids))


def remove_nameless(store: Store, image_id: str) -> None:
    """Remove an image that has lost its last name, with its steps; it stays where something needs it."""
    row = next((row for row in image_store.records(store) if row.get("id") == image_id), None)
    if row is not None and not texts(row, "names"):
        _run("/usr/bin/env", "podman", "rmi", image_id)


def _remove_images(ids: set[str]) -> None:
    if ids:
        _run("/usr/bin/env", "podman", "rmi", "--force", *sorted(ids))


def _marked(paths: BuildPaths) -> set[str]:
    """The working containers with the mark."""
    mark = f'"id={paths.mark},'.encode()
    return {row["id"] for row in _rows(paths) if mark in _record(paths, row["id"])}


def _unmarked(paths: BuildPaths) -> set[str]:
    """Containers named as builds name them, created since this build began, without a build's record.

    A killed Podman leaves one between writing its row and, right after it, the
    record with the mark; it would hold its image for ever. Another build of this
    user may be just between the two, so the caller checks twice.
    """
    return {
        row["id"]
        for row in _created_since(paths, _rows(paths))
        if not row.get("metadata")  # which every container of Podman's own has
        and any(_WORKING.search(name) for name in texts(row, "names"))
        and not os.path.exists(_record_path(paths, row["id"]))
    }


def _unfinished(paths: BuildPaths) -> set[str]:
    """Images created since this build began that have no manifest, which is written right after their row.

    Podman lists no images at all while one with a name is there. Another pull or build of this user may be
    just between the two, so the caller checks twice.
    """
    rows = rows_of(f"{paths.store}-images/images.json")
    return {
        row["id"]
        for row in _created_since(paths, _with_id(rows))
        if "manifest" not in texts(row, "big-data-names")
    }


def _rows(paths: BuildPaths) -> list[dict[str, Any]]:
    return _with_id(container_rows(paths.store))


def _with_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if _ID.fullmatch(str(row.get("id")))]


def _created_since(paths: BuildPaths, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that came since this build began; none if Podman was never started."""
    try:
        began = os.stat(paths.programs).st_mtime
    except OSError:
        return []
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(began))
    return [row for row in rows if str(row.get("created")) >= since]


def _record_path(paths: BuildPaths, container_id: str) -> str:
    return f"{paths.store}-containers/{container_id}/userdata/buildah.json"


def _record(paths: BuildPaths, container_id: str) -> bytes:
    try:
        with open(_record_path(paths, container_id), "rb") as file:
            return file.read(_STATE_MAX)
    except OSError:
        return b""


def _remove_directory(directory: str) -> None:
    """Remove a build directory, whatever the modes and owners in it; follows no link."""
    try:
        _make_accessible(directory)
        shutil.rmtree(directory)
    except FileNotFoundError:
        return
    except OSError:  # files of subordinate ids: only root of the user's namespace may remove these
        _run("/usr/bin/env", "podman", "unshare", "rm", "-rf", "--one-file-system", "--", directory)


def _make_accessible(directory: str) -> None:
    """Make every directory accessible to its owner; those of a killed build may not be."""
    os.chmod(directory, 0o700)
    with os.scandir(directory) as entries:
        below = [entry.path for entry in entries if stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode)]
    for path in below:
        _make_accessible(path)


def _run(*argv: str) -> None:
    start(list(argv), os.environ, {0: None, 1: None, 2: None}, setsid=True).finish(_COMMAND_S)
