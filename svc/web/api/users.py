"""Users: the caller, the administrators' list, profiles and passwords."""

from __future__ import annotations

import pwd
from typing import Any

from flask import Blueprint, current_app

from svc.domain import users
from svc.domain.audit import VIA
from svc.domain.callers import Caller
from svc.web.access import ACCOUNT, ADMIN, TCP, Access, reserve, route
from svc.web.schemas.pages import ListQuery
from svc.web.schemas.users import USERS, Me

blueprint = Blueprint("users", __name__)


@route(blueprint, "GET", "/users/me", Access(ACCOUNT, pat=True), answer=Me())
def me(caller: Caller) -> dict[str, Any]:
    """The account that the request authenticated."""
    account, linux = users.account_of_uid(caller.uid), pwd.getpwnam(caller.name)
    roots = current_app.extensions["svc"]["settings"].file_roots
    return {
        "name": caller.name,
        "uid": caller.uid,
        "display_name": account.display_name if account else "",
        "superuser": bool(caller.superuser),
        "linux_account": {"name": linux.pw_name, "uid": linux.pw_uid, "home": linux.pw_dir},
        "via": VIA[caller.kind],
        "roots": [] if caller.uid == 0 else sorted(roots),
    }


@route(blueprint, "GET", "/users", Access(ADMIN), query=ListQuery(), answer=USERS)
def list_(_caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """All service accounts, for administrators."""
    return users.page_of(query["page"])


reserve(blueprint, "PATCH", "/users/<name>", Access(ACCOUNT), "Editing a user")
reserve(blueprint, "PUT", "/users/<name>/password", Access(ACCOUNT, doors=(TCP,)), "Changing a password")
