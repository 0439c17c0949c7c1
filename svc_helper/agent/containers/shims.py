"""Requests to the shims of this user's running workspaces, which are started on demand.

A shim outlives the agent; the next agent finds its control socket in the
runtime directory. A killed shim leaves a dead socket, which is replaced. A lock
lets only one call at a time start a workspace's shim.
"""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Sequence
from contextlib import suppress

from svc_helper import interpreter
from svc_helper.agent import locks
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers.running import find_by_crun
from svc_helper.agent.home import CRUN, Home
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.process import start
from svc_helper.agent.runtime.crun import Running
from svc_helper.wire.protocol import ProtocolError, close_all, receive, send
from svc_helper.wire.quick_typing import Any

_BACKLOG = 64
_PAUSE_S = 0.02
_TRIES = 200  # while a shim of the container's last run is still ending
_STARTS_MAX = 3
_NO_RECORD_TRIES = 100  # while Podman alone knows the container
_UNKNOWN = "unknown request to the shim"  # of every release of svc_helper.shim.control


def request(
    podman: Podman,
    call: Call,
    workspace_id: str,
    do: str,
    args: dict[str, Any],
    fds: Sequence[int] = (),
    wait_s: float | None = None,
) -> dict[str, Any]:
    """Send a request to the workspace's shim, which is started if there is none; the data of its reply.

    The reply is waited for until the call's deadline, or for wait_s.

    Raises Failure: `not_found` or `not_running` without a running container.
    """
    starts = without_record = 0
    for _ in range(_TRIES):
        running = find_by_crun(podman, call, workspace_id)
        if running is None:
            # Podman considers it running, which is briefly wrong after it or its pause process was killed.
            if without_record == _NO_RECORD_TRIES or not os.path.exists(CRUN):
                raise Failure("unavailable", "launchers, ports and terminals need crun as Podman's runtime")
            without_record += 1
            call.sleep(_PAUSE_S)
            continue
        sock = _connect(podman.home, workspace_id)
        if sock is None:
            if starts == _STARTS_MAX:
                break
            starts += 1
            sock = _connect_or_start(podman, call, workspace_id, running)
        data = _exchange(call, sock, {"do": do, "run": running.run, "args": args}, fds, wait_s)
        if data is not None:
            return data
        call.sleep(_PAUSE_S)
    raise Failure("unavailable", "the workspace's shim does not respond")


def request_if_running(
    podman: Podman,
    call: Call,
    workspace_id: str,
    do: str,
    args: dict[str, Any],
    wait_s: float | None = None,
) -> dict[str, Any] | None:
    """As request(), but None when no shim runs."""
    sock = _connect(podman.home, workspace_id)
    if sock is None:
        return None
    sock.close()
    try:
        return request(podman, call, workspace_id, do, args, wait_s=wait_s)
    except Failure as failure:
        if failure.code in ("not_found", "not_running"):
            return None
        raise


def is_unknown(failure: Failure) -> bool:
    """Whether the shim does not know the request: it is that of an older release, and still running."""
    return failure.code == "protocol" and failure.message == _UNKNOWN


def _path(home: Home, workspace_id: str) -> str:
    return f"{home.own}/shims/{workspace_id}"


def _connect(home: Home, workspace_id: str) -> socket.socket | None:
    """A connection to the shim; None when no shim listens."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        sock.setblocking(False)  # a full queue is a failure, not a wait
        sock.connect(_path(home, workspace_id))
    except (FileNotFoundError, ConnectionRefusedError):
        sock.close()
        return None
    except OSError:
        sock.close()
        raise Failure("unavailable", "the workspace's shim does not accept more requests") from None
    sock.setblocking(True)
    return sock


def _connect_or_start(podman: Podman, call: Call, workspace_id: str, running: Running) -> socket.socket:
    """Start a shim on a new listener, unless another call does; requests queue until the shim is ready."""
    home = podman.home
    path = _path(home, workspace_id)
    with locks.held(home, call, "shim", workspace_id):
        if (sock := _connect(home, workspace_id)) is not None:
            return sock
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        os.chmod(os.path.dirname(path), 0o700)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            with suppress(FileNotFoundError):
                os.unlink(path)
            listener.bind(path)
            listener.listen(_BACKLOG)
            _start_shim(home, call, workspace_id, running, listener.fileno())
            if (sock := _connect(home, workspace_id)) is not None:
                return sock
    raise Failure("unavailable", "the workspace's shim cannot be reached")


def _start_shim(home: Home, call: Call, workspace_id: str, running: Running, listener: int) -> None:
    names = ("user", "uid", "home", "roots", "systemd", "registries", "registries_conf", "store")
    config = {
        "id": workspace_id,
        "home": {name: getattr(home, name) for name in names},
        "running": list(running),
    }
    argv = interpreter.command("svc_helper.shim.__main__", str(running.pid), json.dumps(config))
    # A session of its own and no death signal: it ends with the container.
    # The agent's runtime directory, where the shim finds its socket and locks, is not that of a Podman
    # with a store directory.
    environment = home.environment | {"XDG_RUNTIME_DIR": home.runtime}
    first = start(argv, environment, {0: None, 1: None, 3: listener}, setsid=True)
    try:
        call.wait({first.pidfd: select.POLLIN})  # it forks at once, so that the shim has no parent
    finally:
        if first.wait(1):
            first.ended()


def _exchange(
    call: Call, sock: socket.socket, message: dict[str, Any], fds: Sequence[int], wait_s: float | None
) -> dict[str, Any] | None:
    """The data of the reply; None when the shim ended or serves another run. Raises the shim's Failure."""
    with sock:
        try:
            send(sock, message, fds, wait=False)
            if not call.wait({sock.fileno(): select.POLLIN}, wait_s):
                raise Failure("unavailable", "the workspace's shim does not respond")
            frame = receive(sock, wait=False)
        except (EOFError, ConnectionError):
            return None
        except (ProtocolError, BlockingIOError):
            raise Failure("failed", "the reply of the workspace's shim is malformed") from None
    close_all(frame.fds)
    reply = frame.message
    if reply.get("ok") is True and isinstance(reply.get("data"), dict):
        return dict(reply["data"])
    if reply.get("code") == "stale":
        return None
    raise Failure.of_reply(reply)
