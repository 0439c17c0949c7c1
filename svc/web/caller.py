"""Which listener a request came through, and who is behind it; decided here, once.

The Unix socket trusts only SO_PEERCRED, the TCP port only a credential that it
checks itself. No header, no pid and no address text ever says who somebody is.
"""

from __future__ import annotations

import contextlib
import pwd
import secrets
import socket
import struct
from collections.abc import Mapping
from typing import Any

from svc.domain.accounts import account_status, throttle, users
from svc.domain.principal import Asks, Caller
from svc.errors import AccountMissing, InvalidRequest, Maintenance, StorageFull
from svc.limits import LOGIN_FAILURES_IN_A_ROW
from svc.web import credentials
from svc.web.gunicorn_worker import connection

OVERFLOW_UID = 65534  # what the kernel shows for a uid that it cannot map
_UCRED = struct.Struct("3i")

# What browsers and token clients send; on the host socket it is a mistake or an attack.
_REFUSED_ON_SOCKET = ("HTTP_AUTHORIZATION", "HTTP_COOKIE", "HTTP_ORIGIN")
_REFUSED_PREFIX = "HTTP_SEC_FETCH_"

# How a request on the TLS listener may say who it is: each looks for its own kind of credential and
# returns None when there is none of it.
CREDENTIALS = (credentials.by_session, credentials.by_token)


def new_request_id() -> str:
    """A fresh id of a request, ours alone: what a client sends as one is not taken."""
    return f"req-{secrets.token_hex(8)}"


def listener(environ: Mapping[str, Any]) -> str:
    """`unix` or `tls`: by the family of the accepted connection, and nothing else."""
    return "unix" if connection(environ).family == socket.AF_UNIX else "tls"


def refuse_credentials(environ: Mapping[str, Any]) -> None:
    """On the host socket: refuse what only browsers and token clients send."""
    for name in environ:
        if name in _REFUSED_ON_SOCKET or name.startswith(_REFUSED_PREFIX):
            header = name.removeprefix("HTTP_").replace("_", "-").title()
            raise InvalidRequest(f"the host socket takes no {header} header; the kernel says who you are")


def peer_uid(sock: socket.socket) -> int:
    """The uid that the kernel noted when the peer connected."""
    if sock.family != socket.AF_UNIX:  # TCP would answer too, with pid 0 and uid 4294967295
        raise ValueError("not a Unix socket")
    _, uid, _ = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return int(uid)


def by_peer(sock: socket.socket, helper: Asks, rid: str) -> Caller:
    """The account of the connection's peer; raises AccountMissing, AccountIncomplete, AccountDisabled.

    Uid and name must both match the account: a uid that was given to another
    person is not that account.
    """
    uid = peer_uid(sock)
    name = _linux_name(uid)
    account = users.find_by_uid(uid) if name else None
    if account is None or account.name != name:
        shown = name or f"uid {uid}"
        raise AccountMissing(
            f"the Linux account {shown} has no service account",
            hint=f"sudo svc admin create-user {name or 'NAME'}",
        )
    account_status.require(account, helper, rid, peer=sock)
    if account.failed_logins >= LOGIN_FAILURES_IN_A_ROW:
        with contextlib.suppress(StorageFull, Maintenance):  # wrong logins keep nobody out on the host
            throttle.forget_user(account.name)  # who is on the host opens the login again
    return Caller(
        kind="peer",
        user_id=account.id,
        name=account.name,
        uid=account.uid,
        superuser=account.superuser,
        rid=rid,
        address="",
        helper=helper,
        peer=sock,
        hangup_fd=sock.fileno(),
    )


def by_credential(environ: Mapping[str, Any], helper: Asks, rid: str) -> Caller | None:
    """The caller that a credential on the TLS listener proves; None without one."""
    for look in CREDENTIALS:
        caller = look(environ, helper, rid)
        if caller is not None:
            return caller
    return None


def _linux_name(uid: int) -> str | None:
    if uid in (OVERFLOW_UID, 2**32 - 1) or uid < 0:
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None
