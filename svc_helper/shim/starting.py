"""Starts a launcher's command in the container, by crun, as a child of the shim."""

from __future__ import annotations

import os
from collections.abc import Mapping

from svc_helper.agent.calls import Failure
from svc_helper.agent.process import Process
from svc_helper.agent.process import start as start_process
from svc_helper.agent.runtime import cgroups, crun, sealed_crun
from svc_helper.agent.runtime.process_tracker import ProcessTracker
from svc_helper.shim.workspace import Workspace
from svc_helper.wire.quick_typing import NamedTuple

_ERROR_MAX = 4096


class Started(NamedTuple):
    """A running crun; the owner of this closes its descriptors."""

    process: Process
    output: int  # a non-blocking pipe with both output streams
    pid_pipe: int  # a pipe that gets the command's pid on the host
    errors: int  # a file with crun's errors
    mark: str
    group: str

    def read_errors(self) -> str:
        """crun's error messages."""
        return os.pread(self.errors, _ERROR_MAX, 0).decode(errors="replace")


def start(workspace: Workspace, name: str, command: list[str], env: dict[str, str]) -> Started:
    """Start the command like the container's own, with additional variables; raises Failure and OSError."""
    running = find_running(workspace)
    process = crun.read_process(workspace.home, running)
    if process is None:
        raise Failure("failed", "the container's configuration cannot be read")
    own = [entry for entry in process["env"] if str(entry).partition("=")[0] not in env]
    process |= {"env": own + [f"{key}={value}" for key, value in env.items()]}
    program = sealed_crun.program()
    mark = f"{workspace.id}-{name}-{os.urandom(4).hex()}"
    tracker = ProcessTracker(
        workspace.home, mark, running.cgroup or cgroups.own(), by_crun=bool(running.cgroup)
    )
    argv = crun.exec_argv(workspace.home, running, tracker.group, program)
    argv[-1:-1] = ["--pid-file=/proc/self/fd/5"]
    described = crun.exec_process(running, process, command, mark)
    try:
        return _spawn(workspace, tracker, tracker.start_argv(argv), described, program.fds)
    except OSError:
        tracker.close()
        raise


def find_running(workspace: Workspace) -> crun.Running:
    """The container, to be entered now; raises Failure."""
    pause_pid = crun.pause_pid(workspace.home)
    if pause_pid is None:
        raise Failure("unavailable", "Podman's namespaces no longer exist; restart the workspace")
    running = workspace.running._replace(pause_pid=pause_pid)
    if not crun.may_enter(workspace.home, running):
        raise Failure("unavailable", "the container's control group cannot be entered")
    return running


def _spawn(
    workspace: Workspace,
    tracker: ProcessTracker,
    argv: list[str],
    described: bytes,
    program_fds: Mapping[int, int],
) -> Started:
    ours: list[int] = []
    theirs: list[int] = []
    try:
        for _ in range(2):
            read, write = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(read, False)
            ours.append(read)
            theirs.append(write)
        ours.append(os.memfd_create("svc-crun-log"))
        theirs.append(os.memfd_create("svc-process"))
        os.write(theirs[2], described)
        # All of ours are at least __main__.RESERVED.
        fds = {0: None, 1: theirs[0], 2: theirs[0], 3: theirs[2], 4: ours[2], 5: theirs[1], **program_fds}
        process = start_process(argv, crun.environment(workspace.home), fds, setsid=True)
        return Started(process, ours[0], ours[1], ours[2], tracker.mark, tracker.directory)
    except OSError:
        for fd in ours:
            os.close(fd)
        raise
    finally:
        for fd in theirs:
            os.close(fd)
