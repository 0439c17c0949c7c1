"""The routes of the pages: shells and static files, for anyone, over TLS alone.

On the host's socket these paths do not exist: `svc` is the interface there, and a page would find no session.
"""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, request

from svc.actions.access import ANYONE, TLS, Access
from svc.domain.principal import Caller
from svc.errors import NotFound
from svc.web import inputs
from svc.web.access import route
from svc.web.pages import assets, content, policy, shells

PAGE = Access(ANYONE, listeners=(TLS,))


def blueprint() -> Blueprint:
    """All pages and files, rendered."""
    pages = Blueprint("pages", __name__)
    rendered = shells.render()
    files, digest = assets.load()
    for page in shells.PAGES:
        _add_page(pages, page, rendered[page.name])

    @route(pages, "GET", "/", PAGE, query=inputs.ANYTHING, gives="text/html")
    def home(_caller: Caller | None, query: dict[str, Any]) -> Response:
        """The first page."""
        return Response(status=302, headers={"Location": shells.HOME})

    @route(pages, "GET", f"{shells.STATIC}/<of>/<name>", PAGE, query=inputs.ANYTHING, gives="*/*")
    def static(_caller: Caller | None, of: str, name: str, query: dict[str, Any]) -> Response:
        """A static file of this release; that of another release is not found, lest a page mix the two."""
        if of != digest or name not in files:
            raise NotFound("there is no such file in this release; reload the page")
        return content.answer(files[name], policy.STATIC)

    return pages


def _add_page(pages: Blueprint, page: shells.Page, rendered: content.Content) -> None:
    def view(_caller: Caller | None, query: dict[str, Any], **_names: str) -> Response:
        return content.answer(rendered, policy.PAGE)

    view.__doc__ = f"{page.title}."
    for number, path in enumerate(page.paths):
        view.__name__ = f"{page.name}_{number}" if number else page.name
        route(pages, "GET", path, PAGE, query=inputs.ANYTHING, gives="text/html")(view)


def nothing_here() -> Response | None:
    """The page for a path that nothing has, if a page was asked for; None for other clients."""
    accepts = request.accept_mimetypes.best_match(["application/json", "text/html"])
    is_data = f"{request.path}/".startswith(("/api/", f"{shells.STATIC}/"))
    if is_data or request.method not in ("GET", "HEAD") or accepts != "text/html":
        return None
    page = shells.render()[shells.NOTHING]
    headers = policy.PAGE | {"Cache-Control": "no-store", "Vary": "Accept"}
    return Response(page.body, 404, headers, content_type=page.media_type)
