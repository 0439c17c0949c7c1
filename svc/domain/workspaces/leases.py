"""Leases: which workspace holds which GPU, from its start to its confirmed stop.

"A lease per GPU uuid in the database": taken in the transaction that makes the
row `starting`, so that check and lease are one; ended by release() when the
workspace is confirmed stopped, by a trigger whenever a row becomes `stopped`, and
with the row. A GPU has one exclusive holder, or several that share it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from svc.actions.commands import command
from svc.actions.table import WORKSPACE_STOP
from svc.db.connect import database, write
from svc.domain.gpus import cdi, hardware
from svc.domain.gpus import use as gpu_use
from svc.domain.gpus.gpus import Gpu, Hardware
from svc.domain.gpus.use import Use
from svc.domain.templates.rows import Template
from svc.domain.workspaces.states import Workspace
from svc.errors import GpuUnavailable
from svc.host.ids import now

EXCLUSIVE, SHARED = "exclusive", "shared"


class Offer(NamedTuple):
    """The GPUs as seen before a transaction, during which no call goes to the driver."""

    hardware: Hardware
    cdi: cdi.State
    outside: dict[str, list[Use]]

    @property
    def leasable(self) -> list[Gpu]:
        """The GPUs that programs can run on: in MIG mode the instances."""
        return [gpu for gpu in self.hardware.gpus if gpu.leasable]

    def place(self, gpu: Gpu) -> int | None:
        """The GPU's place in the host's list, as in `svc servers hardware`; None for a lost one."""
        return next((place for place, one in enumerate(self.hardware.gpus) if one.uuid == gpu.uuid), None)

    def has_cuda(self, needs: dict[str, Any]) -> bool:
        """Whether the driver supports the CUDA version that a template needs, where both are known."""
        newest, least = self.hardware.max_cuda, needs.get("min_cuda")
        return not (newest and least and hardware.version(newest) < hardware.version(least))

    def usable(self, needs: dict[str, Any]) -> list[Gpu]:
        """The leasable GPUs that meet a template's needs and that a container can get, in use or not."""
        fit = [gpu for gpu in self.leasable if hardware.fits(gpu, needs) and gpu.uuid in self.cdi.names]
        return fit if self.has_cuda(needs) else []


class Asking(Protocol):
    """A workspace that asks for GPUs, created or not."""

    @property
    def owner_id(self) -> int:
        """As in a workspace's row, like the others."""

    @property
    def name(self) -> str:
        """The owner's name for it."""

    @property
    def gpu_count(self) -> int:
        """The number of GPUs."""

    @property
    def gpu_mode(self) -> str:
        """Whether it shares them."""

    @property
    def template(self) -> Template:
        """The template at the workspace's revision."""

    def command_with(self, resources: dict[str, Any]) -> str:
        """The command that gives it other resources."""


class Holder(NamedTuple):
    """A workspace that holds a lease; `mode` is exclusive or shared."""

    workspace_id: str
    workspace: str
    owner_id: int
    owner: str
    mode: str
    since: str


_HOLDERS = (
    "SELECT l.gpu, w.id, w.name, u.id, u.name, l.mode, l.taken_at FROM gpu_leases l"
    " JOIN workspaces w ON w.id = l.workspace_id JOIN users u ON u.id = w.owner_id"
)


def offer() -> Offer:
    """The host's GPUs now; asks the driver, so never inside write()."""
    inventory = hardware.inventory()
    return Offer(inventory, cdi.state(inventory), gpu_use.outside() if inventory.gpus else {})


def holders() -> dict[str, list[Holder]]:
    """The holders of each leased GPU, by uuid; the longest holder first."""
    found: dict[str, list[Holder]] = {}
    for gpu, *holder in database.execute_sql(f"{_HOLDERS} ORDER BY l.gpu, l.taken_at, w.id"):
        found.setdefault(gpu, []).append(Holder(*holder))
    return found


def of(workspace_id: str) -> list[str]:
    """The uuids of the GPUs that a workspace holds."""
    rows = database.execute_sql(
        "SELECT gpu FROM gpu_leases WHERE workspace_id = ? ORDER BY gpu", (workspace_id,)
    )
    return [row[0] for row in rows]


def any_held() -> bool:
    """Whether any GPU is leased."""
    return bool(database.execute_sql("SELECT EXISTS (SELECT 1 FROM gpu_leases)").fetchone()[0])


def release(workspace_id: str) -> None:
    """End a workspace's leases; only transitions.py may, once no container of it runs."""
    with write():
        database.execute_sql("DELETE FROM gpu_leases WHERE workspace_id = ?", (workspace_id,))


def available(offer: Offer, mode: str, needs: dict[str, Any]) -> list[Gpu]:
    """The GPUs that a start may take: those with the fewest holders first, then the least memory.

    `needs` are the template's.
    """
    held = holders()
    free = []
    for place, gpu in enumerate(offer.usable(needs)):
        others = held.get(gpu.uuid, [])
        joins = mode == SHARED and all(holder.mode == SHARED for holder in others)
        if gpu.uuid not in offer.outside and (joins or not others):
            free.append((len(others), gpu.vram_bytes or 0, place, gpu))
    return [gpu for *_, gpu in sorted(free, key=lambda one: one[:3])]


