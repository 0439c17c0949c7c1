"""Ports of a workspace."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.limits import ACCESS_HOST, ACCESS_OWNER
from svc.web.schemas.fields import Slug, Whole
from svc.web.schemas.pages import list_of


def access_field() -> fields.String:
    """Who may connect to a port."""
    return fields.String(
        load_default=ACCESS_OWNER,
        validate=validate.OneOf((ACCESS_OWNER, ACCESS_HOST)),
        metadata={"description": "who may connect: the owner alone, or every user of the host"},
    )


def ssh_field() -> fields.String:
    """The command that forwards a port to another computer."""
    return fields.String(
        metadata={"description": "the command on another computer after which `url` works there too"}
    )


class PortAdd(Schema):
    """A named port inside the container."""

    name = Slug(required=True)
    container_port = Whole(1, 65535, required=True)
    access = access_field()


class PortState(Schema):
    """A port and its address on the host."""

    name = fields.String()
    container_port = fields.Integer()
    host_port = fields.Integer(metadata={"description": "on 127.0.0.1"})
    access = fields.String(validate=validate.OneOf((ACCESS_OWNER, ACCESS_HOST)))
    url = fields.String()
    ssh = ssh_field()
    state = fields.String(validate=validate.OneOf(("open", "closed")))
    connections = fields.Integer(metadata={"description": "open now"})
    refused = fields.Integer(
        metadata={"description": "connections refused since the port was opened, by its `access`"}
    )


PORTS = list_of(PortState, "PortList")
