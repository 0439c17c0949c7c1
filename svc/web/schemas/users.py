"""Users: who the caller is, and the administrators' list."""

from __future__ import annotations

from marshmallow import Schema, fields

from svc.web.schemas.pages import page_of


class LinuxAccount(Schema):
    """The Linux account behind a service account."""

    name = fields.String()
    uid = fields.Integer()
    home = fields.String()


class Me(Schema):
    """The account that the request authenticated."""

    name = fields.String()
    uid = fields.Integer()
    display_name = fields.String()
    superuser = fields.Boolean()
    linux_account = fields.Nested(LinuxAccount)
    via = fields.String(metadata={"description": "socket, session or token"})
    roots = fields.List(fields.String(), metadata={"description": "ids of the file roots"})


class User(Schema):
    """A service account as administrators see it."""

    name = fields.String()
    uid = fields.Integer(allow_none=True)
    display_name = fields.String()
    superuser = fields.Boolean()
    disabled = fields.Boolean()
    status = fields.String()
    note = fields.String()
    has_password = fields.Boolean()
    password_closed = fields.Boolean()
    created_at = fields.DateTime()
    updated_at = fields.DateTime()


USERS = page_of(User, "UserPage")
