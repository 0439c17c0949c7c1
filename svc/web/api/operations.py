"""Operations: list, get, read the log, cancel."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.actions.access import ACCOUNTS
from svc.actions.table import OPERATION_CANCEL
from svc.domain import operations
from svc.domain.principal import Caller
from svc.web.access import action, route
from svc.web.schemas.operations import OPERATIONS, LogQuery, Operation, OperationLog, OperationQuery

blueprint = Blueprint("operations", __name__)


@route(blueprint, "GET", "/operations", ACCOUNTS, query=OperationQuery(), answer=OPERATIONS)
def list_(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The caller's operations, newest first."""
    kinds = tuple(filter(None, query["kind"].split(",")))
    return operations.page_of(caller, query["page"], kinds, query["subject"])


@route(blueprint, "GET", "/operations/<ref>", ACCOUNTS, answer=Operation())
def get(caller: Caller, ref: str) -> dict[str, Any]:
    """One of the caller's operations."""
    return operations.get(caller, ref)


@route(blueprint, "GET", "/operations/<ref>/log", ACCOUNTS, query=LogQuery(), answer=OperationLog())
def log(caller: Caller, ref: str, query: dict[str, Any]) -> dict[str, Any]:
    """The log of an operation so far, or its lines after a known one."""
    return operations.log(caller, ref, query["after"])


@action(blueprint, OPERATION_CANCEL, answer=Operation())
def cancel(caller: Caller, ref: str) -> dict[str, Any]:
    """Request the cancellation of an operation; a finished one does not change."""
    return operations.cancel(caller, ref)
