"""`svc __complete KIND TYPED`: what the shells' completion functions offer, one candidate a line.

It runs at every press of TAB, in the middle of a command line: it is quick, gives up
after a second, prints no error and always ends with 0. A candidate is printable and
begins with what was typed; quoting it is the shell's part (packaging/completion).
"""

from __future__ import annotations

import sys
import time

from svc.client import transport
from svc.client.requests import items, query, quote
from svc.errors import BadAnswer, SvcError
from svc.limits import LIST_LIMIT_MAX
from svc.settings import Settings
from svc_helper.wire.limits import FILES_LISTED_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

WAIT_S = 1.0  # for all requests together: whoever pressed TAB waits for it
PATHS = {
    "workspace": "/api/workspaces",
    "template": "/api/templates",
    "token": "/api/tokens",
    "operation": "/api/operations",
}
BY_ID = ("operation",)  # what has no name


def run(argv: list[str]) -> int:
    """Print the candidates of a kind; nothing where the service gives none in time."""
    kind, typed = [*argv, "", ""][:2]
    candidates: Callable[[str, str], Iterator[str]] = OTHERS.get(kind, _names)
    try:
        found = [each for each in candidates(kind, typed) if each.startswith(typed) and each.isprintable()]
    except SvcError:
        return 0
    sys.stdout.write("".join(f"{each}\n" for each in found if not each.startswith("-")))
    return 0


def _names(kind: str, _typed: str) -> Iterator[str]:
    """The names of the caller's objects of a kind, and those that the caller may use."""
    path, deadline = PATHS.get(kind), time.monotonic() + WAIT_S
    offset: int | None = 0 if path else None
    while offset is not None:
        page = _ask(f"{path}{query(limit=LIST_LIMIT_MAX, offset=offset or None)}", deadline)
        found = items(page)
        key = "id" if kind in BY_ID else "name"
        yield from (name for record in found if (name := _text(record, key)))
        following = page.get("next_offset")
        offset = following if found and isinstance(following, int) and following > offset else None


def _paths(_kind: str, typed: str) -> Iterator[str]:
    """The file roots, or the entries of the directory that is typed, directories with a slash.

    The roots are read from the settings: the service would have to ask the user's agent for them.
    """
    parent, slash, _ = typed.rpartition("/")
    if not slash:
        yield from (f"{root}/" for root in Settings().file_roots)
        return
    root, _, path = parent.partition("/")
    target = f"/api/fs/{quote(root)}/list{query(limit=FILES_LISTED_MAX, path=path)}"
    for entry in items(_ask(target, time.monotonic() + WAIT_S)):
        if (name := _text(entry, "name")) and entry.get("utf8") is not False:
            yield f"{parent}/{name}{'/' if entry.get('type') == 'directory' else ''}"


def _terminals(_kind: str, _typed: str) -> Iterator[str]:
    """The terminals of the caller's running workspaces: which one is meant is not known here."""
    deadline = time.monotonic() + WAIT_S
    for workspace in items(_ask(f"{PATHS['workspace']}{query(limit=LIST_LIMIT_MAX)}", deadline)):
        if _text(workspace, "status") == "running":
            page = _ask(f"{PATHS['workspace']}/{quote(_text(workspace, 'id'))}/terminals", deadline)
            yield from (_text(record, "id") for record in items(page))


def _ask(path: str, deadline: float) -> dict[str, Any]:
    """The answer to a GET; raises SvcError, also for an answer that is late."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise BadAnswer("the service's answer takes too long")
    answer = transport.request("GET", path, wait_s=left_s)
    if not answer.ok:
        raise answer.error()
    return answer.json()


def _text(record: object, key: str) -> str:
    """A text of a record, which is untrusted; empty if it is none."""
    value = record.get(key) if isinstance(record, dict) else None
    return value if isinstance(value, str) else ""


OTHERS = {"path": _paths, "terminal": _terminals}  # what is no plain list
