"""One launcher: its runs, one after another, their output and its state.

The state is written to disk before any reply contains it, unless the disk is full.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial

from svc_helper.agent.calls import Failure, now
from svc_helper.agent.runtime import cgroups, launcher_states
from svc_helper.agent.runtime.launcher_states import EXITED, STARTED, STOPPED, State
from svc_helper.agent.runtime.rotating_log import RotatingLog
from svc_helper.agent.runtime.runtime_errors import cannot_run, refused_by_kernel
from svc_helper.shim.control import Request, Together
from svc_helper.shim.ending import Ending, is_group
from svc_helper.shim.loop import IN
from svc_helper.shim.starting import Started, start
from svc_helper.shim.workspace import Workspace

_PART = 64 * 1024
_RATE_BYTES, _RATE_S = 1024 * 1024, 0.05  # 20 MB/s: endless output must not use a whole processor
_PID_S = 10  # for crun to report the pid
_SAVE_S = 5  # until the next attempt
_NOT_STARTED = 125
_RECENT_S = 3  # before the container's end, which is then taken for the reason
_BY_SIGNAL = 128
Start = tuple[Request, list[str], dict[str, str]]  # request, command, env


class Launcher:
    """One launcher and its latest run."""

    def __init__(self, workspace: Workspace, state: State) -> None:
        self._workspace, self._loop = workspace, workspace.loop
        self.state = state if is_group(state.group, state.mark) else state._replace(group="")
        self._log = RotatingLog(workspace.launchers, state.name)
        self._run: Started | None = None  # until crun has ended
        self._program = ""
        self._output = -1  # may outlive the command, held by its descendants
        self._held, self._is_first_output = b"", True  # the first output, while it may be crun's
        self._taken, self._since = 0, 0.0
        self._ending: Ending | None = None
        self._starters: list[Request] = []
        self._stoppers: list[Request | Together] = []
        self._later: list[Start] = []  # starts to do after the ending
        self._exited_at = 0.0
        self._unsaved = False

    @property
    def busy(self) -> bool:
        """Whether the shim is needed for it."""
        return self._run is not None or self._ending is not None or self._output >= 0

    # --- starting ----------------------------------------------------------------

    def start(self, request: Request, command: list[str], env: dict[str, str]) -> None:
        """Start it, unless it runs; a current ending, and what is left of its last run, are ended first."""
        if self._ending is not None:
            self._later.append((request, command, env))
        elif self._run is not None:
            self._reply_started(request)
        elif self._may_have_processes():
            self._end(0, (request, command, env))
        else:
            self._begin(request, command, env)

    def _reply_started(self, request: Request) -> None:
        if self.state.pid is None:
            self._starters.append(request)  # its pid is not known yet
        else:
            request.answer(self.state.row())

    @staticmethod
    def _try(method: Callable[[Request, list[str], dict[str, str]], None], later: Start) -> None:
        try:
            method(*later)
        except Failure as failure:
            later[0].fail(failure)
        except OSError:
            later[0].fail(Failure("failed", "the launcher could not be started"))

    def _begin(self, request: Request, command: list[str], env: dict[str, str]) -> None:
        os.makedirs(self._workspace.launchers, 0o700, exist_ok=True)
        run = start(self._workspace, self.state.name, command, env)
        self._close_output()
        self._run, self._program, self._output = run, command[0], run.output
        self._held, self._is_first_output = b"", True
        at = now()
        self._log.mark(f"started {at}")
        self.state = State(
            self.state.name, STARTED, started_at=at, run=self._workspace.run, mark=run.mark, group=run.group
        )
        self._save()
        self._starters.append(request)
        # Output before the command has begun is crun's own error, and stays in the pipe.
        self._loop.watch(run.pid_pipe, IN, self._learn_pid)
        self._loop.watch(run.process.pidfd, IN, lambda events: self._exited(run))
        self._loop.later(_PID_S, lambda: self._begun(run))

    def _learn_pid(self, events: int) -> None:
        if self._run is None:
            return
        pid = os.read(self._run.pid_pipe, 32).strip()
        self._loop.unwatch(self._run.pid_pipe)
        if pid.isdigit():
            self.state = self.state._replace(pid=int(pid))
            self._save()
            self._begun(self._run)

    def _begun(self, run: Started) -> None:
        """Reply to each starter at the end of its watch; _exited() replies to all at once."""
        if self._run is run:
            self._listen()
            for request in self._starters:
                self._loop.later(request.args["watch_ms"] / 1000, partial(self._reply, request))

    def _reply(self, request: Request) -> None:
        if request in self._starters:
            self._starters.remove(request)
            request.answer(self.state.row())

    def _reply_all(self, requests: list[Request] | list[Request | Together]) -> None:
        while requests:
            requests.pop(0).answer(self.state.row())

    # --- output ------------------------------------------------------------------

    def _take(self, events: int) -> None:
        """Read some output; pause after too much of it."""
        self._read()
        now_s = time.monotonic()
        if now_s - self._since > _RATE_S:
            self._taken, self._since = 0, now_s
        if self._taken > _RATE_BYTES and self._output >= 0:
            self._loop.unwatch(self._output)
            self._loop.later(_RATE_S, self._listen)

    def _listen(self) -> None:
        if self._output >= 0:
            self._loop.watch(self._output, IN, self._take)

    def _read(self) -> bool:
        """Read some output; whether there was any."""
        try:
            part = os.read(self._output, _PART)
        except BlockingIOError:
            return False
        if not part:
            self._close_output()
            return False
        if self._is_first_output and refused_by_kernel(part.decode(errors="replace")):
            self._held, self._is_first_output = part, False
            return True
        part, self._held, self._is_first_output = self._held + part, b"", False
        self._taken += max(len(part), self._log.write(part))  # short lines take more room as rows
        return True

    def _drain(self) -> None:
        """Read what an ended command left; other processes may still hold the pipe."""
        before = self._taken
        while self._output >= 0 and self._taken - before < _RATE_BYTES and self._read():
            pass

    def _close_output(self) -> None:
        if self._output >= 0:
            self._loop.unwatch(self._output)
            os.close(self._output)
            self._output = -1
            self._log.close()

    # --- ending -----------------------------------------------------------------

    def _exited(self, run: Started) -> None:
        """Handle the end of crun, and with it of the command."""
        code = run.process.ended() or 0
        code = code if code >= 0 else _BY_SIGNAL - code
        errors = run.read_errors()
        if errors and self.state.pid is None:
            self._close_output()
            code = self._not_run(errors)
        self._drain()
        code = self._judge_held(code, errors)
        for fd in (run.process.pidfd, run.pid_pipe):
            self._loop.unwatch(fd)
        os.close(run.pid_pipe)
        os.close(run.errors)
        self._run = None
        self._exited_at = time.monotonic()
        reached = EXITED if self._ending is None else STOPPED
        self.state = self.state._replace(state=reached, exit_code=code, pid=None, finished_at=now())
        if self._ending is None and not self._may_have_processes():
            self._forget_processes()
        self._save()
        self._reply_all(self._starters)

    def _judge_held(self, code: int, untrusted_errors: str) -> int:
        """The exit code, when the first output is crun's, which says that the kernel refused the program."""
        held, self._held = self._held, b""
        if held and code == 1:
            return self._not_run(untrusted_errors or held.decode(errors="replace"))
        self._log.write(held)
        return code

    def _not_run(self, untrusted_errors: str) -> int:
        self._workspace.log("a launcher was not run", launcher=self.state.name, why=untrusted_errors)
        reason = cannot_run(self._program, untrusted_errors, self._workspace.home, self._workspace.running)
        if reason is None:
            self._log.mark("it could not be started")
            return _NOT_STARTED
        self._log.write(reason[1].encode())
        return reason[0]

    def stop(self, request: Request | Together, grace_s: float) -> None:
        """End all its processes; also succeeds when it has none."""
        if self._ending is not None:
            self._stoppers.append(request)
        elif self._run is not None or self._may_have_processes():
            self._stoppers.append(request)
            self._end(grace_s, None)
        else:
            request.answer(self.state.row())

    def _may_have_processes(self) -> bool:
        """Whether processes of its last run may still exist, in this run of the container."""
        state = self.state
        if self._run is not None or not state.mark or state.run != self._workspace.run:
            return False
        return cgroups.is_populated(state.group) if state.group else True

    def _end(self, grace_s: float, restart: Start | None) -> None:
        """End all processes of the last run, reply to the stop requests, then restart it if requested."""
        ran = self._run is not None
        starter = self._run.process if self._run else None

        def done(clean: bool) -> None:
            self._ending = None
            if not clean:
                self._workspace.log(
                    "processes of a launcher may still run", "error", launcher=self.state.name
                )
                for request in (*self._stoppers, *(restart[:1] if restart else ())):
                    request.fail(Failure("failed", "not all processes of the launcher have ended"))
                self._stoppers = []
                self._start_later()
                return
            if self._run is not None:
                self._exited(self._run)
            if ran:
                self.state = self.state._replace(state=STOPPED)
            self._drain()
            self._forget_processes()
            self._save()
            self._reply_all(self._stoppers)
            if restart:
                self._try(self._begin, restart)
            self._start_later()

        self._ending = Ending(self._workspace, self.state.mark, self.state.group, starter, done)
        self._ending.begin(grace_s)

    def _start_later(self) -> None:
        """Do the starts requested during the ending; if one begins another ending, the rest wait for that."""
        later, self._later = self._later, []
        for request in later:
            self._try(self.start, request)

    def _forget_processes(self) -> None:
        """Forget the mark and the group of its last run, of which no process is left."""
        if self.state.group:
            cgroups.remove(self.state.group)
        self.state = self.state._replace(mark="", group="")

    # --- the shim's own start and end --------------------------------------------

    def recover(self) -> None:
        """Correct the state left by an earlier shim: a killed one, or that of an earlier run."""
        if self.state.state != STARTED:
            return
        if self.state.run != self._workspace.run:
            self.state = launcher_states.ended(self.state)
            self._save()
            return
        self._log.mark(f"its shim was killed, and the launcher with it; noticed {now()}")
        self.state = self.state._replace(state=EXITED, exit_code=_BY_SIGNAL + 9, pid=None, finished_at=now())
        self._save()
        self._end(0, None)

    def workspace_ended(self) -> None:
        """Handle the end of the container, and so of all its processes."""
        self._drain()
        state = self.state
        recent = time.monotonic() - self._exited_at < _RECENT_S and (state.exit_code or 0) >= _BY_SIGNAL
        if state.state == STARTED or (state.state == EXITED and recent):
            finished = state.finished_at or now()
            state = state._replace(state=STOPPED, exit_code=None, pid=None, finished_at=finished)
        self.state = state
        if self._run is not None:
            self._run.process.wait(_RECENT_S)  # crun ends by itself
            self._run.process.ended()
        self._forget_processes()
        if os.path.isdir(self._workspace.launchers):  # else the workspace has been removed
            self._save()
        self._reply_all(self._starters)
        self._reply_all(self._stoppers)
        for request, _, _ in self._later:
            request.fail(Failure("not_running", "the workspace has stopped"))

    def _save(self) -> None:
        """Write the state; retry later if that fails."""
        try:
            launcher_states.write(self._workspace.launchers, self.state)
        except OSError as error:
            if not self._unsaved:
                self._workspace.log(
                    "a launcher's state cannot be written", "error", launcher=self.state.name, why=repr(error)
                )
            self._unsaved = True
            self._loop.later(_SAVE_S, self._save_again)
        else:
            self._unsaved = False

    def _save_again(self) -> None:
        if self._unsaved:
            self._save()
