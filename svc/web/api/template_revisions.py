"""The revisions of a template: list, text, files of the build context, and what differs between two."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.actions.access import ACCOUNTS
from svc.domain.principal import Caller
from svc.domain.templates import context_edits, history
from svc.web.access import route
from svc.web.schemas.pages import ListQuery
from svc.web.schemas.templates import CONTEXT_FILES, REVISIONS, Difference, DiffQuery, RevisionContent

blueprint = Blueprint("template_revisions", __name__)


@route(blueprint, "GET", "/templates/<ref>/revisions", ACCOUNTS, query=ListQuery(), answer=REVISIONS)
def list_(caller: Caller, ref: str, query: dict[str, Any]) -> dict[str, Any]:
    """The kept revisions of a template, the newest first, and how many workspaces use each."""
    return history.page_of(caller, ref, query["page"])


@route(blueprint, "GET", "/templates/<ref>/revisions/<int:revision>", ACCOUNTS, answer=RevisionContent())
def get(caller: Caller, ref: str, revision: int) -> dict[str, Any]:
    """One kept revision, with the text of its Dockerfile."""
    return history.get(caller, ref, revision)


@route(
    blueprint, "GET", "/templates/<ref>/revisions/<int:revision>/context", ACCOUNTS,
    query=ListQuery(), answer=CONTEXT_FILES,
)  # fmt: skip
def context(caller: Caller, ref: str, revision: int, query: dict[str, Any]) -> dict[str, Any]:
    """The files of the build context of one kept revision."""
    return context_edits.page_at(history.at(caller, ref, revision), query["page"])


@route(blueprint, "GET", "/templates/<ref>/diff", ACCOUNTS, query=DiffQuery(), answer=Difference())
def diff(caller: Caller, ref: str, query: dict[str, Any]) -> dict[str, Any]:
    """What differs between two revisions, by default the present one and the one before it."""
    return history.diff(caller, ref, query.get("before"), query.get("after"))
