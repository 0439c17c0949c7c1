"""What holds every process of one exec together, so that all of them can be ended.

A cgroup of their own where one can be had: the kernel puts every descendant in
it, however often it forks, and cgroup.kill ends them all at once. Elsewhere the
mark in their environment, looked for as root of the user's namespaces, so that
processes of subordinate ids are within reach.
"""

from __future__ import annotations

import os
import sys
import time

from svc_helper.agent import crun
from svc_helper.agent.calls import log
from svc_helper.agent.home import CGROUPS, Home

PREFIX = "svc-exec-"
_TRIES = 100
_PAUSE_S = 0.02
_SWEEP_S = 10
_ENTER = 'echo 0 >"$0" || { echo "the group cannot be entered" >&4; exit 1; }; exec "$@"'
_SITE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Leash:
    """The processes of one exec."""

    def __init__(self, home: Home, mark: str, pause_pid: int | None, cgroup: str, *, own: bool) -> None:
        """Hold them in a group below the container's `cgroup`, or if it has none below the agent's."""
        self.home = home
        self.mark = mark
        self.pause_pid = pause_pid
        self.directory = _make_group(cgroup or _own_cgroup(), mark) if cgroup or own else ""
        # crun moves the command to the container's group, else it stays where the agent starts it
        self.group = PREFIX + mark if cgroup and self.directory else ""

    def starting(self, argv: list[str]) -> list[str]:
        """The command line that starts argv within the group."""
        if self.group or not self.directory:
            return argv
        return ["/bin/sh", "-c", _ENTER, f"{self.directory}/cgroup.procs", *argv]

    def kill(self) -> bool:
        """End every process of the exec; whether none is left."""
        if self.directory and os.path.isdir(self.directory):
            return self._kill_group()
        return self._kill_marked()

    def _kill_group(self) -> bool:
        for _ in range(_TRIES):
            try:
                _write(f"{self.directory}/cgroup.kill", "1")
                if not _populated(self.directory):
                    return True
            except FileNotFoundError:
                return True
            except OSError as error:  # not delegated after all, or a kernel before 5.14
                log("cgroup.kill failed", "warning", why=str(error))
                return self._kill_marked()
            time.sleep(_PAUSE_S)
        return False

    def _kill_marked(self) -> bool:
        """Look for the mark as root of the pause process's namespaces, until a look finds none."""
        if self.pause_pid is None:
            return False
        code = f"import sys; sys.path.insert(0, {_SITE!r}); from svc_helper.agent.sweep import main; main()"
        argv = crun.enter_argv(self.pause_pid)
        argv += [sys.executable, "-I", "-S", "-c", code, f"SVC_EXEC_ID={self.mark}", str(_SWEEP_S)]
        pid = os.posix_spawn(argv[0], argv, self.home.environment)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    def let_go(self) -> None:
        """Remove the group, if the command left nothing running in it on purpose."""
        if not self.directory:
            return
        for _ in range(3):
            try:
                os.rmdir(self.directory)
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.001)  # the last process is still being taken apart
            else:
                return


def _own_cgroup() -> str:
    """The directory of the agent's own cgroup."""
    try:
        with open("/proc/self/cgroup", encoding="ascii") as file:
            path = next((line[3:].strip() for line in file if line.startswith("0::")), "")
    except (OSError, ValueError):
        return ""
    return f"{CGROUPS}{path.rstrip('/')}" if path else ""


def _make_group(parent: str, mark: str) -> str:
    """The directory of a fresh group, where that is the user's to make; else an empty string."""
    directory = f"{parent}/{PREFIX}{mark}"
    try:
        os.mkdir(directory)
    except OSError:
        return ""
    # Moving a process needs the right to write to the nearest group that holds both places.
    if os.access(f"{directory}/cgroup.kill", os.W_OK) and os.access(f"{parent}/cgroup.procs", os.W_OK):
        return directory
    os.rmdir(directory)
    return ""


def sweep_groups() -> None:
    """Remove the groups of earlier execs whose last process has ended since."""
    parent = _own_cgroup()
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for name in names:
        if name.startswith(PREFIX):
            try:
                os.rmdir(f"{parent}/{name}")
            except OSError:
                pass  # still in use


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _populated(directory: str) -> bool:
    with open(f"{directory}/cgroup.events", encoding="ascii") as file:
        return "populated 1" in file.read()
