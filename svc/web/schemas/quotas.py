"""Quota policies."""

from __future__ import annotations

from marshmallow import Schema, fields

from svc.web.schemas.fields import Number, Whole
from svc.web.schemas.pages import page_of
from svc_helper.wire.limits import SIZE_MAX

COUNT_MAX = 1_000_000
CPU_MAX = 1_000_000.0

UNLIMITED = {"description": "null means unlimited"}


class QuotaPut(Schema):
    """A whole policy; null or a missing key means unlimited."""

    max_workspaces = Whole(0, COUNT_MAX, allow_none=True)
    max_running = Whole(0, COUNT_MAX, allow_none=True)
    max_gpus = Whole(0, COUNT_MAX, allow_none=True)
    max_cpu = Number(0, CPU_MAX, allow_none=True, metadata={"description": "cores"})
    max_memory_bytes = Whole(0, SIZE_MAX, allow_none=True)
    max_image_bytes = Whole(0, SIZE_MAX, allow_none=True)


class Quota(Schema):
    """A named quota policy."""

    name = fields.String()
    max_workspaces = fields.Integer(allow_none=True, metadata=UNLIMITED)
    max_running = fields.Integer(allow_none=True, metadata=UNLIMITED)
    max_gpus = fields.Integer(allow_none=True, metadata=UNLIMITED)
    max_cpu = fields.Float(allow_none=True, metadata={"description": "cores; null means unlimited"})
    max_memory_bytes = fields.Integer(allow_none=True, metadata=UNLIMITED)
    max_image_bytes = fields.Integer(allow_none=True, metadata=UNLIMITED)


class QuotaPolicy(Quota):
    """A policy with the number of its accounts."""

    users = fields.Integer(metadata={"description": "how many accounts have it"})


QUOTAS = page_of(QuotaPolicy, "QuotaPage")
