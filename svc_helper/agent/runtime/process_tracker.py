"""Tracks all processes of one exec, so that all of them can be killed.

By a cgroup of their own where possible: every descendant is in it, however
often it forks, and cgroup.kill kills them all at once. Elsewhere by a mark in
their environment, searched for as root of the user's namespaces, so that
processes of subordinate ids are found too.
"""

from __future__ import annotations

from svc_helper import interpreter
from svc_helper.agent.calls import log
from svc_helper.agent.home import Home
from svc_helper.agent.process import Process, start
from svc_helper.agent.runtime import cgroups, crun

PREFIX = "svc-exec-"
_KILL_S = 10
_ENTER = 'echo 0 >"$0" || { echo "the group cannot be entered" >&4; exit 1; }; exec "$@"'


class ProcessTracker:
    """The processes of one exec or launcher."""

    def __init__(self, home: Home, mark: str, parent: str, *, by_crun: bool) -> None:
        """Track them in a group below `parent`, if any; crun enters it (by_crun), or the command itself."""
        self.home = home
        self.mark = mark
        directory = f"{parent}/{PREFIX}{mark}"
        self.directory = directory if parent and cgroups.create(directory) else ""
        self.group = PREFIX + mark if by_crun and self.directory else ""

    def start_argv(self, argv: list[str]) -> list[str]:
        """The command line that starts argv in the group."""
        if self.group or not self.directory:
            return argv
        return ["/bin/sh", "-c", _ENTER, f"{self.directory}/cgroup.procs", *argv]

    def kill(self) -> bool:
        """Kill every process; whether none is left."""
        if self.directory:
            try:
                return cgroups.kill(self.directory)
            except OSError as error:  # a kernel before 5.14
                log("cgroup.kill failed", "warning", why=str(error))
        process = self.start_kill()
        return process is not None and process.finish(2 * _KILL_S) == 0

    def start_kill(self, grace_s: float | None = None) -> Process | None:
        """Start killing all marked processes, as root of the pause process's namespaces.

        With a grace period, TERM comes first. The started program ends with 0 when
        none is left; None where it cannot be started.
        """
        pause_pid = crun.pause_pid(self.home)
        if pause_pid is None:
            return None
        argv = crun.enter_argv(pause_pid)
        argv += interpreter.command(
            "svc_helper.agent.runtime.kill_marked", f"SVC_EXEC_ID={self.mark}", str(_KILL_S)
        )
        if grace_s is not None:
            argv += [str(grace_s)]
        return start(argv, self.home.environment)

    def close(self) -> None:
        """Remove the group, unless the command left processes running in it on purpose."""
        if self.directory:
            cgroups.remove(self.directory)
