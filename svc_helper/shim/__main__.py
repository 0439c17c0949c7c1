"""The shim's entry: the user's own process, which outlives the agent that started it.

Argv: the pid of the container's first process, and the rest as JSON. Descriptor
3 is the control socket, which listens already. The first act is to fork the
child that will work in the container's network, while there is little to copy.
"""

from __future__ import annotations

import _socket
import fcntl
import os
import sys

from svc_helper.shim import inside

RESERVED = 8  # descriptors below it are those of starting.py's children
_FILES = 8192  # descriptors: 512 connections that are stopped both ways need 3072


def main() -> None:
    """Keep until the container has ended, or nothing needs a shim."""
    if os.fork():
        os._exit(0)  # whoever started this need not wait for its end
    control = _reserve(3)
    try:
        namespace = os.open(f"/proc/{int(sys.argv[1])}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # the container has just ended; whoever asks looks again
        return
    child = inside.start(namespace)
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("svc-shim")  # what ps shows in place of python3
    _keep(control, child)


def _reserve(control: int) -> int:
    """Occupy the numbers that a launcher's descriptors get; the control socket has another then."""
    moved = fcntl.fcntl(control, fcntl.F_DUPFD_CLOEXEC, RESERVED)
    null = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, RESERVED)
    for number in range(3, RESERVED):
        os.dup2(null, number, inheritable=False)
    os.close(null)
    return moved


def _keep(control: int, child: tuple[_socket.socket, int]) -> None:
    import json
    import resource
    import socket

    from svc_helper.agent.home import Home
    from svc_helper.agent.runtime.crun import Running, open_first_process
    from svc_helper.agent.scope import Scope
    from svc_helper.shim.loop import Loop
    from svc_helper.shim.run import keep
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
    Scope(home, "svc-shim", child[1]).settle()
    keep(Workspace(config["id"], home, running, Loop()), first_process, child, listener)


if __name__ == "__main__":
    main()
