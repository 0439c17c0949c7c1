"""`svc ws capacity`: "current quota and free headroom", and the holders of the GPUs."""

from __future__ import annotations

from svc.client.requests import ask, show_raw
from svc.commandline import output
from svc.commandline.arguments import Arguments, Command
from svc.commandline.output import pick, plain, size, state, text, when

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
    owner, workspace = text(holder, "owner"), text(holder, "workspace")
    if pick(holder, "outside") is True:
        return f"{owner} (outside svc)"
    return workspace if workspace and pick(holder, "mine") is True else f"{owner}/{workspace}".rstrip("/")


def _since(value: Any, human: bool) -> str:
    """Since when the first lease is held."""
    first = value[0] if isinstance(value, list) and value else None
    return when(pick(first, "since"), human)


def _memory(value: Any) -> str:
    """Used and whole memory in one column for people."""
    used, whole = pick(value, "used_bytes"), pick(value, "vram_bytes")
    if used is None:
        return size(whole, True)
    amount, _, unit = size(used, True).partition(" ")
    of_all = size(whole, True)
    return f"{amount if of_all.endswith(unit) else f'{amount} {unit}'}/{of_all}"


def _percent(value: Any, human: bool) -> str:
    return f"{value}%" if type(value) is int else plain(value, human)


GPUS = (
    ("GPU", "uuid", plain),
    ("MODEL", "model", plain),
    ("VRAM", "vram_bytes", size),
    ("STATE", "state", state),
    ("MODE", "mode", plain),
    ("HELD BY", "holders", _holders),
    ("INDEX", "index", plain),
    ("USED", "used_bytes", size),
    ("USE", "use_percent", plain),
    ("SINCE", "holders", _since),
)
FOR_PEOPLE = (  # without the uuid, which `svc servers hardware` has: the index names a GPU as well
    ("GPU", "index", plain),
    ("MODEL", "model", plain),
    ("MEMORY", "memory", plain),
    ("USE", "use_percent", _percent),
    ("STATE", "state", state),
    ("HELD BY", "holders", _holders),
    ("SINCE", "holders", _since),
)


def capacity(args: Arguments) -> int:
    """Show your quota with its used and remaining part, the host's resources, and the holders of its GPUs.

    In a pipe: a line per resource with the used amount, the quota, the rest (both
    empty if unlimited) and the host's amount, in cores and bytes; then one per
    GPU: uuid, model, memory, state (free, leased, shared, busy, lost, unusable),
    mode, holders, index, used memory, use in percent, since when it is leased. A
    holder is the name of your own workspace or the owner of another's (for
    administrators OWNER/WORKSPACE); processes outside svc are marked. Nothing is
    reserved.
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
    gpus = gpus if isinstance(gpus, list) else []
    if human:
        gpus = [_for_people(gpu) for gpu in gpus]
    output.table(FOR_PEOPLE if human else GPUS, gpus, "This host has no GPUs.")
    return 0


def _for_people(gpu: Any) -> Any:
    """A GPU with its memory in one value; a lost one has no index and keeps its uuid."""
    index = pick(gpu, "index")
    more = {"memory": _memory(gpu), "index": pick(gpu, "uuid") if index is None else index}
    return gpu | more if isinstance(gpu, dict) else gpu


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
