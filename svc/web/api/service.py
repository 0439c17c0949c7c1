"""Health, version and the description of the API."""

from __future__ import annotations

import threading
import time
from functools import cache
from importlib import metadata
from typing import Any

import peewee
from flask import Blueprint, Response, current_app, g

from svc.db import migrate
from svc.db.connect import database
from svc.domain.principal import Caller
from svc.errors import SvcError
from svc.helper.helper import Helper
from svc.version import API_VERSION, commit
from svc.web import outputs
from svc.web.access import ACCOUNT, ANYONE, Access, route
from svc.web.schemas.service import Health, Version

blueprint = Blueprint("service", __name__)

BUILD = commit()  # at the start of the server: another build may be installed while it runs
PING_KEPT_S = 1.0  # anyone may request the health; the helper gets one ping a second at most


class _Ping:
    """The status of the helper, cached for PING_KEPT_S."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.at = -PING_KEPT_S
        self.status = ""

    def ask(self, helper: Helper, rid: str) -> str:
        """`ok`, or the code of the error."""
        with self.lock:
            if time.monotonic() - self.at >= PING_KEPT_S:
                self.status = _helper_status(helper, rid)
                self.at = time.monotonic()
            return self.status


def _helper_status(helper: Helper, rid: str) -> str:
    try:
        helper.call("helper.ping", "", {}, rid=rid, timeout_s=2)
    except SvcError as error:
        return error.code
    return "ok"


def _database_status() -> str:
    try:
        database.execute_sql("SELECT 1 FROM users LIMIT 1").fetchone()
    except (peewee.DatabaseError, peewee.InterfaceError):
        return "unavailable"
    return "ok"


_ping = _Ping()


@route(blueprint, "GET", "/health", Access(ANYONE, pat=True), answer=Health())
def health(_caller: Caller | None) -> Response:
    """Whether the service works; 503 when it does not."""
    db = _database_status()
    helper = _ping.ask(current_app.extensions["svc"]["helper"], g.rid)
    ok = db == helper == "ok"
    return outputs.response(
        {"status": "ok" if ok else "degraded", "db": db, "helper": helper}, 200 if ok else 503
    )


@route(blueprint, "GET", "/version", Access(ANYONE, pat=True), answer=Version())
def version_(_caller: Caller | None) -> dict[str, Any]:
    """The running version: release, commit, version of the API, newest migration."""
    return {"version": _release(), "commit": BUILD, "api": API_VERSION, "schema": migrate.latest()}


@cache
def _release() -> str:
    try:
        return metadata.version("svc")
    except metadata.PackageNotFoundError:  # a checkout
        return "0"


@route(blueprint, "GET", "/openapi.json", Access(ACCOUNT))
def openapi(_caller: Caller) -> dict[str, Any]:
    """This description."""
    from svc.web.openapi import describe  # slow to import, rarely requested

    state = current_app.extensions["svc"]
    if "openapi" not in state:
        state["openapi"] = describe(current_app)
    return state["openapi"]
