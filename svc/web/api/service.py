"""Health, version, the certificate and the description of the API."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import peewee
from flask import Blueprint, Response, current_app, g, request

from svc.actions.access import ACCOUNT, ANYONE, Access
from svc.db import condition, faults, migrate, reserve
from svc.db.connect import database
from svc.domain.licence import entitlement, reports
from svc.domain.principal import Caller
from svc.errors import NotFound, SvcError
from svc.helper.helper import Helper
from svc.tls.public_chain import PublicChain
from svc.version import API_VERSION, commit, release
from svc.web import inputs, outputs
from svc.web.access import route
from svc.web.schemas.service import Health, Version

blueprint = Blueprint("service", __name__)

BUILD, RELEASE = commit(), release()  # at the start: another build may be installed while the server runs
PING_KEPT_S = 1.0  # anyone may request the health; the helper gets one ping a second at most
PROBE_KEPT_S = 5.0  # and the disk one write
PEM = "application/x-pem-file"


class _Kept:
    """The result of a check, kept for some seconds, whoever asks."""

    def __init__(self, kept_s: float) -> None:
        self.lock = threading.Lock()
        self.kept_s = kept_s
        self.at = -kept_s
        self.fault: SvcError | None = None

    def ask(self, check: Callable[[], object]) -> SvcError | None:
        """The error that the check raises; None when all is well."""
        with self.lock:
            if time.monotonic() - self.at >= self.kept_s:
                self.fault = _fault_of(check)
                self.at = time.monotonic()
            return self.fault


def _fault_of(check: Callable[[], object]) -> SvcError | None:
    try:
        check()
    except SvcError as error:
        return error
    except (peewee.DatabaseError, peewee.InterfaceError, sqlite3.Error) as error:
        return faults.error_of(error) or faults.failed(str(error))
    return None


def _check_database() -> None:
    """Raise what is wrong with the database or its disk."""
    found = condition.find(database.path)
    if found is not None:
        raise found.error
    if reserve.is_full(database.path):
        raise faults.full()
    database.execute_sql("SELECT 1 FROM users LIMIT 1").fetchone()


_ping = _Kept(PING_KEPT_S)
_probe = _Kept(PROBE_KEPT_S)


@route(blueprint, "GET", "/health", Access(ANYONE, pat=True), query=inputs.ANYTHING, answer=Health())
def health(_caller: Caller | None, query: dict[str, Any]) -> Response:
    """Whether the service works; 503 and the error when it does not.

    It works with a lapsed licence too: that is a notice, and the status stays ok.
    """
    client: Helper = current_app.extensions["svc"]["helper"]
    helper = _ping.ask(partial(client.call, "helper.ping", "", {}, rid=g.rid, timeout_s=2))
    db = _fault_of(_check_database) or _probe.ask(partial(reserve.probe, database.path))
    body = {"status": "ok", "db": db.code if db else "ok", "helper": helper.code if helper else "ok"}
    body["license"] = db.code if db else reports.code_of(entitlement.resolve())
    fault = db or helper
    if fault is None:
        return outputs.response(body, 200)
    return outputs.response(body | {"status": "degraded"} | fault.body(g.rid), 503)


@route(blueprint, "GET", "/version", Access(ANYONE, pat=True), answer=Version())
def version_(_caller: Caller | None) -> dict[str, Any]:
    """The running version: release, commit, version of the API, newest migration."""
    return {"version": RELEASE, "commit": BUILD, "api": API_VERSION, "schema": migrate.latest()}


@route(blueprint, "GET", "/certificate", Access(ANYONE, pat=True), gives=PEM)
def certificate(_caller: Caller | None) -> Response:
    """The certificate chain of the TLS listener in PEM form, for programs on other hosts to trust.

    The key is never in it. Compare its fingerprint before it is trusted: whoever answers
    in the place of this service sends a certificate too.
    """
    served: PublicChain | None = current_app.extensions["svc"]["chain"]
    if served is None:
        raise NotFound("svc server --dev serves plain HTTP and has no certificate")
    chain = served.get()
    if chain is None:
        raise NotFound(
            "the file of the certificate, SVC_TLS_CERT, is not readable for the group svc",
            hint="sudo svc env --all",
        )
    response = Response(chain.pem, 200, {"Cache-Control": "no-cache"}, content_type=PEM)
    response.set_etag(chain.tag)
    response.make_conditional(request.environ)
    return response


@route(blueprint, "GET", "/openapi.json", Access(ACCOUNT))
def openapi(_caller: Caller) -> Response:
    """This description."""
    # The generated file: making it takes a second of every thread that is asked for it at once.
    with open(os.path.join(migrate.schema_folder(), "openapi.json"), "rb") as file:
        return Response(file.read(), content_type="application/json")
