"""Personal access tokens; "A token cannot create, list or revoke tokens"."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.actions.access import NO_TOKENS
from svc.actions.table import TOKEN_CREATE, TOKEN_REVOKE
from svc.domain.accounts import tokens
from svc.domain.apps import places
from svc.domain.principal import Caller
from svc.web.access import action, route
from svc.web.schemas.tokens import TOKENS, NewToken, TokenCreate, TokenQuery

blueprint = Blueprint("tokens", __name__)


@route(blueprint, "GET", "/tokens", NO_TOKENS, query=TokenQuery(), answer=TOKENS)
def list_(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The caller's tokens, except revoked ones."""
    return tokens.page_of(caller, query["page"])


@action(
    blueprint, TOKEN_CREATE,
    body=TokenCreate(), answer=NewToken(), status=201, location="/api/tokens/{id}",
)  # fmt: skip
def create(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Create a token; only this response has its secret."""
    app = places.named(caller, body["app"]) if body["app"] else ""
    return tokens.create(caller, body["name"], body["expires_days"], body["scopes"], app)


@action(blueprint, TOKEN_REVOKE, status=204)
def revoke(caller: Caller, ref: str) -> None:
    """Revoke a token, by its id or the name of an active one."""
    tokens.revoke(caller, ref)
