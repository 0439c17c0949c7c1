"""The audit of requests that end before their operation begins: "Every `fs` operation is audited".

A path such as `work/../x` is refused while the query is read, a token or root by the
access rule, a body over the limit while it is received. For routes with an `action` each of these
has the rows, and the budget, of an operation that was tried and failed.
"""

from __future__ import annotations

import os
from urllib.parse import parse_qsl

from flask import g, request

from svc.domain.audit import audit
from svc.domain.files import paths
from svc.domain.principal import Caller
from svc.errors import SvcError


def refused(error: SvcError) -> SvcError:
    """Record the end of a request that its operation has not recorded; the error to answer with."""
    caller: Caller | None = g.identified
    if caller is None or not g.route or not g.route.action or audit.is_recorded(caller.rid):
        return error
    g.identified = None  # once, even if this fails
    try:
        with audit.audited(caller, g.route.action, _target()):
            raise error
    except SvcError as outcome:
        return outcome


def _target() -> str:
    """The file root and the path as they were sent, which may be neither."""
    root = (request.view_args or {}).get("root", "")
    query = request.query_string.decode("utf-8", "surrogateescape")
    asked = dict(parse_qsl(query, errors="surrogateescape")).get("path", "")
    return f"{root}/{paths.format_path(os.fsencode(asked))}" if root else ""
