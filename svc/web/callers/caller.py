"""The listener and the caller of a request, determined once, here.

The Unix socket trusts only SO_PEERCRED, the TCP port only a credential that it
checks itself; never a header, a pid or an address.
"""

from __future__ import annotations

import contextlib
import pwd
import socket
from collections.abc import Mapping
from typing import Any

from svc.clients import peer_uid
from svc.db.faults import UNWRITABLE
from svc.domain.accounts import account_status, throttle, users
from svc.domain.principal import Caller
from svc.errors import AccountMissing, InvalidRequest
from svc.helper.helper import Helper
from svc.limits import LOGIN_FAILURES_IN_A_ROW
from svc.web.callers import credentials
from svc.web.gunicorn_worker import connection

OVERFLOW_UID = 65534  # the kernel's value for a uid that it cannot map

# Sent by browsers and token clients; on the host socket a mistake or an attack.
_REFUSED_ON_SOCKET = ("HTTP_AUTHORIZATION", "HTTP_COOKIE", "HTTP_ORIGIN")
_REFUSED_PREFIX = "HTTP_SEC_FETCH_"

# Each checks its own kind of credential on the TLS listener and returns None without one.
CREDENTIALS = (credentials.by_session, credentials.by_token)


def listener(environ: Mapping[str, Any]) -> str:
    """`unix` or `tls`, by the address family of the accepted connection alone."""
    return "unix" if connection(environ).family == socket.AF_UNIX else "tls"


def refuse_credentials(environ: Mapping[str, Any]) -> None:
    """Raise InvalidRequest for headers that only browsers and token clients send."""
    for name in environ:
        if name in _REFUSED_ON_SOCKET or name.startswith(_REFUSED_PREFIX):
            header = name.removeprefix("HTTP_").replace("_", "-").title()
            raise InvalidRequest(
                f"the host socket authenticates by peer credentials; send the request without {header}"
            )


def by_peer(sock: socket.socket, helper: Helper, rid: str) -> Caller:
    """The account of the connection's peer; raises AccountMissing, AccountIncomplete, AccountDisabled.

    Uid and name must both match the account: a uid may have been reassigned to
    another person.
    """
    uid = peer_uid(sock)
    name = _linux_name(uid)
    account = users.find_by_uid(uid) if name else None
    if account is None and name:  # one whose setup is unfinished has no uid yet
        unfinished = users.find(name)
        if unfinished is not None and unfinished.provisioning == users.INCOMPLETE:
            account = unfinished
    if account is None or account.name != name:
        raise AccountMissing(
            f"the Linux account {name or f'uid {uid}'} has no service account",
            hint=f"sudo svc admin create-user {name or 'NAME'}",
        )
    account_status.require(account, helper, rid, peer=sock)
    if account.failed_logins >= LOGIN_FAILURES_IN_A_ROW:
        with contextlib.suppress(*UNWRITABLE):  # failed logins do not lock the host socket
            throttle.forget_user(account.name)  # a request from the host unlocks the login
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


def by_credential(environ: Mapping[str, Any], helper: Helper, rid: str) -> Caller | None:
    """The caller that a credential on the TLS listener proves; None without one."""
    found = (check(environ, helper, rid) for check in CREDENTIALS)
    return next((caller for caller in found if caller is not None), None)


def _linux_name(uid: int) -> str | None:
    if uid in (OVERFLOW_UID, 2**32 - 1):
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None
