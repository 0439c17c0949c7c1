"""Actions of errors by the caller's rights: a button that would be refused is not offered."""

from __future__ import annotations

from typing import Any

from flask import current_app, g, request
from werkzeug.exceptions import HTTPException

from svc.actions.access import ADMIN, MEMBER
from svc.errors import SvcError
from svc.web.access import Route


def permitted(action: dict[str, Any] | None) -> dict[str, Any] | None:
    """The action, if its route is open to the caller of the present request; else None."""
    caller = g.get("caller")
    if action is None or caller is None or request.args.get("owner", caller.name) != caller.name:
        return None  # the names in a hint are the caller's own
    route = _route_of(action["method"], action["path"])
    if route is None or g.listener not in route.access.listeners:
        return None
    if caller.kind == "pat" and not route.access.allows_token(caller.scopes):
        return None
    if caller.uid == 0 and route.access.who == MEMBER:
        return None
    return action if route.access.who != ADMIN or caller.administers else None


def again(error: SvcError) -> dict[str, Any] | None:
    """The present request as an action, of a retryable error; None if it had a body."""
    if not error.retryable or g.get("caller") is None or request.content_length or "chunked" in _encoding():
        return None
    body: dict[str, Any] | None = None if request.method in ("GET", "HEAD", "DELETE") else {}
    path = request.full_path.removesuffix("?")
    return {"label": "Try again", "method": request.method, "path": path, "body": body}


def _encoding() -> str:
    return request.headers.get("Transfer-Encoding", "").lower()


def _route_of(method: str, path: str) -> Route | None:
    try:
        endpoint, _ = current_app.url_map.bind("").match(path, method)
    except HTTPException:
        return None
    found = getattr(current_app.view_functions[endpoint], "route", None)
    return found if isinstance(found, Route) else None
