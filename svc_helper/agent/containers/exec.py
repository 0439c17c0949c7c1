"""One command in a running workspace: started, listened to, and ended with all it started.

By crun, as the agent's own child; by `podman exec` only where crun is not the
container's runtime or its namespaces cannot be entered.
"""

from __future__ import annotations

import binascii
import os
import select
import time
from typing import Any

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import containers
from svc_helper.agent.containers.exec_output import Output
from svc_helper.agent.containers.spec import container_name
from svc_helper.agent.podman.podman import Podman, refusal
from svc_helper.agent.process import Process
from svc_helper.agent.runtime import cgroups, crun
from svc_helper.agent.runtime.crun import Running
from svc_helper.agent.runtime.process_tracker import ProcessTracker
from svc_helper.agent.runtime.runtime_errors import NOT_EXECUTABLE, NOT_FOUND, cannot_run

TIMED_OUT = 124  # as timeout(1) says it
_ENGINE_FAILED = 125
_END_S = 5
_COMPLAINT_MAX = 4096
_Actions = list[tuple[int, int, int] | tuple[int, int, str, int, int]]


class Exec:
    """One command under way; a context that leaves no descriptor and no empty group behind."""

    def __init__(self, call: Call, tracker: ProcessTracker, until: float) -> None:
        self.call = call
        self.tracker = tracker
        self.until = until
        self.output = Output()
        self.timed_out = False

    def __enter__(self) -> Exec:
        return self

    def __exit__(self, *raised: object) -> None:
        self.output.close()
        self.tracker.let_go()

    def run(self, argv: list[str], environment: dict[str, str], *fds: int) -> int:
        """The exit code of argv, started with nothing on its standard input and `fds` as 3, 4 and so on.

        When its time is over, or the call ends, nothing of it is left running.
        """
        # Every descriptor here is above 3, the channel: none is overwritten before it was copied.
        actions: _Actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
        sources = (*self.output.writing, *fds)
        actions += [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(sources, 1)]
        process = Process(os.posix_spawn(argv[0], argv, environment, file_actions=actions, setsid=True))
        self.output.hand_over()
        try:
            self.timed_out = not self._listen(process)
        except Failure:
            self._end(process)
            raise
        if self.timed_out:
            self._end(process)
        self.output.finish()
        return TIMED_OUT if self.timed_out else _exit_code(process)

    def _listen(self, process: Process) -> bool:
        """Take its output until it ends; whether it did before its time was over."""
        while True:
            left = self.until - time.monotonic()
            events = dict.fromkeys([process.pidfd, *self.output.reading], select.POLLIN)
            ready = self.call.wait(events, left)
            for fd in ready - {process.pidfd}:
                self.output.take(fd)
            if process.pidfd in ready:
                return True
            if left <= 0:
                return False

    def _end(self, process: Process) -> None:
        """Kill everything the command started, until none of it is left."""
        if process.ended() is None:
            os.kill(process.pid, 9)  # first who could still start something
            process.wait(_END_S)
            process.ended()
        if not self.tracker.kill():
            self.call.log("processes of an exec may still run", "error", mark=self.tracker.mark)


def _exit_code(process: Process) -> int:
    code = process.ended() or 0
    return code if code >= 0 else 128 - code


def execute(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Run the command and answer its output; at the timeout, or when the caller goes, nothing of it stays."""
    began = time.monotonic()
    mark = f"{call.rid}-{os.urandom(4).hex()}"
    running = _running(podman, call, args["id"])
    process = crun.read_process(podman.home, running) if running else None
    parent = "" if running is None or process is None else running.cgroup or cgroups.own()
    tracker = ProcessTracker(podman.home, mark, parent, by_crun=bool(running and running.cgroup))
    with Exec(call, tracker, began + args["timeout_s"]) as command:
        if running is None or process is None:
            code = _by_podman(podman, command, mark, args)
        else:
            described = crun.exec_process(running, process, args["command"], mark)
            code = _by_crun(podman, command, running, described, args)
    return {
        "exit_code": code,
        "stdout": _base64(command.output.stdout),
        "stderr": _base64(command.output.stderr),
        "truncated": command.output.truncated,
        "timed_out": command.timed_out,
        "duration_ms": round((time.monotonic() - began) * 1000),
    }


def find_running(podman: Podman, call: Call, workspace_id: str) -> Running | None:
    """The container as crun runs it, None where crun does not; without a record Podman is asked.

    Raises Failure `not_found` or `not_running`.
    """
    running = crun.find_running(podman.home, workspace_id)
    if running is None:
        found = containers.inspect(podman, call, {"id": workspace_id})  # remembers where it is
        if not found["exists"]:
            raise Failure("not_found", "the container does not exist")
        if found["status"] != "running":
            raise Failure("not_running", "the workspace is not running")
        running = crun.find_running(podman.home, workspace_id)
    return running


def _running(podman: Podman, call: Call, workspace_id: str) -> Running | None:
    running = find_running(podman, call, workspace_id)
    podman.scope.settle()
    if running and running.cgroup and not cgroups.may_enter(running.cgroup):
        return None
    return running


def _by_crun(podman: Podman, command: Exec, running: Running, process: bytes, args: dict[str, Any]) -> int:
    described, complaints = os.memfd_create("svc-process"), os.memfd_create("svc-crun-log")
    try:
        os.write(described, process)
        argv = command.tracker.starting(crun.exec_argv(podman.home, running, command.tracker.group))
        code = command.run(argv, podman.home.environment, described, complaints)
        complaint = os.pread(complaints, _COMPLAINT_MAX, 0).decode(errors="replace")
    finally:
        os.close(described)
        os.close(complaints)
    if not complaint or command.timed_out:
        return code
    if crun.start_time(running.pid) is None:
        raise Failure("not_running", "the workspace has stopped")
    return _refused(command, args["command"][0], complaint)


def _by_podman(podman: Podman, command: Exec, mark: str, args: dict[str, Any]) -> int:
    argv = ["/usr/bin/env", "podman", "exec", f"--env=SVC_EXEC_ID={mark}", container_name(args["id"])]
    code = command.run([*argv, *args["command"]], podman.home.environment)
    if command.timed_out or code not in (_ENGINE_FAILED, NOT_EXECUTABLE, NOT_FOUND):
        return code
    complaint = bytes(command.output.stderr[:_COMPLAINT_MAX]).decode(errors="replace")
    return _refused(command, args["command"][0], complaint) if complaint.startswith("Error: ") else code


def _refused(command: Exec, program: str, untrusted_complaint: str) -> int:
    """The exit code of a command that cannot be run, as a shell and Podman have it; else Failure."""
    reason = cannot_run(program, untrusted_complaint)
    if reason is None:
        raise refusal(command.call, untrusted_complaint)
    command.call.log("command not run", words=untrusted_complaint)
    command.output.replace_stderr(reason[1])
    return reason[0]


def _base64(content: bytearray) -> str:
    return binascii.b2a_base64(content, newline=False).decode()
