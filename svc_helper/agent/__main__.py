"""Entry point of the agent: runs as the user, the helper's channel on descriptor 3, configuration in argv.

Starting Podman takes longer than anything else here, so it comes first, and
everything else is imported meanwhile.
"""

from __future__ import annotations

import os
import resource
import sys
from _socket import MSG_DONTWAIT, MSG_PEEK, socket  # the C half alone, as in service.py

from svc_helper.agent.home import Home
from svc_helper.agent.podman.service import Service
from svc_helper.agent.scope import Scope
from svc_helper.wire import quick_json  # `import json` takes longer than starting Podman

CHANNEL_FD = 3
FILES = 4096  # pipes and sockets of calls; a login's soft limit is often 1024
# How a message of the helper begins.
QUICK = (
    b'{"verb":"ctr.exec",',
    b'{"verb":"ctr.pipe",',
    b'{"verb":"terminal.',
    b'{"verb":"fs.',
    b'{"verb":"disk.',
)


def first_is_quick() -> bool:
    """Whether the call that the agent was started for needs no Podman: exec, terminals, files, figures.

    It waits in the channel already; starting Podman would only take processor time from it.
    """
    channel = socket(fileno=os.dup(CHANNEL_FD))
    try:
        return channel.recv(32, MSG_PEEK | MSG_DONTWAIT).startswith(QUICK)
    except OSError:
        return False
    finally:
        channel.close()


def main() -> None:
    """Serve the user's calls until idle."""
    os.set_inheritable(CHANNEL_FD, False)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    home = Home(**quick_json.loads(sys.argv[1]))
    home.prepare()
    service = Service(home)
    if not first_is_quick():
        service.start()
    scope = Scope(home)

    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("svc-agent")  # the name in ps

    from socket import socket as Socket  # noqa: N812  the Python half, now that there is time

    from svc_helper.agent.podman.podman import Podman
    from svc_helper.agent.serve import serve

    with Socket(fileno=CHANNEL_FD) as channel:
        serve(channel, Podman(home, service, scope))
    service.stop()


if __name__ == "__main__":
    main()
