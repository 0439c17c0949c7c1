"""Login tokens of running launchers, for their owner alone: found by the owner's agent when somebody asks.

A template says where a token is: by a pattern in the launcher's output, or in a file inside. It
goes into the reply and nowhere else: not into the database, the audit, a log or an event.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from svc.domain import untrusted
from svc.domain.principal import Caller
from svc.domain.workspaces.states import Workspace
from svc.errors import SvcError
from svc_helper.wire.limits import PLACEHOLDER

_TOKEN = re.compile(r"[!-~]{1,256}")


def find(caller: Caller, workspace: Workspace, launcher: dict[str, Any]) -> str | None:
    """The token of a launcher that runs; None where it has none, or none yet.

    Raises what an agent raises that does not reply; any other failure has no token.
    """
    where = launcher.get("token")
    if where is None:
        return None
    arguments = {"id": workspace.id, "name": launcher["name"]}
    arguments |= {key: where.get(key) for key in ("file", "pattern")}
    try:
        token = untrusted.find_text(caller.ask("launcher.token", arguments), "token", 256)
    except SvcError as error:
        if isinstance(error, untrusted.SILENT):
            raise
        return None
    return token if token is not None and _TOKEN.fullmatch(token) else None


def link(launcher: dict[str, Any], url: str | None, token: str | None) -> str | None:
    """The URL to open, token included; None where the template names no path, or the token is missing."""
    path = (launcher.get("token") or {}).get("link")
    if path is None or url is None or token is None:
        return None
    return url + str(path).replace(PLACEHOLDER, quote(token, safe=""))
