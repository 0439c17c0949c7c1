"""Source addresses on this host that count as clients of their own, as those of other hosts do.

All of 127/8 counts as one client. 198.18.0.0/15 is for such tests (RFC 2544).
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

NETWORK = "198.18.0.0/15"


@contextmanager
def of_this_host() -> Iterator[None]:
    """Make the network's addresses this host's own meanwhile."""
    route = ["local", NETWORK, "dev", "lo"]
    subprocess.run(["ip", "route", "replace", *route], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "route", "delete", *route], check=True)


def address(number: int) -> str:
    """One of them, for numbers below 65536."""
    return f"198.18.{number // 256}.{number % 256}"
