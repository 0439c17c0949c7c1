"""`--if-not-exists`: a create whose name is taken succeeds if what has the name is what was asked for."""

from __future__ import annotations

from svc.client import transport
from svc.client.requests import checked
from svc.errors import NameTaken

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from svc.commandline.arguments import Arguments

    Compare = Callable[[Any], list[str]]  # what of a record is not as asked for, in words

DIFFERENCES_NAMED = 6


def find(
    args: Arguments, answer: transport.Answer, path: str, name: str, compare: Compare
) -> transport.Answer | None:
    """What has the name already, after a create that was refused for it; None for every other answer.

    `path` is the record's, without its prefix /api. Raises NameTaken for something else of that name.
    """
    if answer.ok or not args.if_not_exists:
        return None
    if not isinstance(answer.error(), NameTaken):
        return None
    found = checked(args, transport.request("GET", f"/api/{path}"))
    if differences := compare(found.json()):
        named = ", ".join(differences[:DIFFERENCES_NAMED])
        noun = "ws" if path.startswith("workspaces/") else "template"
        raise NameTaken(
            f"{name} exists, and is not what was asked for: {named} differ{'s' * (len(differences) == 1)}",
            hint=f"svc {noun} get {name}",
        )
    return found


def differences(requested: Any, present: Any, at: str = "") -> list[str]:
    """The places where a record has not what was asked for; what was not asked for may be anything."""
    if isinstance(requested, dict) and isinstance(present, dict):
        return [
            found
            for key, value in requested.items()
            for found in differences(value, present.get(key), f"{at}.{key}" if at else key)
        ]
    if isinstance(requested, list) and isinstance(present, list):
        if len(requested) != len(present):
            return [at]
        pairs = zip(requested, present, strict=True)
        return list(dict.fromkeys(at for one, other in pairs if differences(one, other)))
    return [] if requested == present and isinstance(requested, bool) == isinstance(present, bool) else [at]
