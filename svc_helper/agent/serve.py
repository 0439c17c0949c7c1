"""The agent's main loop: receives calls from the helper and runs each in a thread.

Every argument is checked again here: the agent trusts the channel as little as
the helper trusts the app. After ten idle minutes, or when the helper has gone,
the agent finishes the running calls and exits; nothing in it must live longer.
So it does when its directory in /run/user was removed or exchanged.
"""

from __future__ import annotations

import contextlib
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module

from svc_helper.agent.calls import Call, Failure, log
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import cgroups, process_tracker
from svc_helper.wire.arguments import ProtocolError, integer, record, request_id
from svc_helper.wire.limits import AGENT_CALLS_MAX
from svc_helper.wire.protocol import VERBS, Frame, close_all, receive
from svc_helper.wire.quick_typing import Any

IDLE_S = 600
_PLACE_S = 5  # to wait for one of them to end
_LOST = "the files of your running workspaces in /run/user were removed; run the command again"
# The default reserves 8 MiB. C code of Python 3.12 and newer nests 10,000 calls deep, as for JSON which does;
# that of 3.11 at most 1,000.
THREAD_STACK = (4096 if sys.version_info >= (3, 12) else 512) * 1024

Handler = Callable[[Podman, Call, dict[str, Any]], dict[str, Any]]
# Modules are imported on first use: the agent stays small, and starts faster.
FUNCTIONS = {
    "ctr.create": ("containers.containers", "create"),
    "ctr.prepare": ("containers.replacing", "prepare"),
    "ctr.replace": ("containers.replacing", "replace"),
    "ctr.start": ("containers.starts", "start"),
    "ctr.stop": ("containers.stops", "stop"),
    "ctr.remove": ("containers.containers", "remove"),
    "ctr.inspect": ("containers.containers", "inspect"),
    "ctr.list": ("containers.containers", "listing"),
    "ctr.watch": ("containers.containers", "watch"),
    "ctr.logs": ("containers.logs", "logs"),
    "ctr.exec": ("containers.exec", "execute"),
    "ctr.pipe": ("containers.piping", "pipe"),
    "terminal.open": ("containers.terminals", "open_"),
    "terminal.attach": ("containers.terminals", "attach"),
    "terminal.list": ("containers.terminals", "listing"),
    "terminal.close": ("containers.terminals", "close"),
    "image.inspect": ("images.images", "inspect"),
    "image.list": ("images.images", "listing"),
    "image.pull": ("images.images", "pull"),
    "ctr.follow": ("containers.follow", "follow"),
    "ctr.stats": ("containers.stats", "stats"),
    "launcher.list": ("containers.launchers", "listing"),
    "launcher.start": ("containers.launchers", "start"),
    "launcher.stop": ("containers.launchers", "stop"),
    "launcher.watch": ("containers.launchers", "watch"),
    "launcher.watch_end": ("containers.launchers", "watch_end"),
    "launcher.token": ("files.launcher_tokens", "find"),
    "port.open": ("containers.ports", "open_"),
    "port.close": ("containers.ports", "close"),
    "port.connect": ("containers.ports", "connect"),
    "port.list": ("containers.ports", "listing"),
    "fs.roots": ("files.listing", "roots"),
    "fs.list": ("files.listing", "listing"),
    "fs.entries": ("files.entries", "entries"),
    "fs.read": ("files.read", "read"),
    "fs.write": ("files.write", "write"),
    "fs.archive": ("files.archive", "archive"),
    "fs.mkdir": ("files.tree", "mkdir"),
    "fs.move": ("files.tree", "move"),
    "fs.remove": ("files.remove", "remove"),
    "image.map": ("images.mapping", "map_"),
    "image.preflight": ("images.preflight", "preflight"),
    "image.build": ("images.builds", "build"),
    "image.secrets": ("images.build_secrets", "keep"),
    "image.usage": ("images.store", "usage"),
    "image.remove": ("images.store", "remove"),
    "image.prune": ("images.store", "prune"),
    "disk.usage": ("disk_usage", "usage"),
}


def handler_of(verb: str) -> Handler:
    """The function of a verb."""
    module, name = FUNCTIONS[verb]
    handler: Handler = getattr(import_module(f"svc_helper.agent.{module}"), name)
    return handler


