"""One launcher: its runs one after another, their output, and how it is.

Its state is on disk before anybody is told of it, unless the disk is full.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from svc_helper.agent.calls import Failure
from svc_helper.agent.runtime import cgroups, launcher_states
from svc_helper.agent.runtime.launcher_states import EXITED, STARTED, STOPPED, State, now
from svc_helper.agent.runtime.rotating_log import Ring
from svc_helper.agent.runtime.runtime_errors import cannot_run
from svc_helper.shim.control import Request
from svc_helper.shim.ending import Ending, is_group, populated
from svc_helper.shim.loop import IN
from svc_helper.shim.starting import Started, start
from svc_helper.shim.workspace import Workspace

_PART = 64 * 1024
_BREATH_BYTES, _BREATH_S = 1024 * 1024, 0.05  # 20 MB/s: one that prints without end gets no whole processor
_PID_S = 10  # for crun to say which process it started
_SAVE_S = 5  # until the next try
_NOT_STARTED = 125
_LATELY_S = 3  # before the container's end: then that was the reason
_BY_SIGNAL = 128
Start = Callable[[Request, list[str], dict[str, str]], None]


class Launcher:
    """One name; what was started last under it is its run."""

    def __init__(self, workspace: Workspace, state: State) -> None:
        self._workspace, self._loop = workspace, workspace.loop
        self.state = state if is_group(state.group, state.mark) else state._replace(group="")
        self._ring = Ring(f"{workspace.launchers}/{state.name}.log")
        self._run: Started | None = None  # until crun has ended
        self._program = ""
        self._output = -1  # may be held by what the command left behind
        self._taken, self._since = 0, 0.0
        self._ending: Ending | None = None
        self._starters: list[Request] = []
        self._stoppers: list[Request] = []
        self._later: list[tuple[Request, list[str], dict[str, str]]] = []  # starts, after the end
        self._exited_at = 0.0
        self._unsaved = False

    @property
    def busy(self) -> bool:
        """Whether the shim is needed for it."""
        return self._run is not None or self._ending is not None or self._output >= 0

    # --- starting ----------------------------------------------------------------

    def start(self, request: Request, command: list[str], env: dict[str, str]) -> None:
        """Start it, unless it runs: what is left of its last run is ended first, and an end under way."""
        if self._ending is not None:
            self._later.append((request, command, env))
        elif self._run is not None:
            self._tell(request)
        elif self._leftovers():
            self._end(0, lambda: self._try(self._begin, request, command, env), request)
        else:
            self._begin(request, command, env)

    def _tell(self, request: Request) -> None:
        if self.state.pid is None:
            self._starters.append(request)  # it has only just begun
        else:
            request.answer(self.state.row())

    @staticmethod
    def _try(start: Start, request: Request, command: list[str], env: dict[str, str]) -> None:
        try:
            start(request, command, env)
        except Failure as failure:
            request.fail(failure)
        except OSError:
            request.fail(Failure("failed", "the launcher could not be started"))

    def _begin(self, request: Request, command: list[str], env: dict[str, str]) -> None:
        os.makedirs(self._workspace.launchers, 0o700, exist_ok=True)
        run = start(self._workspace, self.state.name, command, env)
        self._close_output()
        self._run, self._program, self._output = run, command[0], run.output
        at = now()
        self._ring.note(f"started {at}")
        self.state = State(
            self.state.name, STARTED, started_at=at, run=self._workspace.run, mark=run.mark, group=run.group
        )
        self._save()
        self._starters.append(request)
        # What comes before the command has begun is crun's own complaint, and stays in the pipe.
        self._loop.watch(run.told_pid, IN, self._learn_pid)
        self._loop.watch(run.process.pidfd, IN, lambda events: self._exited(run))
        self._loop.later(_PID_S, lambda: self._begun(run))

    def _learn_pid(self, events: int) -> None:
        if self._run is None:
            return
        said = os.read(self._run.told_pid, 32).strip()
        self._loop.unwatch(self._run.told_pid)
        if said.isdigit():
            self.state = self.state._replace(pid=int(said))
            self._save()
            self._begun(self._run)

    def _begun(self, run: Started) -> None:
        if self._run is run:
            self._listen()
            self._tell_starters()

    def _tell_starters(self) -> None:
        starters, self._starters = self._starters, []
        for request in starters:
            request.answer(self.state.row())

    # --- output ------------------------------------------------------------------

    def _take(self, events: int) -> None:
        """Take some output; from one that has much of it, no more for a moment."""
        self._read()
        now_s = time.monotonic()
        if now_s - self._since > _BREATH_S:
            self._taken, self._since = 0, now_s
        if self._taken > _BREATH_BYTES and self._output >= 0:
            self._loop.unwatch(self._output)
            self._loop.later(_BREATH_S, self._listen)

    def _listen(self) -> None:
        if self._output >= 0:
            self._loop.watch(self._output, IN, self._take)

    def _read(self) -> bool:
        """Whether there was any."""
        try:
            part = os.read(self._output, _PART)
        except BlockingIOError:
            return False
        if not part:
            self._close_output()
            return False
        self._taken += len(part)
        self._ring.write(part)
        return True

    def _drain(self) -> None:
        """Take what an ended command left; what still holds the pipe may go on writing."""
        before = self._taken
        while self._output >= 0 and self._taken - before < _BREATH_BYTES and self._read():
            pass

    def _close_output(self) -> None:
        if self._output >= 0:
            self._loop.unwatch(self._output)
            os.close(self._output)
            self._output = -1
            self._ring.close()

    # --- its end -----------------------------------------------------------------

    def _exited(self, run: Started) -> None:
        """crun has ended, and with it the command."""
        code = run.process.ended() or 0
        code = code if code >= 0 else _BY_SIGNAL - code
        complaint = run.complaint()
        if complaint and self.state.pid is None:
            self._close_output()
            code = self._not_run(complaint)
        self._drain()
        for fd in (run.process.pidfd, run.told_pid):
            self._loop.unwatch(fd)
        os.close(run.told_pid)
        os.close(run.complaints)
        self._run = None
        self._exited_at = time.monotonic()
        came_to = EXITED if self._ending is None else STOPPED
        self.state = self.state._replace(state=came_to, exit_code=code, pid=None, finished_at=now())
        if self._ending is None and not self._leftovers():
            self._forget_processes()
        self._save()
        self._tell_starters()

    def _not_run(self, untrusted_complaint: str) -> int:
        self._workspace.log("a launcher was not run", launcher=self.state.name, words=untrusted_complaint)
        reason = cannot_run(self._program, untrusted_complaint)
        if reason is None:
            self._ring.note("it could not be started")
            return _NOT_STARTED
        self._ring.write(reason[1].encode())
        return reason[0]

    def stop(self, request: Request, grace_s: float) -> None:
        """End all that it started; one that does not run is stopped."""
        if self._ending is not None:
            self._stoppers.append(request)
        elif self._run is not None or self._leftovers():
            self._stoppers.append(request)
            self._end(grace_s, self._tell_stoppers, None)
        else:
            request.answer(self.state.row())

    def _leftovers(self) -> bool:
        """Whether something of its last run may still be there, in this run of the container."""
        state = self.state
        if self._run is not None or not state.mark or state.run != self._workspace.run:
            return False
        return populated(state.group) if state.group else True

    def _end(self, grace_s: float, then: Callable[[], None], blamed: Request | None) -> None:
        """End everything of the last run; `blamed` is told if that cannot be done."""
        ran = self._run is not None
        starter = self._run.process if self._run else None

        def done(clean: bool) -> None:
            self._ending = None
            if not clean:
                self._workspace.log(
                    "processes of a launcher may still run", "error", launcher=self.state.name
                )
                self._give_up([blamed] if blamed else self._stoppers)
                self._go_on()
                return
            if self._run is not None:
                self._exited(self._run)
            if ran:
                self.state = self.state._replace(state=STOPPED)
            self._drain()
            self._forget_processes()
            self._save()
            then()
            self._go_on()

        self._ending = Ending(self._workspace, self.state.mark, self.state.group, starter, done)
        self._ending.begin(grace_s)

    def _go_on(self) -> None:
        """Do what was asked for while it ended; those after a start that has to end it anew wait again."""
        later, self._later = self._later, []
        for request, command, env in later:
            self._try(self.start, request, command, env)

    def _give_up(self, requests: list[Request]) -> None:
        for request in requests:
            request.fail(Failure("failed", "not all processes of the launcher have ended"))
        self._stoppers = []

    def _tell_stoppers(self) -> None:
        stoppers, self._stoppers = self._stoppers, []
        for request in stoppers:
            request.answer(self.state.row())

    def _forget_processes(self) -> None:
        """Nothing of its last run is left."""
        if self.state.group:
            cgroups.remove(self.state.group)
        self.state = self.state._replace(mark="", group="")

    # --- the shim's own beginning and end -----------------------------------------

    def recover(self) -> None:
        """Settle what an earlier shim left: one that was killed, or that of an earlier run."""
        if self.state.state != STARTED:
            return
        if self.state.run != self._workspace.run:
            self.state = launcher_states.ended(self.state)
            self._save()
            return
        self._ring.note(f"its shim was killed, and it with it; noticed {now()}")
        self.state = self.state._replace(state=EXITED, exit_code=_BY_SIGNAL + 9, pid=None, finished_at=now())
        self._save()
        self._end(0, lambda: None, None)

    def workspace_ended(self) -> None:
        """Every process of the container is gone: what ran is stopped."""
        self._drain()
        state = self.state
        lately = time.monotonic() - self._exited_at < _LATELY_S and (state.exit_code or 0) >= _BY_SIGNAL
        if state.state == STARTED or (state.state == EXITED and lately):
            finished = state.finished_at or now()
            state = state._replace(state=STOPPED, exit_code=None, pid=None, finished_at=finished)
        self.state = state
        if self._run is not None:
            self._run.process.wait(_LATELY_S)  # crun sees it too, and ends
            self._run.process.ended()
        self._forget_processes()
        if os.path.isdir(self._workspace.launchers):  # else the workspace has been removed, and this with it
            self._save()
        self._tell_starters()
        self._tell_stoppers()
        for request, _, _ in self._later:
            request.fail(Failure("not_running", "the workspace has stopped"))

    def _save(self) -> None:
        """Write the state; where that fails, later."""
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
