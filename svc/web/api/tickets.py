"""One-time tickets: downloads, archives and exports by a plain link of a page."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, current_app

from svc.actions.access import ACCOUNT, Access
from svc.domain.accounts import tickets
from svc.domain.principal import Caller
from svc.web.access import Route, route
from svc.web.callers import tickets as links
from svc.web.schemas.tokens import NewTicket, TicketCreate

blueprint = Blueprint("tickets", __name__)

OWN = Access(ACCOUNT, credential="svc token create --help")


@route(blueprint, "POST", "/tickets", OWN, body=TicketCreate(), answer=NewTicket(), status=201)
def create(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Issue a one-time ticket for a download, archive, export, raw log or terminal: a plain link to `url`.

    It needs no header and no cookie, and works once, within 30 seconds.
    """
    url = body["url"]
    endpoint, subject = links.resolve(url, current_app.url_map.bind(""))
    opened = getattr(current_app.view_functions[endpoint], "route", None)
    if not isinstance(opened, Route) or not opened.access.ticket:
        raise links.no_such_url()
    ticket = tickets.issue(caller, endpoint, subject)
    joint = "&" if "?" in url else "?"
    return {"url": f"{url}{joint}{links.NAME}={ticket.secret}", "expires_at": ticket.expires_at}
