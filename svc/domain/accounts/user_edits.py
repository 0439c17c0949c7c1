"""Changes of an account through the API: permissions and consequences.

Who is a superuser is stored twice: in the account's row, which the listeners read, and in root's
enrolment list, which the root helper reads. No request changes that list: `svc admin edit-user` does.
"""

from __future__ import annotations

from typing import Any

from svc.actions.table import USER_EDIT
from svc.db.connect import database, write
from svc.domain.accounts import sessions, users
from svc.domain.accounts.users import Account, Ended
from svc.domain.audit import audit
from svc.domain.principal import Caller
from svc.domain.quotas import policies as quota_policies
from svc.errors import AdminCommandOnly, AdminOnly, Conflict, NotFound
from svc.limits import PASSWORD_MIN_SUPERUSER

FOR_ADMINISTRATORS = ("superuser", "disabled", "quota")


def edit(caller: Caller, name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Change `display_name`; administrators also `superuser`, `disabled` and `quota`. Returns the record.

    Raises NotFound (also for accounts of others, unless the caller administers),
    AdminOnly, Conflict, ValidationFailed, and AdminCommandOnly for a change of the role.
    """
    user = require_own(caller, name) if not caller.administers else users.find(name)
    if user is None:
        raise _missing(name)
    _require_allowed(caller, user, changes)
    if "display_name" in changes:
        changes = changes | {"display_name": users.check_display_name(changes["display_name"])}
    if changes:
        with write():
            apply(user, changes)
            audit.add(caller, USER_EDIT, user.name, "ok", **changes)
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
    if user.uid == 0 and (changes.get("disabled") or changes.get("superuser") is False):
        raise Conflict("the root account is always an administrator and cannot be disabled")
    if "superuser" in changes and changes["superuser"] != bool(user.superuser):
        option = "--superuser" if changes["superuser"] else "--no-superuser"
        raise AdminCommandOnly(
            "who is a superuser is changed by root on the host",
            hint=f"sudo svc admin edit-user {user.name} {option}",
        )
    if changes.get("disabled") and user.id == caller.user_id:
        raise Conflict("you cannot disable your own account; another administrator can")
    if changes.get("disabled") and is_last_administrator(user):
        raise Conflict(
            f"{user.name} is the last administrator besides root",
            hint=f"sudo svc admin edit-user {user.name} --disable --last-administrator",
        )


def is_last_administrator(user: Account) -> bool:
    """Whether nobody but root could administer without this account."""
    administers = "superuser AND NOT disabled AND provisioning = 'ready' AND uid <> 0"
    row = database.execute_sql(
        f"SELECT coalesce(max(id = ?1), 0), coalesce(max(id <> ?1), 0) FROM users WHERE {administers}",
        (user.id,),
    ).fetchone()
    return bool(row[0]) and not row[1]


def apply(user: Account, changes: dict[str, Any]) -> Ended:
    """Write the row and end what no longer fits, in the caller's transaction; returns what was ended.

    Only `svc admin` changes the role: root's enrolment list has it too.
    """
    ended = Ended(0, 0)
    if changes.get("disabled"):
        ended = users.end_access(user.id)
    if changes.get("quota") is not None:
        quota_policies.require(changes["quota"])
    columns = {key: value for key, value in changes.items() if key != "superuser"}
    if columns:
        users.update(user, **columns)
    if changes.get("superuser") not in (None, bool(user.superuser)):
        also = _set_role(user, changes["superuser"])
        ended = Ended(ended.sessions + also.sessions, ended.tokens + also.tokens)
    return ended


def _set_role(user: Account, superuser: bool) -> Ended:
    """Make an account a superuser or an ordinary user in its row.

    The lifetime of a session depends on the role, so a change ends all sessions. A password that is too
    short for a superuser, or of unknown length, is closed until `svc admin set-password` or until the
    account is an ordinary user's again, and the tokens end with it.
    """
    ended = Ended(sessions.end_all(user.id), 0)
    columns: dict[str, Any] = {"superuser": superuser, "password_closed": False}
    if superuser and user.password_hash is not None and (user.password_length or 0) < PASSWORD_MIN_SUPERUSER:
        columns["password_closed"] = True
        ended = Ended(ended.sessions, users.end_access(user.id).tokens)
    users.update(user, **columns)
    return ended