class Calls:
    """The running calls, at most AGENT_CALLS_MAX."""

    def __init__(self, podman: Podman, end: Callable[[], None]) -> None:
        self.podman = podman
        self.end = end  # take no further calls
        self.places = threading.BoundedSemaphore(AGENT_CALLS_MAX)
        self.lock = threading.Lock()
        self.quiet = threading.Condition(self.lock)
        self.running = 0
        self.quiet_since = time.monotonic()
        self.taken = 0

    def take(self, frame: Frame) -> None:
        """Start one call; a malformed one fails at once."""
        if len(frame.fds) != 1:
            close_all(frame.fds)
            log("a call without exactly one reply socket", "error")
            return
        reply = socket.socket(fileno=frame.fds[0])
        try:
            call, args = _checked(frame.message, reply)
        except ProtocolError as error:
            log("malformed call", "error", why=str(error))
            Call("-", "-", 1, reply).fail(Failure("protocol", "malformed call"))
            return
        if self.podman.home.is_lost():  # the helper starts another agent, which makes everything anew
            self.end()
            call.fail(Failure("unavailable", _LOST))
            return
        if not self.places.acquire(timeout=_PLACE_S):
            call.fail(Failure("unavailable", "too many calls of this user at once"))
            return
        with self.lock:
            self.running += 1
            self.taken += 1
        threading.Thread(target=self._run, args=(call, args), daemon=True).start()

    def _run(self, call: Call, args: dict[str, Any]) -> None:
        try:
            try:
                call.answer(handler_of(call.verb)(self.podman, call, args))
            except Failure as failure:
                call.fail(failure)
            except OSError as error:
                call.log("a system call failed", "error", why=repr(error))
                call.fail(Failure.of_os_error(error, "a system call failed; the agent's log has the details"))
            except Exception as error:  # noqa: BLE001  the edge of a call: its caller must get a reply
                call.log("a verb failed", "error", why=repr(error))
                call.fail(Failure("failed", "internal error; the agent's log has the details"))
        finally:
            self.podman.scope.wait()
            self.places.release()
            self._finish(call)

    def _finish(self, call: Call) -> None:
        """Do what the call has left for after its reply, without its place; then it has ended."""
        try:
            for action in call.afterwards:
                action()
        except Exception as error:  # noqa: BLE001  the edge of a call, which has its reply
            call.log("a verb failed after its reply", "error", why=repr(error))
        finally:
            with self.lock:
                self.running -= 1
                self.quiet_since = time.monotonic()
                is_done = call.ends_idle_agent and self.taken == 1
                self.quiet.notify_all()
            if is_done:  # an overview of all users leaves no agent behind that nobody else has needed
                self.end()

    def idle_for(self) -> float:
        """Seconds since the last call ended; 0 while one is running."""
        with self.lock:
            return 0.0 if self.running else time.monotonic() - self.quiet_since

    def drain(self) -> None:
        """Wait until no call is running."""
        with self.lock:
            while self.running:
                self.quiet.wait()


def _checked(untrusted: dict[str, Any], reply: socket.socket) -> tuple[Call, dict[str, Any]]:
    if set(untrusted) != {"verb", "args", "rid", "timeout_s"}:
        raise ProtocolError("not the keys of a call")
    name = untrusted["verb"]
    if type(name) is not str or name not in FUNCTIONS:
        raise ProtocolError("not a verb of the agent")
    verb = VERBS[name]
    timeout_s = integer(1, verb.max_timeout_s)(untrusted["timeout_s"])
    call = Call(request_id(untrusted["rid"]), name, timeout_s, reply)
    return call, record(**verb.args)(untrusted["args"])


def serve(channel: socket.socket, podman: Podman, idle_s: float = IDLE_S) -> None:
    """Receive calls until the helper has gone or none ran for idle_s; then finish the running ones."""
    threading.stack_size(THREAD_STACK)

    def end() -> None:
        # From now on the helper's send fails and it starts another agent; queued calls are still served.
        with contextlib.suppress(OSError):  # closed already
            channel.shutdown(socket.SHUT_RD)

    calls = Calls(podman, end)
    cgroups.remove_stale_groups(cgroups.own(), process_tracker.PREFIX)
    poller = select.poll()
    poller.register(channel, select.POLLIN)
    ending = False
    while True:
        left = idle_s - calls.idle_for()
        if left <= 0 and not ending:
            ending = True
            end()
        if not ending and not poller.poll(left * 1000 + 1):
            continue
        try:
            calls.take(receive(channel))
        except ProtocolError as error:
            log("malformed message", "error", why=str(error))
        except (EOFError, OSError):
            break
    calls.drain()
