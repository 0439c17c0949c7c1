"""Personal access tokens; "A token cannot create, list or revoke tokens"."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.domain.accounts import tokens
from svc.domain.principal import Caller
from svc.web.access import ACCOUNT, MEMBER, UNIX, Access, route
from svc.web.schemas.tokens import TOKENS, NewToken, TokenCreate, TokenQuery

blueprint = Blueprint("tokens", __name__)

OWN = Access(ACCOUNT)
# "Creation is possible only through the CLI"
ON_THE_HOST = Access(MEMBER, listeners=(UNIX,), credential=True)


@route(blueprint, "GET", "/tokens", OWN, query=TokenQuery(), answer=TOKENS)
def list_(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The caller's tokens, except revoked ones."""
    return tokens.page_of(caller, query["page"])


@route(
    blueprint, "POST", "/tokens", ON_THE_HOST,
    body=TokenCreate(), answer=NewToken(), status=201, location="/api/tokens/{id}",
)  # fmt: skip
def create(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Create a token; only this response has its secret."""
    return tokens.create(caller, body["name"], body["expires_days"], body["scopes"])


@route(blueprint, "DELETE", "/tokens/<ref>", OWN, status=204)
def revoke(caller: Caller, ref: str) -> None:
    """Revoke a token, by its id or the name of an active one."""
    tokens.revoke(caller, ref)
