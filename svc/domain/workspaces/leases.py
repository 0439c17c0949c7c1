"""Leases: which workspace holds which GPU, from its start to its confirmed stop.

"A lease per GPU uuid in the database": taken in the transaction that makes the
row `starting`, so that check and lease are one; ended by the trigger of the
transition to `stopped`, by release() where a failed one was seen not to run,
and with the row. An exclusive holder is alone; those who share say so.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from svc.db.connect import database, write
from svc.db.ids import now
from svc.domain.gpus import cdi, hardware
from svc.domain.gpus import use as gpu_use
from svc.domain.templates import rows as template_rows
from svc.errors import GpuUnavailable

if TYPE_CHECKING:
    from svc.domain.gpus.gpus import Gpu, Hardware
    from svc.domain.gpus.use import Use
    from svc.domain.workspaces.states import Workspace

EXCLUSIVE, SHARED = "exclusive", "shared"


class Offer(NamedTuple):
    """The GPUs as they were seen before a transaction, in which nobody asks a driver."""

    hardware: Hardware
    cdi: cdi.State
    outside: dict[str, list[Use]]


class Holder(NamedTuple):
    """A workspace that has a GPU leased; `mode` is exclusive or shared."""

    workspace_id: str
    workspace: str
    owner_id: int
    owner: str
    mode: str


def look() -> Offer:
    """What this host has to hand out now; asks the driver, so never inside write()."""
    seen = hardware.inventory()
    return Offer(seen, cdi.state(seen), gpu_use.outside() if seen.gpus else {})


def holders() -> dict[str, list[Holder]]:
    """Who has which GPU leased, by uuid; the longest holder first."""
    found: dict[str, list[Holder]] = {}
    rows = database.execute_sql(
        "SELECT l.gpu, w.id, w.name, u.id, u.name, l.mode FROM gpu_leases l"
        " JOIN workspaces w ON w.id = l.workspace_id JOIN users u ON u.id = w.owner_id"
        " ORDER BY l.gpu, l.taken_at, w.id"
    )
    for gpu, *holder in rows:
        found.setdefault(gpu, []).append(Holder(*holder))
    return found


def of(workspace_id: str) -> list[str]:
    """The uuids that a workspace has leased."""
    rows = database.execute_sql(
        "SELECT gpu FROM gpu_leases WHERE workspace_id = ? ORDER BY gpu", (workspace_id,)
    )
    return [row[0] for row in rows]


def any_held() -> bool:
    """Whether any GPU is leased."""
    return bool(database.execute_sql("SELECT EXISTS (SELECT 1 FROM gpu_leases)").fetchone()[0])


def release(workspace_id: str) -> None:
    """End a workspace's leases; only after its container was seen not to run."""
    with write():
        database.execute_sql("DELETE FROM gpu_leases WHERE workspace_id = ?", (workspace_id,))


def available(offer: Offer, mode: str, needs: dict[str, Any], without: str = "") -> list[Gpu]:
    """The GPUs that a start may have; those first that have few holders, then little memory.

    `needs` are a template's; what the workspace `without` (an id) holds counts as free.
    """
    held = holders()
    free = []
    for place, gpu in enumerate(offer.hardware.gpus):
        others = [holder for holder in held.get(gpu.uuid, []) if holder.workspace_id != without]
        joins = mode == SHARED and all(holder.mode == SHARED for holder in others)
        if (
            gpu.leasable
            and hardware.fits(gpu, needs)
            and gpu.uuid in offer.cdi.names
            and gpu.uuid not in offer.outside
            and (joins or not others)
        ):
            free.append((len(others), gpu.vram_bytes or 0, place, gpu))
    return [gpu for *_, gpu in sorted(free, key=lambda one: one[:3])]


