"""Entry point of the shim: a process of the user's that outlives the agent that started it.

Arguments: the pid of the container's first process, and the rest as JSON.
Descriptor 3 is the control socket, which listens already. The child for the
container's network is forked first, while there is little memory to copy.
"""

from __future__ import annotations

import _socket
import fcntl
import os
import sys

from svc_helper.shim import inside

RESERVED = 8  # starting.py's children get the descriptors below this number
_FILES = 8192  # descriptors: 512 connections that are blocked both ways need 3072


def main() -> None:
    """Serve until the container has ended, or nothing needs a shim."""
    if os.fork():
        os._exit(0)  # the agent must not wait for the shim's end
    control = _reserve(3)
    try:
        namespace = os.open(f"/proc/{int(sys.argv[1])}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # the container has just ended; the agent tries again
        return
    child = inside.start(namespace)
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("svc-shim")  # the name in ps
    _serve(control, child)


def _reserve(control: int) -> int:
    """Occupy the descriptors that a launcher gets, and move the control socket above them."""
    moved = fcntl.fcntl(control, fcntl.F_DUPFD_CLOEXEC, RESERVED)
    null = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, RESERVED)
    for number in range(3, RESERVED):
        os.dup2(null, number, inheritable=False)
    os.close(null)
    return moved


def _serve(control: int, child: tuple[_socket.socket, int]) -> None:
    import json
    import resource
    import socket

    from svc_helper.agent.home import Home
    from svc_helper.agent.runtime.crun import Running, open_first_process
    from svc_helper.agent.scope import Scope
    from svc_helper.shim.loop import Loop
    from svc_helper.shim.run import serve
    from svc_helper.shim.workspace import Workspace

    os.umask(0o077)
    listener = socket.socket(fileno=control)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    config = json.loads(sys.argv[2])
    home = Home(**config["home"])
    running = Running(*config["running"])
    try:
        first_process = open_first_process(running)
    except ProcessLookupError:
        return
    Scope(home, "svc-shim", child[1], running.pid).wait()
    serve(Workspace(config["id"], home, running, Loop()), first_process, child, listener)


if __name__ == "__main__":
    main()
