"""Workspaces: what creating, editing, stopping and exec take, and the record."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from svc.domain.workspaces.records import ALLOWED_ACTIONS
from svc.limits import (
    DISPLAY_NAME_MAX,
    EXEC_TIMEOUT_DEFAULT_S,
    EXEC_TIMEOUT_MAX_S,
    IDLE_EXTEND_HOURS_MAX,
    PORTS_PER_WORKSPACE,
    STOP_GRACE_S,
)
from svc.web.schemas.fields import Command, Flag, Slug, Text, Whole
from svc.web.schemas.pages import ListQuery, owner_field, page_of, status_field
from svc.web.schemas.ports import PortAdd
from svc.web.schemas.resources import Resources, Variable, WithEnv

STATUSES = tuple(ALLOWED_ACTIONS)
RESERVED = ("capacity", "recommend", "setup")  # paths beside the workspaces' own


class WorkspaceQuery(ListQuery):
    """A page of workspaces."""

    status = status_field(STATUSES)
    owner = owner_field()


class WorkspacePatch(WithEnv):
    """What may be changed: the name at any time, all else while stopped."""

    name = Slug(RESERVED)
    display_name = Text(DISPLAY_NAME_MAX)
    resources = fields.Nested(Resources)
    restart_on_boot = Flag()


class WorkspaceCreate(WorkspacePatch):
    """A new workspace; template defaults fill what is left out."""

    name = Slug(RESERVED, required=True)
    template = Text(64, 1, required=True, metadata={"description": "the template's id or name"})
    ports = fields.List(
        fields.Nested(PortAdd), validate=validate.Length(max=PORTS_PER_WORKSPACE),
        metadata={"description": "besides those of the template"},
    )  # fmt: skip

    @validates_schema(skip_on_field_errors=True)
    def each_port_once(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse a port's name twice."""
        names = [port["name"] for port in data.get("ports", [])]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise ValidationError({"ports": {number: {"name": [f"{name} is there twice."]}}})


class WorkspaceStart(Schema):
    """Nothing yet."""


class WorkspaceStop(Schema):
    """How long the container may take to end by itself."""

    grace_s = Whole(0, 60, load_default=STOP_GRACE_S)


class WorkspaceExtend(Schema):
    """How long the idle policy leaves it alone."""

    hours = Whole(1, IDLE_EXTEND_HOURS_MAX, required=True, metadata={"description": "from now on"})


class WorkspaceExec(Schema):
    """One non-interactive command."""

    command = Command(required=True)
    timeout_s = Whole(1, EXEC_TIMEOUT_MAX_S, load_default=EXEC_TIMEOUT_DEFAULT_S)


class ExecResult(Schema):
    """How a command ended; both streams together hold at most 256 KiB, the rest is dropped."""

    exit_code = fields.Integer(allow_none=True)
    stdout = fields.String(metadata={"format": "byte", "description": "base64"})
    stderr = fields.String(metadata={"format": "byte", "description": "base64"})
    truncated = fields.Boolean()
    timed_out = fields.Boolean()
    duration_ms = fields.Integer()


class TemplateOfWorkspace(Schema):
    """The template and revision that a workspace was made from."""

    id = fields.String()
    name = fields.String()
    revision = fields.Integer()
    newer_revision = fields.Integer(allow_none=True)


class ImageOfWorkspace(Schema):
    """The image that a workspace was made from."""

    ref = fields.String()
    digest = fields.String(allow_none=True)


class OperationOfWorkspace(Schema):
    """An operation that is under way on a workspace."""

    id = fields.String()
    kind = fields.String()
    status = fields.String()


class MountOfWorkspace(Schema):
    """A file root inside the container: `work`, and what the template mounts."""

    root = fields.String()
    path = fields.String()
    read_only = fields.Boolean()


class GpuOfWorkspace(Schema):
    """A GPU that a workspace has leased, alone or shared with others that say so."""

    uuid = fields.String()
    mode = fields.String(validate=validate.OneOf(("exclusive", "shared")))


class WorkspaceLauncher(Schema):
    """A launcher of the template; how it is says GET workspaces/<id>/launchers."""

    name = fields.String()
    title = fields.String()
    port = fields.String(allow_none=True, metadata={"description": "the name of the port it serves"})
    autostart = fields.Boolean()


class WorkspacePort(Schema):
    """A port inside the container, reached at 127.0.0.1:host_port."""

    name = fields.String()
    container_port = fields.Integer()
    host_port = fields.Integer()


class IdleOfWorkspace(Schema):
    """The template's idle policy and how far it has come."""

    since = fields.DateTime(allow_none=True, metadata={"description": "since when nothing happens in it"})
    keep_until = fields.DateTime(allow_none=True, metadata={"description": "until then it is left alone"})
    action = fields.String(validate=validate.OneOf(("none", "notify", "stop")))
    after_minutes = fields.Integer(allow_none=True)


class Workspace(Schema):
    """A workspace as the API shows it."""

    id = fields.String()
    name = fields.String()
    display_name = fields.String()
    owner = fields.String()
    template = fields.Nested(TemplateOfWorkspace)
    image = fields.Nested(ImageOfWorkspace)
    image_status = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))
    status_reason = fields.String(allow_none=True)
    status_since = fields.DateTime()
    health = fields.String(validate=validate.OneOf(("unknown", "ok", "gpu_lost")))
    operation = fields.Nested(OperationOfWorkspace, allow_none=True)
    allowed_actions = fields.List(fields.String())
    resources = fields.Nested(Resources)
    gpus = fields.List(fields.Nested(GpuOfWorkspace))
    limits_missing = fields.List(
        fields.String(), metadata={"description": "resources that this host does not apply"}
    )
    mounts = fields.List(fields.Nested(MountOfWorkspace))
    env = fields.List(fields.Nested(Variable))
    launchers = fields.List(fields.Nested(WorkspaceLauncher))
    ports = fields.List(fields.Nested(WorkspacePort))
    idle = fields.Nested(IdleOfWorkspace)
    restart_on_boot = fields.Boolean()
    exit_code = fields.Integer(allow_none=True)
    created_at = fields.DateTime()
    updated_at = fields.DateTime()
    started_at = fields.DateTime(allow_none=True)
    stopped_at = fields.DateTime(allow_none=True)


WORKSPACE = Workspace()
WORKSPACES = page_of(Workspace, "WorkspacePage")
