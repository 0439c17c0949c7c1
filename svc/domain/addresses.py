"""Which addresses count as one client, wherever attempts, calls or connections are counted."""

from __future__ import annotations

import ipaddress

LOOPBACK = "loopback"
SITE_PREFIX = 48  # bits of an IPv6 address: a site usually gets all networks of a /48


def client_of(address: str) -> str:
    """The client behind an address of a TCP connection; never used to authenticate.

    The loopback addresses (127.0.0.0/8, ::1) are one, since each user of the host has all of
    them. An IPv4 address is one, also in its IPv6 mapping; an IPv6 address counts with its /48.
    Anything else, as the empty address of the host socket and a client of this function, stands for itself.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if parsed.is_loopback:
        return LOOPBACK
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.ip_network((parsed, SITE_PREFIX), strict=False))
