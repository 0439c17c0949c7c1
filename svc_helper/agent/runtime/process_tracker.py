"""What holds every process of one exec together, so that all of them can be ended.

A cgroup of their own where one can be had: the kernel puts every descendant in
it, however often it forks, and cgroup.kill ends them all at once. Elsewhere the
mark in their environment, looked for as root of the user's namespaces, so that
processes of subordinate ids are within reach.
"""

from __future__ import annotations

import os

from svc_helper import interpreter
from svc_helper.agent.calls import log
from svc_helper.agent.home import Home
from svc_helper.agent.runtime import cgroups, crun

PREFIX = "svc-exec-"
_SWEEP_S = 10
_ENTER = 'echo 0 >"$0" || { echo "the group cannot be entered" >&4; exit 1; }; exec "$@"'


class ProcessTracker:
    """The processes of one exec."""

    def __init__(self, home: Home, mark: str, parent: str, *, by_crun: bool) -> None:
        """Hold them in a group below `parent`, if any, where crun puts the command (by_crun) or the agent."""
        self.home = home
        self.mark = mark
        directory = f"{parent}/{PREFIX}{mark}"
        self.directory = directory if parent and cgroups.make(directory) else ""
        self.group = PREFIX + mark if by_crun and self.directory else ""

    def starting(self, argv: list[str]) -> list[str]:
        """The command line that starts argv within the group."""
        if self.group or not self.directory:
            return argv
        return ["/bin/sh", "-c", _ENTER, f"{self.directory}/cgroup.procs", *argv]

    def kill(self) -> bool:
        """End every process of the exec; whether none is left."""
        if self.directory:
            try:
                return cgroups.kill(self.directory)
            except OSError as error:  # a kernel before 5.14
                log("cgroup.kill failed", "warning", why=str(error))
        return self._kill_marked()

    def _kill_marked(self) -> bool:
        pid = self.start_sweep()
        return pid is not None and os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    def start_sweep(self, grace_s: float | None = None) -> int | None:
        """Start looking for the mark as root of the pause process's namespaces, until a look finds none.

        With a grace they are asked to end before they are killed. The program's
        pid, to be waited for (0: none is left); None where it cannot be started.
        """
        pause_pid = crun.pause_pid(self.home)
        if pause_pid is None:
            return None
        argv = crun.enter_argv(pause_pid)
        argv += interpreter.command(
            "svc_helper.agent.runtime.kill_marked", f"SVC_EXEC_ID={self.mark}", str(_SWEEP_S)
        )
        if grace_s is not None:
            argv += [str(grace_s)]
        return os.posix_spawn(argv[0], argv, self.home.environment)

    def let_go(self) -> None:
        """Remove the group, unless the command left something running in it on purpose."""
        if self.directory:
            cgroups.remove(self.directory)
