"""Personal access tokens; a token never manages tokens."""

from __future__ import annotations

from flask import Blueprint

from svc.web.access import ACCOUNT, UNIX, Access, reserve

blueprint = Blueprint("tokens", __name__)

reserve(blueprint, "GET", "/tokens", Access(ACCOUNT), "The list of tokens")
reserve(blueprint, "POST", "/tokens", Access(ACCOUNT, doors=(UNIX,), credential=True), "Creating a token")
reserve(blueprint, "DELETE", "/tokens/<ref>", Access(ACCOUNT), "Revoking a token")
