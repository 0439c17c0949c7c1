"""Ports of a workspace."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.web.schemas.fields import Slug, Whole
from svc.web.schemas.pages import list_of


class PortAdd(Schema):
    """A named port inside the container."""

    name = Slug(required=True)
    container_port = Whole(1, 65535, required=True)


class PortState(Schema):
    """A port and its address on the host."""

    name = fields.String()
    container_port = fields.Integer()
    host_port = fields.Integer(metadata={"description": "on 127.0.0.1"})
    url = fields.String()
    state = fields.String(validate=validate.OneOf(("open", "closed")))
    connections = fields.Integer(metadata={"description": "open now"})


PORTS = list_of(PortState, "PortList")
