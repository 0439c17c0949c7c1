"""Sessions of browsers: the TCP door only, "rejected on the host-local socket"."""

from __future__ import annotations

from flask import Blueprint

from svc.web.access import ACCOUNT, ANYONE, TCP, Access, reserve

blueprint = Blueprint("auth", __name__)

reserve(blueprint, "POST", "/auth/login", Access(ANYONE, doors=(TCP,)), "Password login")
reserve(blueprint, "POST", "/auth/logout", Access(ACCOUNT, doors=(TCP,)), "Logout")
reserve(blueprint, "GET", "/auth/session", Access(ACCOUNT, doors=(TCP,)), "The session at hand")
