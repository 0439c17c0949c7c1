"""Ports of a workspace."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from svc.limits import PORT_KINDS, PORT_USERS
from svc.web.schemas.fields import Slug, Whole, matching
from svc.web.schemas.pages import page_of
from svc_helper.wire.limits import ACCESS_HOST, ACCESS_OWNER


def access_field() -> fields.String:
    """Who may connect to a port."""
    return fields.String(
        load_default=ACCESS_OWNER,
        validate=validate.OneOf((ACCESS_OWNER, ACCESS_HOST)),
        metadata={"description": "who may connect: the owner alone, or every user of the host"},
    )


def kind_field() -> fields.String:
    """What is behind a port."""
    return fields.String(
        load_default=PORT_KINDS[0],
        validate=validate.OneOf(PORT_KINDS),
        metadata={"description": "what listens behind it, and so how a person comes to it"},
    )


def url_field() -> fields.String:
    """The address of a port as a URL."""
    return fields.String(
        allow_none=True, metadata={"description": "its address on this host; null for `tcp` and `ssh`"}
    )


def connect_field(**options: Any) -> fields.String:
    """How a person comes to a port."""
    what = "what a person on this host opens or runs: a URL, HOST:PORT, an `ssh` or `psql` command"
    return fields.String(metadata={"description": what}, **options)


def ssh_field(**options: Any) -> fields.String:
    """The command that forwards a port to another computer."""
    what = "the command on another computer after which `connect` works there too"
    return fields.String(metadata={"description": what}, **options)


class PortAdd(Schema):
    """A named port inside the container."""

    name = Slug(required=True)
    container_port = Whole(
        1, 65535, load_default=None, allow_none=True,
        metadata={"description": "null or missing: the same number as on the host"},
    )  # fmt: skip
    access = access_field()
    kind = kind_field()
    user = fields.String(
        load_default=None, allow_none=True,
        validate=matching(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", "Use a login name, such as ada."),
        metadata={"description": "of `ssh` (root) and `postgres` (postgres): the login inside"},
    )  # fmt: skip

    @validates_schema(skip_on_field_errors=True)
    def login_of_its_kind(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse a login where no command names one."""
        if data["user"] is not None and data["kind"] not in PORT_USERS:
            kinds = " or ".join(PORT_USERS)
            raise ValidationError({"user": [f"Only a port of the kind {kinds} has a user."]})


class PortState(Schema):
    """A port and its address on the host."""

    name = fields.String()
    container_port = fields.Integer()
    host_port = fields.Integer(metadata={"description": "on 127.0.0.1"})
    access = fields.String(validate=validate.OneOf((ACCESS_OWNER, ACCESS_HOST)))
    kind = fields.String(validate=validate.OneOf(PORT_KINDS))
    user = fields.String(allow_none=True)
    url = url_field()
    connect = connect_field()
    ssh = ssh_field()
    label = fields.String(
        allow_none=True,
        metadata={"description": "its name in addresses of apps; null where no browser opens it"},
    )
    app_local_url = fields.String(
        allow_none=True,
        metadata={"description": "its own address for a browser on this host; null where there is none"},
    )
    state = fields.String(validate=validate.OneOf(("open", "closed")))
    connections = fields.Integer(metadata={"description": "open now"})
    refused = fields.Integer(
        metadata={"description": "connections refused since the port was opened, by its `access`"}
    )
    listens = fields.Boolean(
        allow_none=True,
        metadata={"description": "whether a program listens on `container_port` inside; null: not known"},
    )


class AppOpen(Schema):
    """What to open of an app."""

    path = fields.String(
        load_default="/", validate=matching(r"/(?![/\\])[!-~]{0,2000}", "Use a path such as /lab?x=1."),
        metadata={"description": "with its query"},
    )  # fmt: skip


class AppLink(Schema):
    """A link that signs a browser in to an app, once."""

    url = fields.String(metadata={"description": "where it leads"})
    link = fields.String(metadata={"description": "to open in a browser; its secret is in its fragment"})
    expires_at = fields.DateTime()


PORTS = page_of(PortState, "PortList")
