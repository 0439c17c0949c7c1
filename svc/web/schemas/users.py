"""Users: the caller, changes, and the list for administrators."""

from __future__ import annotations

from marshmallow import Schema, fields

from svc.limits import CREDENTIALS_BODY_MAX, DISPLAY_NAME_MAX
from svc.web.schemas.auth import Secret
from svc.web.schemas.fields import Flag, Slug, Text
from svc.web.schemas.licence import Notice
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
    notices = fields.List(
        fields.Nested(Notice),
        metadata={"description": "administrators: what should be done about the licence"},
    )


class UserPatch(Schema):
    """The changes of an account."""

    display_name = Text(DISPLAY_NAME_MAX)
    superuser = Flag(metadata={"description": "only as it is: `svc admin edit-user` changes it"})
    disabled = Flag(metadata={"description": "administrators"})
    quota = Slug(
        allow_none=True, metadata={"description": "administrators: a policy; null means the default one"}
    )


class PasswordChange(Schema):
    """The current service password and the new one."""

    body_max = CREDENTIALS_BODY_MAX

    current_password = Secret(metadata={"format": "password"})
    password = Secret(metadata={"format": "password"})


class User(Schema):
    """A service account."""

    name = fields.String()
    uid = fields.Integer(allow_none=True)
    display_name = fields.String()
    superuser = fields.Boolean()
    disabled = fields.Boolean()
    retired = fields.Boolean(
        metadata={"description": "its Linux account was removed: nobody can use it any more"}
    )
    status = fields.String()
    note = fields.String()
    has_password = fields.Boolean()
    password_closed = fields.Boolean()
    quota = fields.String(allow_none=True, metadata={"description": "its policy; null means the default one"})
    created_at = fields.DateTime()
    updated_at = fields.DateTime()


USERS = page_of(User, "UserPage")
