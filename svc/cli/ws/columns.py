"""The columns of a workspace, and the path of the named one."""

from __future__ import annotations

from svc.client.requests import quote
from svc.commandline.output import note, pick, plain, state, when
from svc.errors import NotFound

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.commandline.arguments import Arguments

NO_NETWORK = "none"  # as the options say it
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
OWNER_COLUMN = ("OWNER", "owner", plain)


def path(args: Arguments, below: str = "") -> str:
    """The URL path of the workspace named on the command line, or of something below it."""
    return path_of(args.workspace, below)


def path_of(name: str, below: str = "") -> str:
    """The URL path of a workspace, or of something below it."""
    return f"/api/workspaces/{quote(name)}{below}"


def as_hint(error: NotFound, verb: str) -> NotFound:
    """The error, whose hint at another user's workspace names this verb in place of `get`."""
    if " --owner " in error.hint:
        error.hint = error.hint.replace("svc ws get ", f"svc ws {verb} ", 1)
    return error


def note_limits(record: Any) -> None:
    """Print a note with the limits of a workspace that this host cannot apply."""
    missing = pick(record, "limits_missing")
    if isinstance(missing, list) and missing:
        note(f"this host cannot apply: {plain(missing, True)}; for an administrator: sudo svc admin doctor")
