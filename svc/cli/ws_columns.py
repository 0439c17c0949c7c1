"""The columns of a workspace, shared by the commands that print one."""

from __future__ import annotations

from svc.cli.output import plain, state, when

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
