"""Launchers of a workspace."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.domain.workspaces.launchers import STATES
from svc.web.schemas.pages import list_of


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
    host_port = fields.Integer(allow_none=True)
    url = fields.String(allow_none=True)


LAUNCHERS = list_of(LauncherState, "LauncherList")
