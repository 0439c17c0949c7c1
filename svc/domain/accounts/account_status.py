"""Whether an account may be used now: by its own row, then by the host's own word.

The helper asks PAM about the Linux account; its verdict holds for ACCOUNT_CHECK_S from when PAM gave it,
here as there: an expired account "must not keep working through a token".
"""

from __future__ import annotations

import socket
import threading
import time

from svc.domain.accounts.users import READY, Account
from svc.domain.principal import Asks
from svc.errors import AccountDisabled, AccountIncomplete

KEPT_MAX = 4096  # accounts; more than that and all are asked again

_lock = threading.Lock()
_good_until: dict[tuple[str, int], float] = {}


def require(account: Account, helper: Asks, rid: str, peer: socket.socket | None = None) -> None:
    """Raise AccountIncomplete (set-up unfinished, not enrolled) or AccountDisabled (also: expired, shut out).

    `peer` is the caller's connection on the host socket, the proof that the
    helper wants there. The host is not asked about root.
    """
    if account.provisioning != READY:
        raise AccountIncomplete(
            f"the setup of the service account {account.name} is not complete",
            hint=f"sudo svc admin create-user {account.name}",
        )
    if account.disabled:
        raise AccountDisabled(
            f"the service account {account.name} is disabled",
            hint=f"sudo svc api PATCH /api/users/{account.name} --body '{{\"disabled\": false}}'",
        )
    if account.uid == 0:
        return
    key = (account.name, account.uid)
    asked = time.monotonic()
    with _lock:
        if _good_until.get(key, 0.0) > asked:
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
        if len(_good_until) >= KEPT_MAX:
            _good_until.clear()
        _good_until[key] = asked + good_for_s


def forget() -> None:
    """Ask again about everybody."""
    with _lock:
        _good_until.clear()
