"""Starts a launcher's command in the container, by crun, as the shim's own child."""

from __future__ import annotations

import os
from typing import NamedTuple

from svc_helper.agent.calls import Failure
from svc_helper.agent.process import Process
from svc_helper.agent.runtime import cgroups, crun
from svc_helper.agent.runtime.process_tracker import ProcessTracker
from svc_helper.shim.workspace import Workspace

_COMPLAINT_MAX = 4096


class Started(NamedTuple):
    """crun under way, and what it is listened to by; the descriptors are whoever's who has this."""

    process: Process
    output: int  # both streams, in one pipe; does not block
    told_pid: int  # a pipe that gets the command's pid on the host
    complaints: int
    mark: str
    group: str

    def complaint(self) -> str:
        """What crun had to say."""
        return os.pread(self.complaints, _COMPLAINT_MAX, 0).decode(errors="replace")


def start(workspace: Workspace, name: str, command: list[str], env: dict[str, str]) -> Started:
    """Start the command as the container's own is, with env besides; raises Failure and OSError."""
    running = _running(workspace)
    process = crun.read_process(workspace.home, running)
    if process is None:
        raise Failure("failed", "the container's configuration cannot be read")
    own = [entry for entry in process["env"] if str(entry).partition("=")[0] not in env]
    process |= {"env": own + [f"{key}={value}" for key, value in env.items()]}
    mark = f"{workspace.id}-{name}-{os.urandom(4).hex()}"
    tracker = ProcessTracker(
        workspace.home, mark, running.cgroup or cgroups.own(), by_crun=bool(running.cgroup)
    )
    argv = crun.exec_argv(workspace.home, running, tracker.group)
    argv[-1:-1] = ["--pid-file=/proc/self/fd/5"]
    described = crun.exec_process(running, process, command, mark)
    try:
        return _spawn(workspace, tracker, tracker.starting(argv), described)
    except OSError:
        tracker.let_go()
        raise


def _running(workspace: Workspace) -> crun.Running:
    pause_pid = crun.pause_pid(workspace.home)
    if pause_pid is None:
        raise Failure("unavailable", "Podman's namespaces are gone; restart the workspace")
    running = workspace.running._replace(pause_pid=pause_pid)
    if running.cgroup and not cgroups.may_enter(running.cgroup):
        raise Failure("unavailable", "the container's control group cannot be entered")
    return running


def _spawn(workspace: Workspace, tracker: ProcessTracker, argv: list[str], described: bytes) -> Started:
    # Its descriptors are below main.RESERVED, ours above: none is overwritten before it was copied.
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
        numbers = {0: os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), 1: theirs[0], 2: theirs[0]}
        theirs.append(numbers[0])
        numbers |= {3: theirs[2], 4: ours[2], 5: theirs[1]}
        actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in numbers.items()]
        environment = workspace.home.environment
        pid = os.posix_spawn(argv[0], argv, environment, file_actions=actions, setsid=True)
        return Started(Process(pid), ours[0], ours[1], ours[2], tracker.mark, tracker.directory)
    except OSError:
        for fd in ours:
            os.close(fd)
        raise
    finally:
        for fd in theirs:
            os.close(fd)
