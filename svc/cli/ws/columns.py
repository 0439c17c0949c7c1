"""The columns of a workspace, shared by the commands that print one."""

from __future__ import annotations

from svc.cli.output import note, pick, plain, state, when

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

COLUMNS = (
    ("ID", "id", plain),
    ("NAME", "name", plain),
    ("STATUS", "status", state),
    ("TEMPLATE", "template.name", plain),
    ("IMAGE", "image_status", state),
    ("GPUS", "resources.gpu_count", plain),
    ("SINCE", "status_since", when),
    ("REASON", "status_reason", plain),
)


def note_limits(record: Any) -> None:
    """Say on standard error which limits of a workspace this host does not keep."""
    missing = pick(record, "limits_missing")
    if isinstance(missing, list) and missing:
        note(f"this host cannot apply: {plain(missing, True)}; svc admin doctor says why")
