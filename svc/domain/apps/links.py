"""One-time links to an app, for people on the host: no password, and nothing that a browser sends unasked.

The secret is in the link's fragment, which no server sees; the page there says whom it signs in and where,
and uses it up on a click. So a preview of the link uses nothing up, and nobody is signed in unseen.
"""

from __future__ import annotations

from typing import Any

from svc.actions.table import APP_LINK
from svc.apps.addresses import App
from svc.apps.pair import Described
from svc.domain.accounts import tickets, users
from svc.domain.accounts.tickets import Holder
from svc.domain.apps import places
from svc.domain.audit import audit
from svc.domain.principal import Caller
from svc.domain.workspaces import states
from svc.limits import APP_LINK_S

PURPOSE = "app.link"
ENTRANCE = "/.svc/enter"


def issue(caller: Caller, ref: str, name: str, path: str = "/") -> dict[str, Any]:
    """Make a link to an app of the caller's own workspace: {url, link, expires_at}.

    It works once, within APP_LINK_S. Raises OwnerOnly, NotFound, Conflict, NotAvailable, TooManyRequests.
    """
    workspace = states.find_own(caller, ref, APP_LINK)
    port = places.find(workspace, name)
    origin = places.local_origin(workspace, port)
    with audit.audited(caller, APP_LINK, workspace.id, port=port.name):
        ticket = tickets.issue(caller, PURPOSE, _subject(App(port.name, workspace.id)), APP_LINK_S)
    url = origin + path
    return {"url": url, "link": f"{origin}{ENTRANCE}#{ticket.secret}{path}", "expires_at": ticket.expires_at}


def describe(untrusted: str, app: App) -> Described | None:
    """Whom a link signs in, which it still does afterwards; None for one that opens nothing."""
    holder = tickets.holder_of(untrusted, PURPOSE, _subject(app), APP_LINK_S)
    workspace = states.of_id(app.workspace)
    user = users.find_by_id(holder.user_id) if holder else None
    return Described(user.name, workspace.name) if user and workspace else None


def redeem(untrusted: str, app: App) -> Holder | None:
    """Use a link up; its holder, None for one that opens nothing."""
    return tickets.redeem(untrusted, PURPOSE, _subject(app), APP_LINK_S)


def _subject(app: App) -> str:
    return app.label
