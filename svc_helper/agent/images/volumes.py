"""Anonymous volumes, of an image's VOLUME, that no container has: Podman keeps them unless told otherwise."""

from __future__ import annotations

import re

from svc_helper.agent.calls import Call
from svc_helper.agent.podman.http import not_understood
from svc_helper.agent.podman.podman import LIBPOD, Podman

_UNUSED = "%7B%22dangling%22%3A%5B%22true%22%5D%7D"  # {"dangling":["true"]}
_NAME = re.compile("[0-9a-f]{64}")


def unused(podman: Podman, call: Call) -> list[str]:
    """The names of the volumes that have no name of a person's and no container."""
    untrusted_rows = podman.ask(call, "GET", f"/volumes/json?filters={_UNUSED}")
    if not isinstance(untrusted_rows, list):
        raise not_understood()
    anonymous = (row for row in untrusted_rows if isinstance(row, dict) and row.get("Anonymous") is True)
    return [name for row in anonymous if _NAME.fullmatch(name := str(row.get("Name")))]


def prune(podman: Podman, call: Call) -> int:
    """Remove them, never by force; their number. One that a container has got meanwhile stays."""
    path = f"{LIBPOD}/volumes"
    replies = [podman.request(call, "DELETE", f"{path}/{name}") for name in unused(podman, call)]
    return sum(reply.status == 204 for reply in replies)
