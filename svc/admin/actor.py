"""Audit rows of `svc admin`: who runs the command, and its outcome."""

from __future__ import annotations

import os
import secrets
from typing import Any

from svc.actions.table import Action
from svc.domain.audit import audit
from svc.host.owner import Owner

OPERATOR = Owner(os.getuid(), os.getgid()).name  # at import, before the process becomes the database's owner
REQUEST_ID = "admin-" + secrets.token_hex(8)  # the same for all rows of one command


def note(action: Action, target: str, outcome: str, **detail: Any) -> None:
    """Append one row; its address is the user that sudo reports, a hint and no proof."""
    person = os.environ.get("SUDO_USER", "")
    address = f"sudo:{person[:32]}" if person and person.isprintable() else ""
    actor = audit.Actor(None, OPERATOR, "admin", address)
    audit.append(actor, action, target, outcome, REQUEST_ID, detail)
