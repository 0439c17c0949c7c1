"""What the service says itself on an app's address: two pages, their files, and errors for programs.

The files are read when this module is imported, in the app parent: the process of apps opens none.
"""

from __future__ import annotations

import html
import json
from http import HTTPStatus
from pathlib import Path
from string import Template
from typing import NamedTuple

from svc.apps.addresses import App
from svc.apps.pair import Described, Refused

OWN = b"/.svc/"  # all paths below are the service's
ENTER, DESCRIBE, LEAVE = "/.svc/enter", "/.svc/describe", "/.svc/leave"
AGAIN_S = 2  # a page that waits for a program loads itself again

_FOLDER = Path(__file__).parent / "static"
_TOKENS = Path(__file__).parents[1] / "web/pages/static/tokens.css"  # the look of the service's pages
_ENTER = Template((_FOLDER / "enter.html").read_text())
_REFUSAL = Template((_FOLDER / "refusal.html").read_text())
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
_TITLES = {
    "app_sign_in": "Sign in to this app",
    "app_not_found": "No such app",
    "app_not_listening": "The program does not listen yet",
    "workspace_not_running": "The workspace does not run",
}


class Said(NamedTuple):
    """An answer of the service's own."""

    status: int
    fields: tuple[tuple[str, str], ...]
    body: bytes = b""


_HTML = (
    ("content-type", "text/html; charset=utf-8"),
    ("content-security-policy", _POLICY),
    ("cache-control", "no-store"),
    ("referrer-policy", "same-origin"),  # with `no-referrer` the form's Origin would be null
    ("x-content-type-options", "nosniff"),
    ("cross-origin-opener-policy", "same-origin"),
)
_JSON = (
    ("content-type", "application/json"),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
)


def _file(kind: str, *paths: Path) -> Said:
    fields = (
        ("content-type", f"{kind}; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("x-content-type-options", "nosniff"),
    )
    return Said(HTTPStatus.OK, fields, b"\n".join(path.read_bytes() for path in paths))


FILES = {
    "/.svc/page.css": _file("text/css", _TOKENS, _FOLDER / "page.css"),
    "/.svc/enter.js": _file("text/javascript", _FOLDER / "enter.js"),
}


def link_command(app: App) -> str:
    """The command on the host that makes a link to an app."""
    return f"svc ws open {app.workspace} {app.port} --link"


def entrance(app: App) -> Said:
    """The page to which a one-time link leads: it says whom the link signs in, and waits for a click."""
    return Said(HTTPStatus.OK, _HTML, _ENTER.substitute(command=link_command(app)).encode())


def described(app: App, found: Described) -> Said:
    """Whom a link signs in, for that page."""
    return Said(HTTPStatus.OK, _JSON, json.dumps(found._asdict() | {"port": app.port}).encode())


def entered(path: str, cookie: tuple[str, str]) -> Said:
    """Signed in: on to the app, with its cookie (name, value)."""
    name, value = cookie
    fields = (
        ("location", path if is_own_path(path) else "/"),
        ("set-cookie", f"{name}={value}; Path=/; Secure; HttpOnly; SameSite=Lax"),
        ("cache-control", "no-store"),
    )
    return Said(HTTPStatus.SEE_OTHER, fields)


def left(cookie: str) -> Said:
    """Signed out; the cookie of this name is of no more use."""
    gone = f"{cookie}=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0"
    return Said(HTTPStatus.NO_CONTENT, (("set-cookie", gone), ("cache-control", "no-store")))


def refusal(refused: Refused, app: App | None, *, as_page: bool) -> Said:
    """Why not: a page without a script for a tab, JSON for everything else."""
    hint = refused.hint or (_way_out(refused.code, app) if app else "")
    if as_page:
        waits = refused.code == "app_not_listening"
        values = {
            "title": _TITLES.get(refused.code, HTTPStatus(refused.status).phrase),
            "message": html.escape(f"{refused.message[:1].upper()}{refused.message[1:]}."),
            "hint": html.escape(hint),
            "refresh": f'\n<meta http-equiv="refresh" content="{AGAIN_S}">' if waits else "",
        }
        return Said(refused.status, _HTML, _REFUSAL.substitute(values).encode())
    error = {"code": refused.code, "message": refused.message} | ({"hint": hint} if hint else {})
    return Said(refused.status, _JSON, json.dumps({"error": error}).encode())


def _way_out(code: str, app: App) -> str:
    """The next command, on the host, for a refusal that names none; empty where there is none."""
    return {
        "app_sign_in": link_command(app),
        "app_not_found": "svc ws list",
        "app_not_listening": f"svc ws launchers {app.workspace}",
        "app_bad_response": f"svc ws logs {app.workspace}",
    }.get(code, "")


def is_own_path(path: str) -> bool:
    """Whether a path stays on the address: one `/`, and neither `/` nor `\\` behind it."""
    return path[:1] == "/" and path[1:2] not in ("/", "\\") and path.isascii() and path.isprintable()
