"""The app parent: unprivileged; imports the web code once, forks the listeners and the worker.

The supervisor starts it under the app's identity. It asserts that it cannot regain root,
forks `unix`, `tls` and `worker`, and restarts them. Each child closes all descriptors but
its own. The parent has no database connection and no thread, so that a fork copies none.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, NoReturn

from svc.helper.helper import Helper
from svc.log import log
from svc.server.restart import Child, reap
from svc.settings import Settings

UNIX, TLS, HELPER_UNIX, HELPER_TLS, HELPER_WORKER, READY = range(
    3, 9
)  # the order in which the supervisor passes them
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 1, 4, 15, 36
PAUSE_S = 0.05
STOP_S = 4.2  # within the supervisor's five seconds

libc = ctypes.CDLL(None, use_errno=True)


class Role(NamedTuple):
    """One child: its name, its descriptors and its main function."""

    name: str
    descriptors: tuple[int, ...]
    run: Callable[[], None]


def prctl(option: int, value: int | bytes) -> None:
    """One prctl(2) call; raises OSError."""
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def assert_unprivileged() -> None:
    """Exit if the process could become root; always passes for an ordinary user's --dev."""
    prctl(PR_SET_DUMPABLE, 0)  # else processes of one uid could take each other's descriptors
    with open("/proc/self/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    if status["NoNewPrivs"] != "1":
        raise SystemExit("svc: the app was started without no_new_privs")
    if 0 in os.getresuid() or 0 in os.getresgid():
        raise SystemExit("svc: the app was started with an identity of root")
    if os.getuid() != 0 and int(status["CapPrm"], 16) | int(status["CapEff"], 16) | int(status["CapAmb"], 16):
        raise SystemExit("svc: the app was started with capabilities")
    with contextlib.suppress(PermissionError):
        os.setuid(0)
        raise SystemExit("svc: the app could become root")


class Parent:
    """Forks the three children and restarts them."""

    def __init__(self, roles: list[Role]) -> None:
        self.children = [Child("app", role.name, partial(self._fork, role)) for role in roles]
        self.stopping = False
        self.pid = os.getpid()

    def run(self) -> int:
        """Run until SIGTERM; returns the exit status."""
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # a killed master's workers become our children, reaped at once
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop_requested)
        while not self.stopping:
            for child in self.children:
                child.ensure()
            if all(child.pid for child in self.children) and not self.stopping:
                reap(self.children, options=0)
            else:
                time.sleep(PAUSE_S)
                reap(self.children)
        return self._stop()

    def _stop_requested(self, _number: int, _frame: object) -> None:
        # waitpid is restarted after a handler that returns: the end of a child interrupts it.
        self.stopping = True
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        for child in self.children:
            child.signal(number)

    def _fork(self, role: Role) -> int:
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._become(role)
        return pid

    def _become(self, role: Role) -> NoReturn:
        code = 1
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != self.pid:
                os._exit(1)
            prctl(PR_SET_CHILD_SUBREAPER, 0)
            prctl(PR_SET_NAME, f"svc-{role.name}".encode())
            for descriptor in range(3, 64):
                if descriptor not in role.descriptors:
                    with contextlib.suppress(OSError):
                        os.close(descriptor)
            role.run()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
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
        self._signal(signal.SIGKILL)
        return 0


def wake_by(descriptor: int) -> Callable[[], None]:
    """A function that signals an eventfd without blocking."""

    def wake() -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_write(descriptor, 1)

    return wake


def roles(settings: Settings, config: dict[str, Any]) -> list[Role]:
    """The three children; imports their shared code."""
    from svc.tls import serving
    from svc.web import listeners
    from svc.worker import loop

    dev = bool(config["dev"])
    certificate = None if dev else serving.certificate_paths(settings)  # the supervisor has created it
    event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def listener(name: str, fd: int, pair: int) -> Role:
        def run() -> None:
            helper = Helper(socket.socket(fileno=pair), name)
            listeners.serve(
                listeners.Listener(name, fd, READY, dev, certificate if name == "tls" else None),
                settings,
                helper,
                wake_by(event),
            )

        return Role(name, (fd, pair, READY, event), run)

    def work() -> None:
        helper = Helper(socket.socket(fileno=HELPER_WORKER), "worker")
        loop.run(settings, helper, event, config["server_started"])

    return [
        listener("unix", UNIX, HELPER_UNIX),
        listener("tls", TLS, HELPER_TLS),
        Role("worker", (HELPER_WORKER, event), work),
    ]


def main() -> int:
    """Run the app parent; the supervisor passes `--config JSON`."""
    assert_unprivileged()
    prctl(PR_SET_NAME, b"svc-app")
    config = json.loads(sys.argv[sys.argv.index("--config") + 1])
    settings = Settings(flags=config["settings"], environ={}, file={})
    os.umask(0o077)
    children = roles(settings, config)
    gc.collect()
    gc.freeze()  # keeps the imported code shared between the forks
    return Parent(children).run()


if __name__ == "__main__":
    sys.exit(main())
