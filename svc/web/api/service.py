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
from svc.domain.principal import Asks, Caller
from svc.errors import SvcError
from svc.version import API_VERSION, commit
from svc.web import outputs
from svc.web.access import ACCOUNT, ANYONE, Access, route
from svc.web.schemas.service import Health, Version

blueprint = Blueprint("service", __name__)

BUILD = commit()  # read when the server starts: another build may be installed while it runs
PING_KEPT_S = 1.0  # anybody may ask for health; the helper is asked once a second at most


class _Ping:
    """The helper's last answer to a ping, kept for a moment."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.at = -PING_KEPT_S
        self.word = ""

    def ask(self, helper: Asks, rid: str) -> str:
        """ok, or the code of what is wrong."""
        with self.lock:
            if time.monotonic() - self.at >= PING_KEPT_S:
                self.word = _helper_word(helper, rid)
                self.at = time.monotonic()
            return self.word


def _helper_word(helper: Asks, rid: str) -> str:
    try:
        helper.call("helper.ping", "", {}, rid=rid, timeout_s=2)
    except SvcError as error:
        return error.code
    return "ok"


def _database_word() -> str:
    try:
        database.execute_sql("SELECT 1 FROM users LIMIT 1").fetchone()
    except (peewee.DatabaseError, peewee.InterfaceError):
        return "unavailable"
    return "ok"


_ping = _Ping()


@route(blueprint, "GET", "/health", Access(ANYONE, pat=True), answer=Health())
def health(_caller: Caller | None) -> Response:
    """Whether the service can do its work; 503 when it cannot."""
    db = _database_word()
    helper = _ping.ask(current_app.extensions["svc"]["helper"], g.rid)
    well = db == helper == "ok"
    record = {"status": "ok" if well else "degraded", "db": db, "helper": helper}
    return outputs.response(record, 200 if well else 503)


@route(blueprint, "GET", "/version", Access(ANYONE, pat=True), answer=Version())
def version_(_caller: Caller | None) -> dict[str, Any]:
    """What runs here: release, commit, version of the API, newest migration."""
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
    from svc.web.openapi import describe  # takes a while to import and is rarely asked for

    known = current_app.extensions["svc"]
    if "openapi" not in known:
        known["openapi"] = describe(current_app)
    return known["openapi"]
