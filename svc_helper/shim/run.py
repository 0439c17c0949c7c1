"""The shim's main part: its requests, its end, and its cleanup."""

from __future__ import annotations

import _socket
import fcntl
import os
import signal
import socket
from collections.abc import Callable

from svc_helper.agent.calls import Failure
from svc_helper.agent.runtime import cgroups, launcher_states
from svc_helper.agent.runtime.launcher_states import LAUNCHERS_MAX, State
from svc_helper.agent.runtime.process_tracker import ProcessTracker
from svc_helper.agent.scope import END_SIGNAL
from svc_helper.shim.clients import Clients, mapped_ids
from svc_helper.shim.control import Control, Do, Request, Together
from svc_helper.shim.inside import Inside, start
from svc_helper.shim.launcher import Launcher
from svc_helper.shim.loop import IN
from svc_helper.shim.ports import Ports
from svc_helper.shim.terminals import Terminals
from svc_helper.shim.workspace import Workspace
from svc_helper.wire.limits import ACCESS_OWNER

Child = tuple[_socket.socket, int]  # inside.start()'s result
IDLE_S = 10  # without a port, a launcher or a terminal
_CHECK_S = 2
_END_GRACE_S = 8  # for launchers when the shim is to end: shorter than leave.py's END_S
_LOCK = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class Shim:
    """The shim of one running workspace."""

    def __init__(self, workspace: Workspace, child: Child, listener: socket.socket) -> None:
        self.workspace = workspace
        self._loop = loop = workspace.loop
        self._path = str(listener.getsockname())
        self._lock_file = f"{workspace.home.own}/locks/shim-{workspace.id}"
        self._inode = os.stat(self._path).st_ino
        self._clients = Clients(workspace.home.uid, mapped_ids(workspace.running.pause_pid))
        self._ports = Ports(loop, Inside(loop, child, self._start_inside), self._clients)
        self._launchers = {
            name: Launcher(workspace, state)
            for name, state in launcher_states.read_all(workspace.launchers).items()
        }
        for launcher in self._launchers.values():
            launcher.recover()
        self._terminals = Terminals(workspace, os.path.dirname(self._path))
        table: dict[str, Do] = self._terminals.table | {
            "port.open": self._open_port,
            "port.close": self._close_port,
            "port.connect": self._ports.connect,
            "port.list": lambda request: request.answer({"ports": self._ports.rows()}),
            "launcher.list": self._list_launchers,
            "launcher.start": self._start_launcher,
            "launcher.stop": self._stop_launcher,
            "launcher.stop_all": self._stop_launchers,
        }
        self._control = Control(loop, listener, workspace.run, table)
        self._requests = 0
        self._idle_s = 0.0
        loop.later(_CHECK_S, self._check_idle)

    def _start_inside(self) -> Child:
        """Start another child in the container's network, after the first was killed."""
        path = f"/proc/{self.workspace.running.pid}/ns/net"
        return start(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    # --- requests ----------------------------------------------------------------

    def _open_port(self, request: Request) -> None:
        args = request.args
        port = int(args["host_port"]), int(args["container_port"]), str(args["access"])
        if args["access"] == ACCESS_OWNER:
            self._clients.require()
        if request.fds:
            self._ports.open(*port, socket.socket(fileno=request.fds.pop()))
        elif not self._ports.is_open(*port):
            raise Failure("conflict", "the host port is taken")
        request.answer({})

    def _close_port(self, request: Request) -> None:
        self._ports.close(int(request.args["host_port"]))
        request.answer({})

    def _list_launchers(self, request: Request) -> None:
        rows = [launcher.state.row() for _, launcher in sorted(self._launchers.items())]
        request.answer({"launchers": rows})

    def _start_launcher(self, request: Request) -> None:
        args = request.args
        args["watch_ms"] = max(0, int(args.get("watch_ms", 0)))  # missing: an agent of before an update
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

    def _stop_launchers(self, request: Request) -> None:
        self._stop_all(float(request.args["grace_s"]), lambda: request.answer({}))

    def _stop_all(self, grace_s: float, done: Callable[[], None]) -> None:
        """Stop all launchers at once; `done` is called when each has ended, or cannot be ended."""
        together = Together(len(self._launchers), done)
        for launcher in list(self._launchers.values()):
            launcher.stop(together, grace_s)

    # --- the end -----------------------------------------------------------------

    def terminate(self) -> None:
        """End, launchers first: the host goes down, or the account is removed."""
        self._stop_all(_END_GRACE_S, self._end_loop)

    def _end_loop(self) -> None:
        self._loop.ending = True

    def _check_idle(self) -> None:
        """End after IDLE_S without ports, running launchers, terminals or requests."""
        self._terminals.check()
        needed = self._ports or self._terminals or any(launcher.busy for launcher in self._launchers.values())
        requested = self._control.requests != self._requests
        self._requests = self._control.requests
        self._idle_s = 0.0 if needed or requested else self._idle_s + _CHECK_S
        if self._idle_s >= IDLE_S:
            self._loop.ending = True
        else:
            self._loop.later(_CHECK_S, self._check_idle)

    def end(self, *, container_ended: bool) -> None:
        """Close everything; unless the container has ended, kill launchers and terminals too."""
        self._remove_socket()
        self._control.close()
        self._ports.close_all()
        self._terminals.end(container_ended=container_ended)
        for launcher in self._launchers.values():
            if not container_ended:
                if not launcher.busy:
                    continue  # what it has left behind is ended by the next shim
                self._kill(launcher.state)
            launcher.workspace_ended()

    def _kill(self, state: State) -> None:
        if state.group:
            cgroups.kill(state.group)
        elif state.mark:
            ProcessTracker(self.workspace.home, state.mark, "", by_crun=False).kill()

    def _remove_socket(self) -> None:
        """Remove the control socket, unless another shim has replaced it or is being started."""
        lock = os.open(self._lock_file, _LOCK, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(self._path).st_ino == self._inode:
                os.unlink(self._path)
        except OSError:
            pass  # the next agent replaces it
        finally:
            os.close(lock)


def serve(workspace: Workspace, first_process: int, child: Child, listener: socket.socket) -> None:
    """Serve until the container ends (`first_process` is its pidfd), or the shim is idle."""
    loop = workspace.loop
    # Waits for an earlier shim that is still ending; held until this process ends.
    lock = os.open(f"{workspace.home.own}/locks/kept-{workspace.id}", _LOCK, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    ended: list[bool] = []

    def container_ended(events: int) -> None:
        ended.append(True)
        loop.ending = True

    woken, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, END_SIGNAL):
        signal.signal(number, lambda number, frame: None)
    shim = Shim(workspace, child, listener)

    def terminated(events: int) -> None:
        loop.unwatch(woken)
        shim.terminate()

    loop.watch(woken, IN, terminated)
    loop.watch(first_process, IN, container_ended)
    loop.run()
    shim.end(container_ended=bool(ended))
