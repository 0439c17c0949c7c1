"""`svc ws capacity`: "current quota and free headroom", and who holds the GPUs."""

from __future__ import annotations

from svc.cli import output
from svc.cli.arguments import Arguments, Command
from svc.cli.client import ask, show_raw
from svc.cli.output import pick, plain, size, state, text

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

# how it is called, its key, what the host has of it, how an amount is shown
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
    return plain([_holder(one) for one in value], human) if isinstance(value, list) else ""


def _holder(one: Any) -> str:
    name = text(one, "workspace") or text(one, "owner")
    return f"{name} (outside svc)" if pick(one, "outside") is True else name


GPUS = (
    ("GPU", "uuid", plain),
    ("MODEL", "model", plain),
    ("VRAM", "vram_bytes", size),
    ("STATE", "state", state),
    ("MODE", "mode", plain),
    ("HELD BY", "holders", _holders),
)


def capacity(args: Arguments) -> int:
    """Show your quota, what you use of it and have left, what the host has, and who holds its GPUs.

    In a pipe: a line for each resource with what is used, the quota, what is left
    (both empty where there is no end) and what the host has, in cores and bytes;
    then one for each GPU: uuid, model, memory, state (free, leased, shared, busy,
    lost, unusable), mode, holders. Your own workspaces have their names, of others
    the owner's; what runs outside svc is said so. Nothing is reserved.
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


CAPACITY = Command("capacity", capacity, examples="svc ws capacity\nsvc ws capacity --json")
