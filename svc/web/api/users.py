"""Users: the caller, the administrators' list, profiles and passwords."""

from __future__ import annotations

import pwd
from typing import Any

from flask import Blueprint, Response, current_app

from svc.actions.access import ACCOUNTS, ADMINISTRATORS
from svc.actions.table import AUTH_PASSWORD, USER_EDIT
from svc.domain.accounts import logins, user_edits, users
from svc.domain.audit.audit import VIA
from svc.domain.licence import reports
from svc.domain.principal import Caller
from svc.errors import AccountDisabled
from svc.web import outputs
from svc.web.access import action, route
from svc.web.callers import credentials
from svc.web.schemas.pages import ListQuery
from svc.web.schemas.users import USERS, Me, PasswordChange, User, UserPatch

blueprint = Blueprint("users", __name__)


@route(blueprint, "GET", "/users/me", ACCOUNTS, answer=Me())
def me(caller: Caller) -> dict[str, Any]:
    """The authenticated account; a token sees its owner's superuser flag, but does not have its rights."""
    account = users.find_by_uid(caller.uid)
    try:
        linux = pwd.getpwnam(caller.name)
    except KeyError:  # removed within ACCOUNT_CHECK_S of the last check
        raise AccountDisabled(f"the Linux account {caller.name} no longer exists") from None
    roots = current_app.extensions["svc"]["settings"].file_roots
    return {
        "name": caller.name,
        "uid": caller.uid,
        "display_name": account.display_name if account else "",
        "superuser": bool(account and account.superuser),
        "linux_account": {"name": linux.pw_name, "uid": linux.pw_uid, "home": linux.pw_dir},
        "via": VIA[caller.kind],
        "roots": [] if caller.uid == 0 else sorted(roots),
        "notices": reports.current()["notices"] if caller.administers else [],
    }


@route(blueprint, "GET", "/users", ADMINISTRATORS, query=ListQuery(), answer=USERS)
def list_(_caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """All service accounts, for administrators."""
    return users.page_of(query["page"])


@action(blueprint, USER_EDIT, body=UserPatch(), answer=User())
def edit(caller: Caller, name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Change one's own display name; administrators change all names, both flags and the quota."""
    return user_edits.edit(caller, name, body)


@action(
    blueprint, AUTH_PASSWORD,
    body=PasswordChange(), status=204,
)  # fmt: skip
def change_password(caller: Caller, name: str, body: dict[str, Any]) -> Response:
    """Change one's own service password; ends all sessions and tokens."""
    user_edits.require_own(caller, name)
    logins.change_password(caller, body["current_password"], body["password"])
    return credentials.delete_cookie(outputs.response(None, 204))
