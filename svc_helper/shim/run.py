"""The shim at work: what it is asked for, when it ends, and what it leaves in order."""

from __future__ import annotations

import _socket
import fcntl
import os
import signal
import socket

from svc_helper.agent.calls import Failure
from svc_helper.agent.runtime import cgroups, launcher_states
from svc_helper.agent.runtime.launcher_states import LAUNCHERS_MAX, State
from svc_helper.agent.runtime.process_tracker import ProcessTracker
from svc_helper.shim.control import Control, Do, Request
from svc_helper.shim.inside import Inside, start
from svc_helper.shim.launcher import Launcher
from svc_helper.shim.loop import IN
from svc_helper.shim.ports import Ports
from svc_helper.shim.workspace import Workspace

Child = tuple[_socket.socket, int]  # inside.start()'s answer
IDLE_S = 10  # without a port or a launcher
_LOOK_S = 2
_LOCK = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class Shim:
    """One running workspace's."""

    def __init__(self, workspace: Workspace, child: Child, listener: socket.socket) -> None:
        self.workspace = workspace
        self._loop = loop = workspace.loop
        self._path = str(listener.getsockname())
        self._lock_file = f"{workspace.home.own}/locks/shim-{workspace.id}"
        self._own = os.stat(self._path).st_ino
        self._ports = Ports(loop, Inside(loop, child, self._start_inside))
        self._launchers = {
            name: Launcher(workspace, state)
            for name, state in launcher_states.read_all(workspace.launchers).items()
        }
        for launcher in self._launchers.values():
            launcher.recover()
        table: dict[str, Do] = {
            "port.open": self._open_port,
            "port.close": self._close_port,
            "port.list": lambda request: request.answer({"ports": self._ports.rows()}),
            "launcher.list": self._list_launchers,
            "launcher.start": self._start_launcher,
            "launcher.stop": self._stop_launcher,
        }
        self._control = Control(loop, listener, workspace.run, table)
        self._heard = 0
        self._idle_s = 0.0
        loop.later(_LOOK_S, self._look)

    def _start_inside(self) -> Child:
        """Another child in the container's network: somebody killed the first."""
        path = f"/proc/{self.workspace.running.pid}/ns/net"
        return start(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    # --- requests ----------------------------------------------------------------

    def _open_port(self, request: Request) -> None:
        host_port, container_port = int(request.args["host_port"]), int(request.args["container_port"])
        if not request.fds:
            if self._ports.leads(host_port) != container_port:
                raise Failure("conflict", "the host port is taken")
        else:
            self._ports.open(host_port, container_port, socket.socket(fileno=request.fds.pop()))
        request.answer({})

    def _close_port(self, request: Request) -> None:
        self._ports.close(int(request.args["host_port"]))
        request.answer({})

    def _list_launchers(self, request: Request) -> None:
        rows = [launcher.state.row() for _, launcher in sorted(self._launchers.items())]
        request.answer({"launchers": rows})

    def _start_launcher(self, request: Request) -> None:
        args = request.args
        launcher = self._launchers.get(args["name"])
        if launcher is None:
            if len(self._launchers) >= LAUNCHERS_MAX:
                raise Failure("failed", "too many launchers in one workspace")
            launcher = self._launchers[args["name"]] = Launcher(self.workspace, State(args["name"]))
        launcher.start(request, args["command"], args["env"])

    def _stop_launcher(self, request: Request) -> None:
        launcher = self._launchers.get(request.args["name"])
        if launcher is None:
            request.answer(State(request.args["name"]).row())
        else:
            launcher.stop(request, float(request.args["grace_s"]))

    # --- its end -----------------------------------------------------------------

    def _look(self) -> None:
        """End when nothing has been kept, nor asked for, for a while."""
        needed = self._ports or any(launcher.busy for launcher in self._launchers.values())
        asked, self._heard = self._control.answered != self._heard, self._control.answered
        self._idle_s = 0.0 if needed or asked else self._idle_s + _LOOK_S
        if self._idle_s >= IDLE_S:
            self._loop.ending = True
        else:
            self._loop.later(_LOOK_S, self._look)

    def end(self, *, container_ended: bool) -> None:
        """Leave nothing open; without the container's end, end the launchers too."""
        self._remove_socket()
        self._control.close()
        self._ports.close_all()
        for launcher in self._launchers.values():
            if not container_ended and launcher.busy:
                self._kill(launcher.state)
            launcher.workspace_ended()

    def _kill(self, state: State) -> None:
        if state.group:
            cgroups.kill(state.group)
        elif state.mark:
            ProcessTracker(self.workspace.home, state.mark, "", by_crun=False).kill()

    def _remove_socket(self) -> None:
        """Remove the control socket, unless a new shim has its own there or is being started."""
        lock = os.open(self._lock_file, _LOCK, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(self._path).st_ino == self._own:
                os.unlink(self._path)
        except OSError:
            pass  # an agent replaces what is there
        finally:
            os.close(lock)


def keep(workspace: Workspace, first_process: int, child: Child, listener: socket.socket) -> None:
    """Serve until the container ends (`first_process` is its pidfd), or there is nothing left to keep."""
    loop = workspace.loop
    # One that is just ending writes its last words first. Held for as long as this process lives.
    life = os.open(f"{workspace.home.own}/locks/kept-{workspace.id}", _LOCK, 0o600)
    fcntl.flock(life, fcntl.LOCK_EX)
    ended: list[bool] = []

    def stop(of_container: bool) -> None:
        ended.append(of_container)
        loop.ending = True

    woken, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    loop.watch(woken, IN, lambda events: stop(False))
    loop.watch(first_process, IN, lambda events: stop(True))
    shim = Shim(workspace, child, listener)
    loop.run()
    shim.end(container_ended=True in ended)
