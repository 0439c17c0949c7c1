"""`svc ws list --live`: what the running workspaces use now."""

from __future__ import annotations

import time

from svc.client.requests import ask, items, pages, show_raw
from svc.commandline import output
from svc.commandline.output import pick, plain, size, text
from svc.errors import UsageError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.commandline.arguments import Arguments

PATH = "/api/usage/workspaces"
AGAIN_S = 2.2  # until the service measures again: the use of a CPU needs two measurements


def percent(value: Any, human: bool) -> str:
    """A share in percent."""
    return f"{value}%" if human and isinstance(value, int | float) else plain(value, human)


def started(value: Any, human: bool) -> str:
    """The names of the launchers that run."""
    found = value if isinstance(value, list) else []
    return plain([text(one, "name") for one in found if text(one, "state") == "started"], human)


COLUMNS = (
    ("ID", "id", plain),
    ("NAME", "name", plain),
    ("CPU", "cpu_percent", percent),
    ("MEMORY", "memory_bytes", size),
    ("GPU", "gpu_percent", percent),
    ("GPU MEMORY", "gpu_memory_bytes", size),
    ("LAUNCHERS", "launchers", started),
)


def show(args: Arguments) -> int:
    """Print the use of the caller's running workspaces."""
    if args.owner is not None:
        raise UsageError("--live shows your own workspaces only", hint="svc ws list --help")
    answer = ask(args, "GET", PATH)
    if any(pick(one, "cpu_percent") is None for one in items(answer.json())):
        time.sleep(AGAIN_S)
        answer = ask(args, "GET", PATH)
    if args.json:
        return show_raw(answer)
    names = {
        text(record, "id"): text(record, "name")
        for page in pages(args, "/api/workspaces", status="running")
        for record in page["items"]
    }
    records = [one | {"name": names.get(text(one, "id"), "")} for one in items(answer.json())]
    output.listing(args, COLUMNS, records, "No workspace of yours is running.")
    return 0
