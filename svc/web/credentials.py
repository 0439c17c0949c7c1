"""The credentials of the TCP door: a browser's session (cookie and header) or a bearer token.

Each looks for its own kind and says who it is; who may do what is decided in
svc.web.access. A request that brings both is understood as neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svc.domain.callers import Asks, Caller

COOKIE = "__Host-svc"
HEADER = "X-Svc-Session"


def by_session(environ: Mapping[str, Any], helper: Asks, rid: str) -> Caller | None:
    """The caller of a session; None without our cookie.

    Raises InvalidRequest (two credentials, two cookies of our name), CrossSite,
    Unauthenticated (either secret wrong, ended), AccountDisabled, AccountIncomplete.
    """
    return None


def by_token(environ: Mapping[str, Any], helper: Asks, rid: str) -> Caller | None:
    """The caller of a personal access token; None without an Authorization header.

    Raises Unauthenticated (one text), TokenExpired, TooManyRequests (wrong tokens
    from this address), AccountDisabled, AccountIncomplete.
    """
    return None


def demand_same_site(environ: Mapping[str, Any]) -> None:
    """Raise CrossSite when a browser says that another origin's page sent this (also for logins)."""


def address_of(environ: Mapping[str, Any]) -> str:
    """The client's address as the kernel gave it, IPv4 in its own form."""
    return str(environ.get("REMOTE_ADDR", ""))
