"""The shims of this user's running workspaces: found, started, and asked.

A shim outlives the agent; its control socket is in the runtime directory,
where the next agent finds it. One that was killed leaves a dead socket, which
is replaced. Of two that would start a shim at once, one waits for the other.
"""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Sequence
from typing import Any

from svc_helper import interpreter
from svc_helper.agent import locks
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers.exec import find_running
from svc_helper.agent.home import CRUN, Home
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.process import Process
from svc_helper.agent.runtime.crun import Running
from svc_helper.wire.protocol import CODES, ProtocolError, close_all, receive, send

_BACKLOG = 64
_PAUSE_S = 0.02
_TRIES = 200  # of a shim that is of the container's last run: it ends as soon as it sees that
_STARTS = 3
_BLIND = 100  # looks at a container that Podman alone sees


def ask(
    podman: Podman, call: Call, workspace_id: str, do: str, args: dict[str, Any], fds: Sequence[int] = ()
) -> dict[str, Any]:
    """What the workspace's shim answers; one is started if there is none.

    Raises Failure: `not_found` or `not_running` without a running container.
    """
    starts, blind = _STARTS, _BLIND
    for _ in range(_TRIES):
        running = find_running(podman, call, workspace_id)
        if running is None:
            # Podman says that it runs. Just after it or its pause process was killed that is not so yet.
            if not blind or not os.path.exists(CRUN):
                raise Failure("unavailable", "launchers and ports need crun as Podman's runtime")
            blind -= 1
            call.sleep(_PAUSE_S)
            continue
        sock = _connect(podman.home, workspace_id)
        if sock is None:
            with locks.held(podman.home, call, "shim", workspace_id):
                sock = _connect(podman.home, workspace_id)
                if sock is None:
                    if not starts:
                        break
                    starts -= 1
                    sock = _start(podman, call, workspace_id, running)
        answer = _exchange(call, sock, {"do": do, "run": running.run, "args": args}, fds)
        if answer is not None:
            return answer
        call.sleep(_PAUSE_S)
    raise Failure("unavailable", "the workspace's shim does not answer")


def ask_if_any(podman: Podman, call: Call, workspace_id: str, do: str, args: dict[str, Any]) -> Any:
    """As ask(), but None when no shim runs."""
    sock = _connect(podman.home, workspace_id)
    if sock is None:
        return None
    sock.close()
    try:
        return ask(podman, call, workspace_id, do, args)
    except Failure as failure:
        if failure.code in ("not_found", "not_running"):
            return None
        raise


def _path(home: Home, workspace_id: str) -> str:
    return f"{home.own}/shims/{workspace_id}"


def _connect(home: Home, workspace_id: str) -> socket.socket | None:
    """A connection to the shim; None when nobody listens."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        sock.setblocking(False)  # a full queue is a failure, not a wait
        sock.connect(_path(home, workspace_id))
    except (FileNotFoundError, ConnectionRefusedError):
        sock.close()
        return None
    except OSError:
        sock.close()
        raise Failure("unavailable", "the workspace's shim takes no more requests") from None
    sock.setblocking(True)
    return sock


def _start(podman: Podman, call: Call, workspace_id: str, running: Running) -> socket.socket:
    """Start a shim on a listener of our making; what is asked waits there until it is ready."""
    home = podman.home
    path = _path(home, workspace_id)
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    os.chmod(os.path.dirname(path), 0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        listener.bind(path)
        listener.listen(_BACKLOG)
        _spawn(home, call, workspace_id, running, listener.fileno())
        found = _connect(home, workspace_id)
        if found is None:  # the listener is open in this very block
            raise Failure("unavailable", "the workspace's shim cannot be reached")
        return found


def _spawn(home: Home, call: Call, workspace_id: str, running: Running, listener: int) -> None:
    names = ("user", "uid", "home", "roots", "systemd", "registries", "registries_conf")
    config = {
        "id": workspace_id,
        "home": {name: getattr(home, name) for name in names},
        "running": list(running),
    }
    argv = interpreter.command("svc_helper.shim.__main__", str(running.pid), json.dumps(config))
    null = (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)
    said = (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)
    actions = [null, said, (os.POSIX_SPAWN_DUP2, listener, 3)]
    # A session of its own and no death signal: it ends with the container.
    first = Process(os.posix_spawn(argv[0], argv, home.environment, file_actions=actions, setsid=True))
    try:
        call.wait({first.pidfd: select.POLLIN})  # it forks at once, and is nobody's child then
    finally:
        if first.wait(1):
            first.ended()


def _exchange(
    call: Call, sock: socket.socket, message: dict[str, Any], fds: Sequence[int]
) -> dict[str, Any] | None:
    """The data of its answer, or its Failure; None when it ended, or is of another run of the container."""
    with sock:
        try:
            send(sock, message, fds, wait=False)
            call.wait({sock.fileno(): select.POLLIN})
            frame = receive(sock, wait=False)
        except (EOFError, ConnectionError):
            return None
        except (ProtocolError, BlockingIOError):
            raise Failure("failed", "the workspace's shim is not understood") from None
    close_all(frame.fds)
    answer = frame.message
    if answer.get("ok") is True and isinstance(answer.get("data"), dict):
        return dict(answer["data"])
    if answer.get("code") == "stale":
        return None
    code = answer.get("code") if answer.get("code") in CODES else "failed"
    raise Failure(str(code), str(answer.get("message"))[:300])
