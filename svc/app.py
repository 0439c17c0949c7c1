"""The app parent: imports the web code once, forks the listeners and the worker, and watches them.

The supervisor starts it under the app's identity, with CAP_SETUID and CAP_SETGID. Before it imports
anything else it confines itself to the uids of its roles (svc.server.confinement). It forks `unix`, `tls`,
`worker` and, where apps have an address, `apps`; each becomes its own account for good, and is
restarted; what a role has left is killed first. Each child closes all descriptors but its own. The
parent has no database connection and no thread, so that a fork copies none, and reads nothing that a
client sends.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, NoReturn

from svc import heaps
from svc.clients import SocketOwners, Uids
from svc.domain import configuration
from svc.errors import DatabaseRefused
from svc.helper.helper import Helper
from svc.log import bound, log
from svc.server import confinement, ending
from svc.server.confinement import PR_SET_CHILD_SUBREAPER, PR_SET_NAME, prctl
from svc.server.heartbeat import CHECK_S, Heartbeat
from svc.server.restart import EARLY_ENDS_MAX, NOT_SERVING, UNUSABLE, Child, reap
from svc.settings import Settings

# The order in which the supervisor passes them; from APPS on the listeners of apps, as many as there are.
UNIX, TLS, HELPER_UNIX, HELPER_TLS, HELPER_WORKER, READY, NETLINK, NETLINK_APPS, APPS = range(3, 12)
FILES = 8192  # listeners, connections, and descriptors on their way between app and agents
PAUSE_S = 0.05
STOP_S = 4.2  # within the supervisor's five seconds


class Role(NamedTuple):
    """One child: its name, its identity, its descriptors and its main function."""

    name: str
    uid: int
    gid: int
    descriptors: tuple[int, ...]
    run: Callable[[], None]
    heartbeat: Heartbeat | None = None  # of a listener, whose main thread every request needs


class Parent:
    """Forks the children and restarts them; `separate` if each has a uid of its own."""

    def __init__(self, roles: list[Role], separate: bool) -> None:
        self.roles = roles
        self.separate = separate
        self.children = [Child("app", role.name, partial(self._fork, role)) for role in roles]
        self.alive: dict[str, int] = {}  # by role: the end of a pipe that closes when this process exits
        self.stopping = False
        self.pid = os.getpid()
        self.wakeup_read, self.wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> int:
        """Run until SIGTERM; returns the exit status."""
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a killed child has forked becomes ours, reaped at once
        signal.set_wakeup_fd(self.wakeup_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop_requested)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # for the wakeup alone
        while not self.stopping:
            for child in self.children:
                child.ensure()
            self._wait(CHECK_S if all(child.pid for child in self.children) else PAUSE_S)
            reap(self.children)
            self._kill_silent()
            if any(child.exit_code == UNUSABLE for child in self.children):
                self._stop()
                return UNUSABLE  # the supervisor finds out why, and says it
            if self._serves_nobody():
                self._stop()
                return NOT_SERVING
        return self._stop()

    def _serves_nobody(self) -> bool:
        """Whether a listener ended EARLY_ENDS_MAX times right after its start, and none has ever worked."""
        listeners = [
            (role.heartbeat, child.early_ends)
            for role, child in zip(self.roles, self.children, strict=True)
            if role.heartbeat
        ]
        if not any(ends >= EARLY_ENDS_MAX for _, ends in listeners):
            return False
        return not any(heartbeat.has_ever_beaten() for heartbeat, _ in listeners)

    def _wait(self, seconds: float) -> None:
        """Wait for a signal, the end of a child among them, and no longer than that."""
        if not self.stopping and select.select([self.wakeup_read], [], [], seconds)[0]:
            os.read(self.wakeup_read, 4096)

    def _kill_silent(self) -> None:
        """Kill a listener whose main thread works no more; it is started again as after any end."""
        for role, child in zip(self.roles, self.children, strict=True):
            if role.heartbeat and child.pid and role.heartbeat.is_silent(child.pid):
                log("app", f"{role.name} does not answer and is killed", "critical")
                ending.signal_as(role.uid, child.pid, signal.SIGKILL)

    def _stop_requested(self, _number: int, _frame: object) -> None:
        self.stopping = True
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        for role, child in zip(self.roles, self.children, strict=True):
            if child.pid:
                with contextlib.suppress(ProcessLookupError):
                    ending.signal_as(role.uid, child.pid, number)

    def _fork(self, role: Role) -> int:
        sys.stderr.flush()
        if self.separate and not ending.kill_all_of(role.uid):
            log("app", f"processes of an earlier {role.name} could not be killed", "critical")
            raise SystemExit(1)
        if role.name in self.alive:
            os.close(self.alive[role.name])
        alive, self.alive[role.name] = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            self._become(role, alive)
        os.close(alive)
        return pid

    def _become(self, role: Role, alive: int) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            confinement.become_role(role.uid, role.gid)
            confinement.end_with(alive)
            if os.getppid() != self.pid:
                os._exit(1)
            prctl(PR_SET_CHILD_SUBREAPER, 0)
            prctl(PR_SET_NAME, f"svc-{role.name}".encode())
            for descriptor in range(3, 64):
                if descriptor not in (*role.descriptors, alive):
                    with contextlib.suppress(OSError):
                        os.close(descriptor)
            bound()
            role.run()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except DatabaseRefused as error:
            log("app", f"{role.name} cannot use the database: {error.message}", "error", hint=error.hint)
            code = UNUSABLE
        except BaseException as error:  # noqa: BLE001  the process ends here; the log gets the reason
            log("app", f"{role.name} failed: {type(error).__name__}: {error}", "error")
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _stop(self) -> int:
        deadline = time.monotonic() + STOP_S
        self._signal(signal.SIGTERM)
        while reap(self.children) and time.monotonic() < deadline:
            time.sleep(0.01)
        if self.separate:
            killed = [ending.kill_all_of(role.uid) for role in self.roles]
            return 0 if all(killed) else 1
        self._signal(signal.SIGKILL)
        return 0


def wake_by(descriptor: int) -> Callable[[], None]:
    """A function that signals an eventfd without blocking."""

    def wake() -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_write(descriptor, 1)

    return wake


def roles(settings: Settings, config: dict[str, Any]) -> list[Role]:
    """The children; imports their shared code, and builds what the listeners serve."""
    from svc.apps import serving as apps
    from svc.tls import serving
    from svc.web import app, listeners
    from svc.worker import loop

    dev = bool(config["dev"])
    certificate = None if dev else serving.certificate_paths(settings)  # the supervisor has created it
    event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    of_apps = range(APPS, APPS + config["apps_listeners"])
    asking, answering = (end.detach() for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    uids, gid = config["roles"], os.getgid()

    def listener(name: str, fd: int, pair: int, netlink: int = -1, visitors: int = -1) -> Role:
        heartbeat = Heartbeat()
        built = app.build(settings, None, listener=name, dev=dev)
        served = listeners.Listener(
            name, fd, READY, dev, certificate if netlink >= 0 else None, built, netlink, visitors
        )

        def run() -> None:
            helper = Helper(socket.socket(fileno=pair), name)
            listeners.serve(served, settings, helper, wake_by(event), heartbeat.beat)

        descriptors = (fd, pair, READY, event, heartbeat.descriptor, netlink, visitors)
        return Role(name, uids[name], gid, descriptors, run, heartbeat)

    def apps_role() -> Role:
        heartbeat = Heartbeat()

        def run() -> None:
            listening = [socket.socket(fileno=fd) for fd in of_apps]
            owners = SocketOwners(socket.socket(fileno=NETLINK_APPS))
            client_of = apps.client_by(owners, Uids(os.path.join(settings.state_dir, "enrolled")))
            apps.serve(listening, socket.socket(fileno=asking), client_of, heartbeat.beat)

        descriptors = (*of_apps, asking, NETLINK_APPS, heartbeat.descriptor)
        return Role("apps", uids["apps"], config["apps_gid"], descriptors, run, heartbeat)

    def work() -> None:
        helper = Helper(socket.socket(fileno=HELPER_WORKER), "worker")
        loop.run(settings, helper, event)

    return [
        listener("unix", UNIX, HELPER_UNIX),
        listener("tls", TLS, HELPER_TLS, NETLINK, answering),
        Role("worker", uids["worker"], gid, (HELPER_WORKER, event), work),
        *([apps_role()] if of_apps else []),
    ]


def main() -> int:
    """Run the app parent; the supervisor passes `--config JSON`."""
    for number in (signal.SIGTERM, signal.SIGINT):  # the first process of a namespace has no default action
        signal.signal(number, lambda _number, _frame: os._exit(0))
    config = json.loads(sys.argv[sys.argv.index("--config") + 1])
    if config["separate"]:
        confinement.confine_parent(config["roles"].values(), [config["apps_gid"]])
    else:
        confinement.become_role(os.getuid(), os.getgid())
    prctl(PR_SET_NAME, ending.PARENT_NAME.encode())
    settings = Settings(flags=config["settings"], environ={}, file={})
    configuration.set_request_code(config["request_code"])
    most = min(FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # also of descriptors in flight to the helper
    heaps.limit()
    os.umask(0o007 if config["separate"] else 0o077)  # the roles share the database by their group
    children = roles(settings, config)
    gc.collect()
    gc.freeze()  # keeps the imported code shared between the forks
    return Parent(children, config["separate"]).run()


if __name__ == "__main__":
    sys.exit(main())