def take(workspace: Workspace, offer: Offer) -> list[str]:
    """Lease what a workspace asks for; returns the uuids. Raises GpuUnavailable, naming the holders.

    Inside the write() that has made its row `starting`; what an earlier run of it had is given up.
    """
    release(workspace.id)
    if not workspace.gpu_count:
        return []
    template = template_rows.at_revision(workspace.template_id, workspace.template_revision)
    needs = template.spec["gpu"]
    newest, least = offer.hardware.max_cuda, needs.get("min_cuda")
    free = available(offer, workspace.gpu_mode, needs)
    if newest and least and hardware.version(newest) < hardware.version(least):
        raise _refusal(
            workspace, offer, 0, f"needs CUDA {least}, and this host's driver supports up to {newest}"
        )
    if len(free) < workspace.gpu_count:
        raise _too_few(workspace, offer, needs, len(free))
    taken = sorted(gpu.uuid for gpu in free[: workspace.gpu_count])
    at = now()
    for gpu in taken:
        database.execute_sql(
            "INSERT INTO gpu_leases (gpu, workspace_id, mode, taken_at) VALUES (?, ?, ?, ?)",
            (gpu, workspace.id, workspace.gpu_mode, at),
        )
    return taken


# --- what is refused ---------------------------------------------------------------------


def _too_few(workspace: Workspace, offer: Offer, needs: dict[str, Any], free: int) -> GpuUnavailable:
    there = [gpu for gpu in offer.hardware.gpus if gpu.leasable]
    fit = [gpu for gpu in there if hardware.fits(gpu, needs)]
    nameless = [gpu for gpu in fit if gpu.uuid not in offer.cdi.names]
    if not there:
        return _refusal(workspace, offer, 0, "and this host has no GPU that it could have")
    if len(fit) < workspace.gpu_count:
        like = "" if len(fit) == len(there) else " like the template needs"
        return _refusal(workspace, offer, free, f"and this host has {len(fit)}{like}", len(fit))
    if len(fit) - len(nameless) < workspace.gpu_count:
        return _refusal(workspace, offer, free, f"but {offer.cdi.problem}", hint=offer.cdi.remedy or "")
    words = "none is free" if not free else f"{free} {'is' if free == 1 else 'are'} free"
    return _refusal(workspace, offer, free, f"and {words}", hint=_way_out(workspace, offer, needs))


def _way_out(workspace: Workspace, offer: Offer, needs: dict[str, Any]) -> str:
    """The command that gets it its GPUs now, where there is one."""
    could_share = workspace.gpu_mode == EXCLUSIVE and needs.get("allow_shared")
    if could_share and len(available(offer, SHARED, needs)) >= workspace.gpu_count:
        return _edit(workspace, {"gpu_mode": SHARED})
    for gpu_holders in holders().values():
        for holder in gpu_holders:
            if holder.owner_id == workspace.owner_id:
                return f"svc ws stop {holder.workspace}"
    return "svc ws capacity"


def _refusal(
    workspace: Workspace, offer: Offer, free: int, why: str, possible: int = 0, hint: str = ""
) -> GpuUnavailable:
    """`possible`: how many it could ever have here; without a hint that is what an edit should ask for."""
    count = "1 GPU" if workspace.gpu_count == 1 else f"{workspace.gpu_count} GPUs"
    mine = "" if workspace.gpu_mode == EXCLUSIVE else f" in {SHARED} mode"
    verb = "" if why.startswith("needs") else f"asks for {count}{mine} "
    return GpuUnavailable(
        f"{workspace.name} {verb}{why}",
        hint=hint or _edit(workspace, {"gpu_count": possible}),
        details={"requested": workspace.gpu_count, "free": free, "holders": _shown(offer)},
    )


def _edit(workspace: Workspace, wanted: dict[str, Any]) -> str:
    return f"svc ws edit {workspace.name} --file - <<< '{json.dumps({'resources': wanted})}'"


def _shown(offer: Offer) -> list[dict[str, Any]]:
    """Who has the GPUs, as the details of a refusal: a lease's owner, or a Linux user outside svc."""
    shown = [
        {"gpu": gpu, "owner": holder.owner, "mode": holder.mode, "outside": False}
        for gpu, several in holders().items()
        for holder in several
    ]
    for gpu, uses in offer.outside.items():
        users = dict.fromkeys(use.user for use in uses)
        shown += [{"gpu": gpu, "owner": user, "mode": None, "outside": True} for user in users]
    return shown
