"""`svc ws capacity`: "current quota and free headroom", and the holders of the GPUs."""

from __future__ import annotations

from svc.cli import output
from svc.cli.arguments import Arguments, Command
from svc.cli.client import ask, show_raw
from svc.cli.output import pick, plain, size, state, text

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

# name, key, path of the host's amount, formatter
RESOURCES = (
    ("workspaces", "workspaces", "", plain),
    ("running", "running", "", plain),
    ("gpus", "gpus", "host.gpus", plain),
    ("cpus", "cpu", "host.cpus", plain),
    ("memory", "memory_bytes", "host.memory_bytes", size),
    ("images", "image_bytes", "", size),
)
AMOUNTS = (
    ("RESOURCE", "name", plain),
    ("USED", "used", plain),
    ("QUOTA", "quota", plain),
    ("LEFT", "left", plain),
    ("HOST", "host", plain),
)


def _holders(value: Any, human: bool) -> str:
    return plain([_holder(holder) for holder in value], human) if isinstance(value, list) else ""


def _holder(holder: Any) -> str:
    name = text(holder, "workspace") or text(holder, "owner")
    return f"{name} (outside svc)" if pick(holder, "outside") is True else name


GPUS = (
    ("GPU", "uuid", plain),
    ("MODEL", "model", plain),
    ("VRAM", "vram_bytes", size),
    ("STATE", "state", state),
    ("MODE", "mode", plain),
    ("HELD BY", "holders", _holders),
)


def capacity(args: Arguments) -> int:
    """Show your quota with its used and remaining part, the host's resources, and the holders of its GPUs.

    In a pipe: a line per resource with the used amount, the quota, the rest (both
    empty if unlimited) and the host's amount, in cores and bytes; then one per
    GPU: uuid, model, memory, state (free, leased, shared, busy, lost, unusable),
    mode, holders. A holder is the name of your own workspace or the owner of
    another's; processes outside svc are marked. Nothing is reserved.
    """
    answer = ask(args, "GET", "/api/workspaces/capacity")
    if args.json:
        return show_raw(answer)
    found = answer.json()
    human = output.on_terminal()
    if human:
        print(output.visible(f"Your quota is {text(found, 'quota.name')}."))
    output.table(AMOUNTS, [_amounts(found, row, human) for row in RESOURCES], "")
    if human:
        print()
    gpus = found.get("gpus")
    output.table(GPUS, gpus if isinstance(gpus, list) else [], "This host has no GPUs.")
    return 0


def _amounts(found: Any, row: tuple[str, str, str, Any], human: bool) -> dict[str, str]:
    name, key, of_host, show = row
    quota, left = pick(found, f"quota.max_{key}"), pick(found, f"remaining.{key}")
    return {
        "name": name,
        "used": show(pick(found, f"used.{key}"), human),
        "quota": "unlimited" if human and quota is None else show(quota, human),
        "left": "unlimited" if human and left is None else show(left, human),
        "host": show(pick(found, of_host), human) if of_host else "",
    }


COMMANDS = (Command("capacity", capacity, examples="svc ws capacity\nsvc ws capacity --json"),)
