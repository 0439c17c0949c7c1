"""Launchers of a workspace."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.domain.workspaces.launchers import STATES
from svc.limits import PORT_KINDS
from svc.web.schemas.pages import page_of
from svc.web.schemas.ports import connect_field, ssh_field, url_field


class LauncherChange(Schema):
    """An empty object."""


class LauncherState(Schema):
    """The state of a launcher; its last run was from `started_at` to `finished_at`."""

    name = fields.String()
    title = fields.String()
    port = fields.String(allow_none=True, metadata={"description": "the name of the port that it serves"})
    autostart = fields.Boolean()
    state = fields.String(validate=validate.OneOf(STATES))
    exit_code = fields.Integer(allow_none=True)
    started_at = fields.DateTime(allow_none=True)
    finished_at = fields.DateTime(allow_none=True)
    kind = fields.String(allow_none=True, validate=validate.OneOf(PORT_KINDS))
    host_port = fields.Integer(allow_none=True)
    url = url_field()
    connect = connect_field(allow_none=True)
    ssh = ssh_field(allow_none=True)
    token = fields.String(
        allow_none=True,
        metadata={"description": "for logging in, where the template says how to find it; never stored"},
    )
    link = fields.String(allow_none=True, metadata={"description": "the URL to open, token included"})


LAUNCHERS = page_of(LauncherState, "LauncherList")
