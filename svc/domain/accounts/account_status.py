"""Check that an account is active: database row first, then PAM through the helper.

PAM's result is cached for the time in the helper's reply, at most five seconds: an
expired Linux account "must not keep working through a token".
"""

from __future__ import annotations

import socket
import threading
import time

from svc.db.connect import database
from svc.domain.accounts import removal
from svc.domain.accounts.users import READY, Account
from svc.domain.principal import Caller
from svc.errors import AccountDisabled, AccountIncomplete
from svc.helper.helper import Helper

CACHED_MAX = 4096  # accounts; one more clears the cache

_lock = threading.Lock()
_good_until: dict[tuple[str, int], float] = {}


def require(account: Account, helper: Helper, rid: str, peer: socket.socket | None = None) -> None:
    """Raise AccountIncomplete (not set up, not enrolled) or AccountDisabled (disabled, expired, locked).

    `peer` is the caller's connection on the host socket, which the helper requires
    as proof there. PAM is not called for root.
    """
    if removal.is_begun(account):
        raise AccountDisabled(f"the service account {account.name} is being deleted")
    if account.provisioning != READY:
        raise AccountIncomplete(
            f"the setup of the service account {account.name} is not complete",
            hint=f"sudo svc admin create-user {account.name}",
        )
    if account.disabled:
        raise AccountDisabled(
            f"the service account {account.name} is disabled",
            hint=f"sudo svc admin edit-user {account.name} --enable",
        )
    if account.uid == 0:
        return
    key = (account.name, account.uid)
    now = time.monotonic()
    with _lock:
        if _good_until.get(key, 0.0) > now:
            return
    try:
        answer = helper.call("account.check", account.name, {}, rid=rid, peer=peer)
    except AccountDisabled as error:
        raise AccountDisabled(error.message, hint=f"sudo chage --list {account.name}") from None
    except AccountIncomplete as error:
        hint = f"sudo svc admin create-user {account.name}"
        raise AccountIncomplete(error.message, hint=hint) from None
    good_for_s = answer["good_for_ms"] / 1000
    with _lock:
        if len(_good_until) >= CACHED_MAX:
            _good_until.clear()
        _good_until[key] = now + good_for_s


def has_ended(caller: Caller) -> bool:
    """Whether the caller's session or token has ended, or the account was disabled or removed.

    One query, so that a long response can ask every half second; the whole rule is applied less often.
    """
    row = database.execute_sql(
        "SELECT 1 FROM users WHERE id = ?1 AND NOT disabled AND provisioning = 'ready' AND CASE ?2"
        " WHEN 'session' THEN EXISTS (SELECT 1 FROM sessions WHERE id = ?3)"
        " WHEN 'pat' THEN EXISTS (SELECT 1 FROM tokens WHERE id = ?3 AND ended_at IS NULL) ELSE 1 END",
        (caller.user_id, caller.kind, caller.credential),
    ).fetchone()
    return row is None


def forget() -> None:
    """Clear the cache."""
    with _lock:
        _good_until.clear()
