"""The columns of a workspace, shared by the commands that print one."""

from __future__ import annotations

from svc.cli.output import plain, when

COLUMNS = (
    ("ID", "id", plain),
    ("NAME", "name", plain),
    ("STATUS", "status", plain),
    ("TEMPLATE", "template.name", plain),
    ("IMAGE", "image_status", plain),
    ("GPUS", "resources.gpu_count", plain),
    ("SINCE", "status_since", when),
    ("REASON", "status_reason", plain),
)
