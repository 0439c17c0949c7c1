"""The supervisor: runs as root and reads nothing from any client.

It binds the two listeners, creates the socket pairs between app and helper, starts
and restarts both, and stops everything within five seconds. It keeps listeners and
pairs open, so that a restarted child finds queued calls and waiting connections.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time

from svc.db.location import database_path, refuse_foreign_directory
from svc.db.lock import hold
from svc.db.owner import Owner, run_as
from svc.errors import DatabaseRefused, HostRefused
from svc.helper import start
from svc.limits import STOP_TOTAL_S
from svc.log import log
from svc.server import children, listeners
from svc.server.restart import Child, reap
from svc.settings import Settings

PAIRS = ("unix", "tls", "worker")


def both_ready(received: bytes) -> bool:
    """Whether each listener has sent its first letter: it accepts requests (a restarted one repeats it)."""
    return set(b"ut") <= set(received)


class Supervisor:
    """The running server."""

    def __init__(self, settings: Settings, dev: bool) -> None:
        self.settings = settings
        self.dev = dev
        self.account = children.app_account()
        self.stopping = False
        self.received = b""  # from the listeners, over the ready pipe
        self.wakeup_read, self.wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.ready_read, ready_write = os.pipe2(os.O_CLOEXEC)
        self.ready_write = children.move_high(ready_write)
        self.unix = children.move_high(listeners.unix_listener(settings.socket).detach())
        host = settings.host or ("127.0.0.1" if dev else "")
        self.tcp = children.move_high(listeners.tcp_listener(host, settings.port).detach())
        self.app_ends: list[int] = []
        self.helper_ends: list[int] = []
        for _ in PAIRS:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # before the first call is queued
            self.app_ends.append(children.move_high(ours.detach()))
            self.helper_ends.append(children.move_high(theirs.detach()))
        self.children = [
            Child("supervisor", "helper", self.start_helper),
            Child("supervisor", "app", self.start_app),
        ]

    def start_helper(self) -> int:
        """Start the root helper on its ends of the pairs."""
        fds = {pair: children.FIRST_FD + place for place, pair in enumerate(PAIRS)}
        command = start.command(self.settings, "svc_helper.root.__main__", self.account.uid, fds)
        return children.spawn(children.as_root(command), self.helper_ends, start.environment())

    def start_app(self) -> int:
        """Start the app parent on the listeners, its ends of the pairs and the ready pipe."""
        config = {
            "settings": {name: resolved.text for name, resolved in self.settings.resolved.items()}
            | {"SVC_DB": os.path.abspath(self.settings.db)},
            "dev": self.dev,
            "server_started": time.clock_gettime(time.CLOCK_BOOTTIME),  # unlike the clock, cannot be set
        }
        descriptors = [self.unix, self.tcp, *self.app_ends, self.ready_write]
        # The app needs third-party packages, so it gets a full interpreter start (-I, but no -S).
        command = [sys.executable, "-I", "-m", "svc.app", "--config", json.dumps(config)]
        return children.spawn(children.as_app(self.account, command), descriptors, start.environment())

    def run(self) -> int:
        """Supervise until SIGTERM or SIGINT; returns the exit status."""
        signal.set_wakeup_fd(self.wakeup_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, self._on_signal)
        watched = [self.wakeup_read, self.ready_read]
        while not self.stopping:
            for child in self.children:
                child.ensure()
            readable, _, _ = select.select(watched, [], [], 1.0 if self._waiting() else None)
            if self.wakeup_read in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.wakeup_read, 4096)
            if self.ready_read in readable:
                self.received += os.read(self.ready_read, 64)
                if both_ready(self.received):
                    watched.remove(self.ready_read)
                    self._ready()
            reap(self.children)
        return self._stop()

    def _on_signal(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self.stopping = True

    def _waiting(self) -> bool:
        return any(child.pid == 0 for child in self.children)

    def _ready(self) -> None:
        """Log that both listeners accept requests, and notify systemd."""
        log("supervisor", f"ready: {self.settings.socket} and port {self.settings.port}")
        address = os.environ.get("NOTIFY_SOCKET", "")
        if address:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, contextlib.suppress(OSError):
                notify.sendto(b"READY=1\n", "\0" + address[1:] if address[0] == "@" else address)

    def _stop(self) -> int:
        """Stop the app first (requests in flight get three seconds), then the helper; five seconds in all."""
        deadline = time.monotonic() + STOP_TOTAL_S - 0.5
        log("supervisor", "stopping")
        for child in reversed(self.children):
            child.signal(signal.SIGTERM)
            while child.pid and time.monotonic() < deadline:
                reap(self.children)
                time.sleep(0.01)
            if child.pid:
                log("supervisor", f"{child.name} did not exit in time and is killed")
                child.signal(signal.SIGKILL)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.settings.socket)
        log("supervisor", "stopped")
        return 0


def serve(settings: Settings, dev: bool) -> int:
    """Check the prerequisites, take the database's lock, and run; raises SvcError."""
    if os.geteuid() != 0 and not dev:
        raise HostRefused("the server must be run as root", hint="sudo svc server   (or: svc server --dev)")
    children.set_close_on_exec()
    database_path(settings)  # refuses a path in a directory that others can write
    if dev:
        refuse_foreign_directory(settings)
        _migrate(settings)
    _check_prerequisites(settings, dev)
    # "The supervisor holds the database's lock exclusively for as long as it runs".
    with hold(settings.db, exclusive=True):
        if not dev:
            _ensure_certificate(settings)
        return Supervisor(settings, dev).run()


def _ensure_certificate(settings: Settings) -> None:
    """In a child that runs as the app: root reads no certificate and does not load the library."""

    def ensure() -> None:
        from svc.tls import serving

        serving.ensure_certificate(settings)

    account = children.app_account()
    run_as(Owner(account.uid, account.gid), ensure)


def _migrate(settings: Settings) -> None:
    """With --dev: create or migrate the database, by the command that an administrator would run."""
    command = [sys.executable, "-I", "-m", "svc", "admin", "migrate", "--db", settings.db]
    pid = os.posix_spawn(command[0], command, dict(os.environ))
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        raise DatabaseRefused(
            f"{settings.db} could not be migrated", hint=f"svc admin migrate --db {settings.db}"
        )


def _check_prerequisites(settings: Settings, dev: bool) -> None:
    if not os.path.exists(settings.db):
        raise DatabaseRefused(f"there is no database at {settings.db}", hint="sudo svc admin migrate")
    if not dev and not os.path.isfile(settings.secret_file):
        raise HostRefused(
            f"there is no signing secret at {settings.secret_file}", hint="sudo svc admin migrate"
        )
