"""Opens files that only the root of the user's own namespace may open, and passes them to the agent.

The directory of a container with ids of its own, and so its log, is closed to
the user, but not to the root of Podman's namespace, which is the user as well.
"""

from __future__ import annotations

import socket
import sys

from svc_helper import interpreter
from svc_helper.agent import user_files
from svc_helper.agent.home import Home
from svc_helper.agent.process import start
from svc_helper.agent.runtime import crun

_WAIT_S = 10


def open_inside(home: Home, path: str) -> int:
    """Open a regular file for reading; raises OSError."""
    pause_pid = crun.pause_pid(home)
    if pause_pid is None:
        raise PermissionError(f"{path} is the container's own")
    argv = [*crun.enter_argv(pause_pid), *interpreter.command(__name__, path)]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        start(argv, home.environment, {0: theirs.fileno()}).finish(_WAIT_S)
        ours.setblocking(False)
        reply, fds, _, _ = socket.recv_fds(ours, 16, 1, socket.MSG_CMSG_CLOEXEC)
    if reply == b"none":
        raise FileNotFoundError(f"{path} does not exist")
    if not fds:
        raise PermissionError(f"{path} is the container's own")
    return fds[0]


def main() -> None:
    """In the namespace: open argv[1] and send it through the socket on descriptor 0."""
    with socket.socket(fileno=0) as reply:
        try:
            socket.send_fds(reply, [b"file"], [user_files.open_regular(sys.argv[1])])
        except FileNotFoundError:
            reply.send(b"none")
        except OSError:
            reply.send(b"refused")
