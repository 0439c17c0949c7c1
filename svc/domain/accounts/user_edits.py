"""Changes of an account through the API: permissions and consequences.

The superuser flag is stored twice: in the account's row, which the listeners read,
and by the root helper, which trusts only its own copy. Granting writes the helper's
copy first, revoking the row first. After a crash in between the row therefore never
grants what the helper does not; the same call again completes the change.
"""

from __future__ import annotations

import threading
from typing import Any

from svc.db.connect import write
from svc.domain import audit
from svc.domain.accounts import sessions, users
from svc.domain.accounts.users import Account
from svc.domain.principal import Caller
from svc.domain.quotas import policies as quota_policies
from svc.errors import AdminOnly, Conflict, NotFound, SocketOnly
from svc.limits import PASSWORD_MIN_SUPERUSER

FOR_ADMINISTRATORS = ("superuser", "disabled", "quota")

_marking = threading.Lock()  # concurrent changes must reach row and helper in the same order


def edit(caller: Caller, name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Change `display_name`; administrators also `superuser`, `disabled` and `quota`. Returns the record.

    Raises NotFound (also for accounts of others, unless the caller administers),
    AdminOnly, SocketOnly, Conflict, ValidationFailed, and the helper's errors.
    """
    user = require_own(caller, name) if not caller.administers else users.find(name)
    if user is None:
        raise _missing(name)
    _require_allowed(caller, user, changes)
    if "display_name" in changes:
        changes = changes | {"display_name": users.check_display_name(changes["display_name"])}
    if "superuser" in changes and user.uid != 0:
        with _marking, audit.audited(caller, "user.edit", user.name, **changes):
            _change_mark(caller, user, changes)
    elif changes:
        with write():
            _apply(user, changes)
            audit.add(caller, "user.edit", user.name, "ok", **changes)
    return users.record(users.get(name))


def require_own(caller: Caller, name: str) -> Account:
    """The caller's own account if this is its name; NotFound for all other names."""
    if name != caller.name:
        raise _missing(name)
    return users.get(name)


def _missing(name: str) -> NotFound:
    return NotFound(f"there is no account {name}", hint="svc whoami")


def _require_allowed(caller: Caller, user: Account, changes: dict[str, Any]) -> None:
    if not caller.administers and any(key in changes for key in FOR_ADMINISTRATORS):
        raise AdminOnly("only an administrator can change superuser, disabled and quota")
    if "superuser" in changes:
        if caller.kind != "peer":
            flag = "true" if changes["superuser"] else "false"
            raise SocketOnly(
                "the superuser flag can only be changed on the host, where the kernel identifies the caller",
                hint=f"svc api PATCH /api/users/{user.name} --body '{{\"superuser\": {flag}}}'",
            )
        if user.provisioning != users.READY:
            raise Conflict(
                f"the setup of {user.name} is not complete", hint=f"sudo svc admin create-user {user.name}"
            )
    if user.uid == 0 and (changes.get("disabled") or changes.get("superuser") is False):
        raise Conflict("the root account is always an administrator and cannot be disabled")
    if changes.get("disabled") and user.id == caller.user_id:
        raise Conflict("you cannot disable your own account; another administrator can")


def _change_mark(caller: Caller, user: Account, changes: dict[str, Any]) -> None:
    administrator: bool = changes["superuser"]
    if administrator:
        caller.ask("account.mark", {"administrator": True}, owner=user.name)
    with write():
        _apply(user, changes)
    if not administrator:
        caller.ask("account.mark", {"administrator": False}, owner=user.name)


def _apply(user: Account, changes: dict[str, Any]) -> None:
    """Write the row and end sessions and tokens that no longer fit, inside the caller's transaction.

    The lifetime of a session depends on the superuser flag, so a change of the flag
    ends all sessions. A password that is too short for a superuser, or of unknown
    length, is closed until `svc admin set-password`, and the tokens end with it.
    """
    columns = dict(changes)
    before = users.get(user.name)
    if "superuser" in changes and bool(before.superuser) != changes["superuser"]:
        sessions.end_all(user.id)
        short = (before.password_length or 0) < PASSWORD_MIN_SUPERUSER
        if changes["superuser"] and before.password_hash is not None and short:
            columns["password_closed"] = True
            users.end_access(user.id)
    if changes.get("disabled"):
        users.end_access(user.id)
    if changes.get("quota") is not None:
        quota_policies.require(changes["quota"])
    users.update(user, **columns)