def take(workspace: Workspace, offer: Offer) -> list[str]:
    """Lease the GPUs of a workspace that starts; returns the uuids. Raises GpuUnavailable with the holders.

    Called in the write() that made its row `starting`; leases of an earlier run end.
    """
    release(workspace.id)
    taken = sorted(gpu.uuid for gpu in choose(workspace, offer))
    at = now()
    for gpu in taken:
        database.execute_sql(
            "INSERT INTO gpu_leases (gpu, workspace_id, mode, taken_at) VALUES (?, ?, ?, ?)",
            (gpu, workspace.id, workspace.gpu_mode, at),
        )
    return taken


def choose(workspace: Asking, offer: Offer) -> list[Gpu]:
    """The GPUs that a start would lease now; raises GpuUnavailable with the holders."""
    if not workspace.gpu_count:
        return []
    needs = workspace.template.spec["gpu"]
    if not offer.has_cuda(needs):
        newest = offer.hardware.max_cuda
        why = f"needs CUDA {needs['min_cuda']}, and this host's driver supports up to {newest}"
        raise _refusal(workspace, offer, 0, why)
    free = available(offer, workspace.gpu_mode, needs)
    if len(free) < workspace.gpu_count:
        raise _too_few(workspace, offer, needs, len(free))
    return free[: workspace.gpu_count]


def keep(workspace: Workspace, offer: Offer) -> list[str]:
    """The GPUs that a workspace that starts again holds, while they can be used; else as take().

    Called in the write() that made its row `starting`.
    """
    held = of(workspace.id)
    usable = {gpu.uuid for gpu in offer.usable(workspace.template.spec["gpu"])}
    return held if len(held) == workspace.gpu_count and usable.issuperset(held) else take(workspace, offer)


# --- what is refused ---------------------------------------------------------------------


def _too_few(workspace: Asking, offer: Offer, needs: dict[str, Any], free: int) -> GpuUnavailable:
    leasable = offer.leasable
    fit = [gpu for gpu in leasable if hardware.fits(gpu, needs)]
    if offer.hardware.unread:
        return _refusal(workspace, offer, 0, f"but {offer.cdi.problem}", hint=offer.cdi.remedy or "")
    if not leasable:
        return _refusal(workspace, offer, 0, "and this host has no GPU that it could have")
    if len(fit) < workspace.gpu_count:
        like = "" if len(fit) == len(leasable) else " like the template needs"
        return _refusal(workspace, offer, free, f"and this host has {len(fit)}{like}", len(fit))
    if len(offer.usable(needs)) < workspace.gpu_count:
        return _refusal(workspace, offer, free, f"but {offer.cdi.problem}", hint=offer.cdi.remedy or "")
    count = "none is free" if not free else f"{free} {'is' if free == 1 else 'are'} free"
    return _refusal(workspace, offer, free, f"and {count}", hint=_way_out(workspace, offer, needs))


def _way_out(workspace: Asking, offer: Offer, needs: dict[str, Any]) -> str:
    """The command after which the start succeeds, where there is one."""
    could_share = workspace.gpu_mode == EXCLUSIVE and needs.get("allow_shared")
    if could_share and len(available(offer, SHARED, needs)) >= workspace.gpu_count:
        return workspace.command_with({"gpu_mode": SHARED})
    own = (one for held in holders().values() for one in held if one.owner_id == workspace.owner_id)
    first = next(own, None)
    return command(WORKSPACE_STOP, ref=first.workspace) if first else "svc ws capacity"


def _refusal(
    workspace: Asking, offer: Offer, free: int, why: str, possible: int = 0, hint: str = ""
) -> GpuUnavailable:
    """The error; its default hint is an edit to `possible` GPUs, the most that this host has for it."""
    count = "1 GPU" if workspace.gpu_count == 1 else f"{workspace.gpu_count} GPUs"
    mine = "" if workspace.gpu_mode == EXCLUSIVE else f" in {SHARED} mode"
    verb = "" if why.startswith("needs") else f"asks for {count}{mine} "
    return GpuUnavailable(
        f"{workspace.name} {verb}{why}",
        hint=hint or workspace.command_with({"gpu_count": possible}),
        details={"requested": workspace.gpu_count, "free": free, "holders": _holders_of(offer)},
    )


def _holders_of(offer: Offer) -> list[dict[str, Any]]:
    """The holders of all GPUs for the details of an error: owners of leases, and Linux users outside svc."""
    found = [
        {"gpu": gpu, "owner": holder.owner, "mode": holder.mode, "outside": False}
        for gpu, several in holders().items()
        for holder in several
    ]
    for gpu, uses in offer.outside.items():
        users = dict.fromkeys(use.user for use in uses)
        found += [{"gpu": gpu, "owner": user, "mode": None, "outside": True} for user in users]
    return found
