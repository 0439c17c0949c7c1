"""Operations: get, read the log, cancel."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.domain import operations
from svc.domain.principal import Caller
from svc.web.access import ACCOUNTS, route
from svc.web.schemas.operations import Operation, OperationLog

blueprint = Blueprint("operations", __name__)


@route(blueprint, "GET", "/operations/<ref>", ACCOUNTS, answer=Operation())
def get(caller: Caller, ref: str) -> dict[str, Any]:
    """One of the caller's operations."""
    return operations.get(caller, ref)


@route(blueprint, "GET", "/operations/<ref>/log", ACCOUNTS, answer=OperationLog())
def log(caller: Caller, ref: str) -> dict[str, Any]:
    """The log of an operation so far."""
    return {"lines": operations.log(caller, ref)}


@route(blueprint, "POST", "/operations/<ref>/cancel", ACCOUNTS, answer=Operation())
def cancel(caller: Caller, ref: str) -> dict[str, Any]:
    """Request the cancellation of an operation; a finished one does not change."""
    return operations.cancel(caller, ref)
