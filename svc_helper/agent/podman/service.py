"""The user's Podman API process, started and restarted by the agent.

The agent owns the listening socket and passes it to `podman system service`
(LISTEN_FDS), which exits after idle minutes. A connection made while no Podman
runs waits in the listener for the next one: no request is lost or sent twice.
Podman outlives the agent, and each agent has a listener of its own, so an old
agent's Podman simply exits when idle.

Imported before anything slow, so that Podman's start overlaps the rest.
"""

from __future__ import annotations

import os
from _socket import AF_UNIX, SOCK_CLOEXEC, SOCK_STREAM, socket  # the C half alone: quick to import
from _thread import allocate_lock

from svc_helper.agent import user_files
from svc_helper.agent.home import Home
from svc_helper.agent.process import Process, start

IDLE_S = 300
_BACKLOG = 64
_REPAIR_S = 30
# LISTEN_PID must be the pid of the process that gets the socket, known only there.
_START = f"LISTEN_PID=$$ LISTEN_FDS=1 exec podman system service --time={IDLE_S}"


class ServiceFailed(Exception):
    """Podman could not be started; `log` has its output."""

    def __init__(self, log: str) -> None:
        super().__init__("Podman could not be started")
        self.log = log


class Service:
    """One listener and the Podman process behind it."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.path = ""
        self._lock = allocate_lock()
        self._generation = 0
        self._failures = 0
        self._retired: list[Process] = []
        self._unstarted = ("", "")  # the path of a listener that was dropped, and Podman's output

    def start(self) -> None:
        """Bind a listener and start Podman on it, once."""
        with self._lock:
            if not self.path:
                self._remove_stale_files()
                self._renew()

    def revive(self, seen: Process) -> None:
        """Restart Podman if the process that the caller used has ended.

        Raises ServiceFailed when it fails a second time; requests that nobody has accepted are dropped then.
        """
        with self._lock:
            if self.process is not seen:
                return
            status = seen.ended()
            if status is None:
                return
            if status > 0:  # not killed by a signal: its output tells why
                self._repair()
            self._spawn()

    def require_listener(self, path: str) -> None:
        """Raise ServiceFailed if the listener of this path was dropped, for a Podman that does not start."""
        if self._unstarted[0] == path:
            raise ServiceFailed(self._unstarted[1])

    def answered(self) -> None:
        """Reset the failure count after a response."""
        self._failures = 0

    def renew_policy(self) -> None:
        """Start another Podman when registries.conf has changed since this one read it.

        The old process keeps its connections and exits when idle.
        """
        self.start()
        with self._lock:
            if self._policy != self._read_policy():
                self._retired = [
                    process for process in (*self._retired, self.process) if process.ended() is None
                ]
                self._renew()

    def stop(self) -> None:
        """Terminate Podman: nobody will connect to these listeners again."""
        with self._lock:
            if not self.path:
                return
            for process in (*self._retired, self.process):
                if process.ended() is None:
                    self._terminate(process.pid)
            self._unlink(self.path)
            self._unlink(self._log)

    @staticmethod
    def _terminate(pid: int) -> None:
        """End a Podman: the user's first one is two processes, and 4.3.1's first passes no signal on."""
        for one in (*_copies(pid), pid):
            try:
                os.kill(one, 15)
            except ProcessLookupError:
                pass

    def _remove_stale_files(self) -> None:
        """Remove the files of agents that were killed."""
        for name in os.listdir(self.home.own):
            kind, *rest = name.split("-")
            if kind == "podman" and len(rest) == 2 and not os.path.exists(f"/proc/{rest[0]}"):
                self._unlink(f"{self.home.own}/{name}")

    def _renew(self) -> None:
        old = self.path
        self._generation += 1
        self.path = f"{self.home.own}/podman-{os.getpid()}-{self._generation}.sock"
        self._log = f"{self.home.own}/podman-{os.getpid()}-0.log"
        self._unlink(self.path)  # of an earlier process with this pid
        self._listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
        self._listener.bind(self.path)
        self._listener.listen(_BACKLOG)
        self._policy = self._read_policy()
        self._spawn()
        self._unlink(old)

    def _spawn(self) -> None:
        # A file, not a pipe to the agent: Podman must survive the agent's end.
        log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fds = {0: None, 1: log, 2: log, 3: self._listener.fileno()}
            self.process = start(["/bin/sh", "-c", _START], self.home.environment, fds, setsid=True)
        finally:
            os.close(log)

    def _repair(self) -> None:
        """After the first failed start, run what Podman itself asks for; after the second, give up."""
        log = self._read_log()
        self._failures += 1
        if self._failures > 1:
            self._failures = 0
            # The next call finds a Podman that is starting. What waits on the old listener goes with it: it
            # would be done whenever Podman starts again, and fill the queue until then.
            self._unstarted = (self.path, log)
            self._renew()
            raise ServiceFailed(log)
        if "podman system migrate" in log:
            self._run("system", "migrate")  # it exits with 125 but repairs
            # Mounts were lost with the killed processes' namespace; Podman still counts them and would
            # start a container on an empty directory.
            self._run("container", "cleanup", "--all")

    def _run(self, *arguments: str) -> None:
        argv = ["/usr/bin/env", "podman", *arguments]
        start(argv, self.home.environment, setsid=True).finish(_REPAIR_S)

    def _read_log(self) -> str:
        try:
            return user_files.read(self._log, 4096).decode(errors="replace")
        except OSError:
            return ""

    def _read_policy(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self.home.registries_conf)
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    @staticmethod
    def _unlink(path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def _copies(pid: int) -> list[int]:
    """The children of a process that run the same command, not what it has started for containers."""
    children = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # whichever of Go's threads has made it
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                children += [int(child) for child in file.read().split()]
        command = _command(pid)
        return [child for child in children if _command(child) == command]
    except OSError:  # it has ended meanwhile
        return []


def _command(pid: int) -> bytes:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()
