"""Where an app is in the browser: every port of every workspace has an origin of its own.

Its label is `<port>-<id>`, such as `lab-f7d3k2qa` for the port `lab` of `ws-f7d3k2qa`. It is parsed from its
end, since a port's name may have hyphens; an id is never given again, and so no label is. A rename of the
workspace keeps it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from svc_helper.wire.limits import SLUG

LOCAL = "localhost"  # names below it are this host's in every browser, without DNS
LABEL_MAX = 63  # of a name in DNS
NAME_MAX = LABEL_MAX - len("-f7d3k2qa") - 1  # characters of a port that has an origin; one is left for later

_LABEL = re.compile(rf"({SLUG})-([0-9a-hjkmnp-tv-z]{{8}})")
_HOST = re.compile(r"([a-z0-9.-]{1,253})(:[1-9][0-9]{0,4})?", re.IGNORECASE)


class App(NamedTuple):
    """A port of a workspace, by its name and the workspace's id."""

    port: str
    workspace: str

    @property
    def label(self) -> str:
        """Its name in DNS; empty for a port whose name is too long for one."""
        return f"{self.port}-{self.workspace.removeprefix('ws-')}" if len(self.port) <= NAME_MAX else ""


class Place(NamedTuple):
    """An app at an address that a browser has asked for."""

    app: App
    origin: str  # as the browser has it


def parse(label: str) -> App | None:
    """The app of a label; None for one that no app can have."""
    found = _LABEL.fullmatch(label)
    return App(found[1], f"ws-{found[2]}") if found and len(found[1]) <= NAME_MAX else None


def find(host: str, parent: str, scheme: str) -> Place | None:
    """The app that a Host header names, one label below `parent`; None for every other one.

    Names are compared whole. The port is the browser's: whoever comes by ssh may have another one there.
    """
    found = _HOST.fullmatch(host)
    if not found:
        return None
    label, _, rest = found[1].lower().partition(".")
    app = parse(label) if rest == parent.lower() else None
    usual = {"https": ":443", "http": ":80"}[scheme]
    port = "" if found[2] in (None, usual) else found[2]
    return Place(app, f"{scheme}://{label}.{rest}{port}") if app else None


def origin(app: App, parent: str, scheme: str, port: int) -> str | None:
    """The address of an app below `parent`; None if its name is too long for one."""
    if not app.label:
        return None
    usual = {"https": 443, "http": 80}[scheme]
    return f"{scheme}://{app.label}.{parent}" + ("" if port == usual else f":{port}")
