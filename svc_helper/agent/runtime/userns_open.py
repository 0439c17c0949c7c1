"""Files that only the root of the user's own namespace may open: opened there, and handed to the agent.

A container with ids of its own keeps its directory, and with it its log, from
the user; not from the root of Podman's namespace, which is the user as well.
"""

from __future__ import annotations

import os
import socket
import stat
import sys

from svc_helper import interpreter
from svc_helper.agent.home import Home
from svc_helper.agent.process import Process
from svc_helper.agent.runtime import crun

_WAIT_S = 10


def open_inside(home: Home, path: str) -> int:
    """A descriptor of a regular file, for reading; raises OSError when it is not to be had."""
    pause_pid = crun.pause_pid(home)
    if pause_pid is None:
        raise PermissionError(f"{path} is the container's own")
    argv = [*crun.enter_argv(pause_pid), *interpreter.command(__name__, path)]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)]
        process = Process(os.posix_spawn(argv[0], argv, home.environment, file_actions=actions))
        if not process.wait(_WAIT_S):
            os.kill(process.pid, 9)
            process.wait(_WAIT_S)
        process.ended()
        ours.setblocking(False)
        word, fds, _, _ = socket.recv_fds(ours, 16, 1, socket.MSG_CMSG_CLOEXEC)
    if word == b"none":
        raise FileNotFoundError(f"{path} is not there")
    if not fds:
        raise PermissionError(f"{path} is the container's own")
    if not stat.S_ISREG(os.fstat(fds[0]).st_mode):
        os.close(fds[0])
        raise OSError("not a regular file")
    return fds[0]


def main() -> None:
    """Inside: open argv[1] and send it to the other end of descriptor 0."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
    with socket.socket(fileno=0) as reply:
        try:
            socket.send_fds(reply, [b"file"], [os.open(sys.argv[1], flags)])
        except FileNotFoundError:
            reply.send(b"none")
        except OSError:
            reply.send(b"refused")
