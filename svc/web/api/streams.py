"""What answers with a stream; `svc api` is refused by endpoint."""

from __future__ import annotations

from flask import Blueprint

from svc.web.access import ACCOUNT, MEMBER, Access, reserve

blueprint = Blueprint("streams", __name__)

OWN = Access(MEMBER, pat=True, stream=True)
# The owner's alone, as exec is: an administrator is told so, not root_not_allowed.
REACHES_IN = Access(ACCOUNT, pat=True, stream=True)

reserve(blueprint, "GET", "/events", Access(ACCOUNT, pat=True, stream=True), "The event stream")
reserve(blueprint, "GET", "/workspaces/<ref>/monitor/stream", OWN, "The live monitor")
reserve(blueprint, "GET", "/workspaces/<ref>/logs/stream", OWN, "Followed logs")
reserve(blueprint, "GET", "/workspaces/<ref>/terminal", REACHES_IN, "The terminal")
