"""The build context of a template: its files, listed, read, set, removed and replaced."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

from flask import Blueprint, Response

from svc.actions.access import ACCOUNTS
from svc.domain.files import spool
from svc.domain.places import long_calls
from svc.domain.principal import Caller
from svc.domain.templates import bundles, context_edits
from svc.domain.versions import Expected
from svc.limits import BUNDLE_MAX, BUNDLE_MEMBER_MAX
from svc.web import outputs, uploads
from svc.web.access import route
from svc.web.schemas.pages import ListQuery
from svc.web.schemas.templates import CONTEXT_FILES, TEMPLATE, ContextPutQuery, ContextQuery

blueprint = Blueprint("template_contexts", __name__)

EXECUTABLE = "X-Svc-Executable"


@route(
    blueprint, "GET", "/templates/<ref>/context", ACCOUNTS,
    query=ListQuery(), answer=CONTEXT_FILES, version=lambda page: page.pop("version"),
)  # fmt: skip
def list_(caller: Caller, ref: str, query: dict[str, Any]) -> dict[str, Any]:
    """The files that a template's Dockerfile is built with."""
    return context_edits.page_of(caller, ref, query["page"])


@route(
    blueprint, "PUT", "/templates/<ref>/context", ACCOUNTS,
    takes=uploads.TAR, answer=TEMPLATE, if_match=True,
)  # fmt: skip
def replace(caller: Caller, ref: str, expected: Expected) -> dict[str, Any]:
    """Replace all files of a private template by those of a plain tar: a new revision, to be built."""
    context_edits.require_writable(caller, ref)
    with uploads.received(uploads.TAR, BUNDLE_MAX) as (caller, file):
        return context_edits.replace(caller, ref, bundles.read_context(file), expected=expected)


@route(
    blueprint, "GET", "/templates/<ref>/context/file", ACCOUNTS,
    query=ContextQuery(), gives=uploads.BYTES,
)  # fmt: skip
def get(caller: Caller, ref: str, query: dict[str, Any]) -> Response:
    """One file of a build context; the header X-Svc-Executable is true or false."""
    with ExitStack() as held:
        held.enter_context(long_calls.counted(caller))
        file = held.enter_context(spool.unnamed_file(BUNDLE_MEMBER_MAX))
        content = context_edits.read(caller, ref, query["path"], file)
        spool.ended(file)
        headers = outputs.attachment(content.name.encode()) | {EXECUTABLE: str(content.executable).lower()}
        headers |= {"ETag": f'"{content.version}"'}
        return outputs.file(file, uploads.BYTES, "file", held, **headers)


@route(
    blueprint, "PUT", "/templates/<ref>/context/file", ACCOUNTS,
    takes=uploads.BYTES, query=ContextPutQuery(), answer=TEMPLATE, if_match=True,
)  # fmt: skip
def put(caller: Caller, ref: str, query: dict[str, Any], expected: Expected) -> dict[str, Any]:
    """Add or replace one file of a private template: a new revision, to be built before it is enabled."""
    context_edits.check_path(query["path"])
    context_edits.require_writable(caller, ref)
    with uploads.received(uploads.BYTES, BUNDLE_MEMBER_MAX) as (caller, file):
        size = file.seek(0, os.SEEK_END)
        executable = query.get("executable")
        return context_edits.put(
            caller, ref, query["path"], file, size, executable=executable, expected=expected
        )


@route(
    blueprint, "DELETE", "/templates/<ref>/context/file", ACCOUNTS,
    query=ContextQuery(), answer=TEMPLATE, if_match=True,
)  # fmt: skip
def remove(caller: Caller, ref: str, query: dict[str, Any], expected: Expected) -> dict[str, Any]:
    """Remove one file of a private template: a new revision, to be built before it is enabled."""
    return context_edits.remove(caller, ref, query["path"], expected=expected)
