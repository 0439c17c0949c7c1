"""The host names of this service: in its certificate, in links, and in the Host header of requests."""

from __future__ import annotations

import socket
from collections.abc import Iterable


def of_service(public_hosts: Iterable[str]) -> list[str]:
    """SVC_PUBLIC_HOSTS, else the host's own names; without duplicates, in lower case."""
    names = list(public_hosts) or [socket.gethostname(), socket.getfqdn()]
    return list(dict.fromkeys(name.lower() for name in names if name))
