"""Workspaces: requests and records."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from svc.domain.workspaces import upgrade_plan
from svc.domain.workspaces.records import ALLOWED_ACTIONS
from svc.limits import (
    DELETE_AFTER_S,
    DISPLAY_NAME_MAX,
    DOCUMENT_BODY_MAX,
    EXEC_BODY_MAX,
    EXEC_TIMEOUT_DEFAULT_S,
    IDLE_EXTEND_HOURS_MAX,
    PORT_KINDS,
    PORTS_PER_WORKSPACE,
    REVISION_MAX,
    STOP_GRACE_S,
)
from svc.web.schemas.errors import RecordWarning
from svc.web.schemas.fields import (
    ExecCommand,
    Flag,
    QueryFlag,
    Slug,
    Text,
    Whole,
    duplicates,
    main_command_field,
    network_field,
)
from svc.web.schemas.operations import Progress
from svc.web.schemas.pages import ListQuery, owner_field, page_of, status_field
from svc.web.schemas.ports import PortAdd, connect_field, ssh_field, url_field
from svc.web.schemas.resources import Resources, ResourcesRequest, Variable, WithEnv
from svc_helper.wire.limits import ACCESS_HOST, ACCESS_OWNER, EXEC_TIMEOUT_MAX_S

STATUSES = tuple(ALLOWED_ACTIONS)
RESERVED = ("capacity", "check", "recommend", "setup")  # paths beside the workspaces' own


class WorkspaceQuery(ListQuery):
    """A page of workspaces."""

    status = status_field(STATUSES)
    owner = owner_field()
    all = QueryFlag(load_default=False, metadata={"description": "administrators: those of every owner"})


class WorkspacePatch(WithEnv):
    """The changes of a stopped workspace, at least one."""

    body_max = DOCUMENT_BODY_MAX

    name = Slug(RESERVED, "ws")
    display_name = Text(DISPLAY_NAME_MAX)
    resources = fields.Nested(ResourcesRequest)
    command = main_command_field("in place of the template's; null for the template's, or the image's")
    network = network_field()
    restart_on_boot = Flag()


class WorkspaceEdit(WorkspacePatch):
    """The changes of a stopped workspace, at least one, and what they may cost."""

    replace_container = Flag(
        load_default=False,
        metadata={"description": "a new container may replace the present one, with what is installed in it"},
    )


class WorkspaceCreate(WorkspacePatch):
    """A new workspace; the defaults of the template replace missing keys."""

    name = Slug(RESERVED, "ws", required=True)
    template = Text(64, 1, required=True, metadata={"description": "the template's id or name"})
    ports = fields.List(
        fields.Nested(PortAdd), validate=validate.Length(max=PORTS_PER_WORKSPACE),
        metadata={"description": "in addition to those of the template"},
    )  # fmt: skip
    delete_when_stopped = Flag(
        metadata={"description": f"it is deleted once it has been stopped for {DELETE_AFTER_S // 60} minutes"}
    )

    @validates_schema(skip_on_field_errors=True)
    def each_port_once(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse a duplicate name."""
        if errors := duplicates(data.get("ports", [])):
            raise ValidationError({"ports": errors})


class WorkspaceCheck(WorkspaceCreate):
    """A new workspace, whose name may be missing."""

    name = Slug(RESERVED, "ws")


class WorkspaceRename(Schema):
    """The new name of a workspace."""

    name = Slug(RESERVED, "ws", required=True)


class WorkspaceStart(Schema):
    """An empty object."""


class WorkspaceStop(Schema):
    """The time between TERM and KILL."""

    grace_s = Whole(0, 60, load_default=STOP_GRACE_S)


class WorkspaceExtend(Schema):
    """The time without the idle policy."""

    hours = Whole(1, IDLE_EXTEND_HOURS_MAX, required=True, metadata={"description": "from now on"})


class WorkspaceExec(Schema):
    """One non-interactive command."""

    body_max = EXEC_BODY_MAX
    brackets_max = 16

    command = ExecCommand(
        required=True,
        metadata={"description": "the program and its arguments: as many as the kernel takes, about 2 MiB"},
    )
    timeout_s = Whole(1, EXEC_TIMEOUT_MAX_S, load_default=EXEC_TIMEOUT_DEFAULT_S)


class ExecResult(Schema):
    """The result of a command; both streams together have at most 256 KiB, the rest is dropped."""

    exit_code = fields.Integer(allow_none=True)
    stdout = fields.String(metadata={"format": "byte", "description": "base64"})
    stderr = fields.String(metadata={"format": "byte", "description": "base64"})
    truncated = fields.Boolean()
    timed_out = fields.Boolean()
    duration_ms = fields.Integer()


class TemplateOfWorkspace(Schema):
    """The template and revision of a workspace."""

    id = fields.String()
    name = fields.String()
    revision = fields.Integer()
    newer_revision = fields.Integer(allow_none=True)


class ImageOfWorkspace(Schema):
    """The image of a workspace."""

    ref = fields.String()
    digest = fields.String(allow_none=True)


class OperationOfWorkspace(Schema):
    """A running operation of a workspace."""

    id = fields.String()
    kind = fields.String()
    status = fields.String()
    phase = fields.String()
    progress = fields.Nested(Progress)


class MountOfWorkspace(Schema):
    """A file root inside the container: `work`, and the mounts of the template."""

    root = fields.String()
    path = fields.String()
    read_only = fields.Boolean()


class GpuOfWorkspace(Schema):
    """A GPU that a workspace leased, exclusively or shared."""

    uuid = fields.String()
    mode = fields.String(validate=validate.OneOf(("exclusive", "shared")))


class WorkspaceLauncher(Schema):
    """A launcher of the template; GET workspaces/<id>/launchers has its state."""

    name = fields.String()
    title = fields.String()
    port = fields.String(allow_none=True, metadata={"description": "the name of the port that it serves"})
    autostart = fields.Boolean()
    url = fields.String(
        allow_none=True, metadata={"description": "of its port on the host; of use while it runs"}
    )


class LastError(Schema):
    """Why the last start failed; null after one that succeeded."""

    code = fields.String()
    message = fields.String()
    at = fields.DateTime()


class LiveLauncher(Schema):
    """The state of one launcher."""

    name = fields.String()
    state = fields.String(validate=validate.OneOf(("stopped", "started", "exited")))
    exit_code = fields.Integer(allow_none=True, metadata={"description": "of its last run"})


class LiveUse(Schema):
    """What a running workspace uses now; null where that is not known (yet)."""

    id = fields.String()
    at = fields.DateTime()
    cpu_percent = fields.Float(
        allow_none=True, metadata={"description": "of one core, since the measurement before"}
    )
    memory_bytes = fields.Integer(allow_none=True)
    gpu_percent = fields.Integer(allow_none=True, metadata={"description": "of the busiest of its GPUs"})
    gpu_memory_bytes = fields.Integer(allow_none=True)
    launchers = fields.List(fields.Nested(LiveLauncher))


class WorkspacePort(Schema):
    """A port inside the container, open at 127.0.0.1:host_port."""

    name = fields.String()
    container_port = fields.Integer()
    host_port = fields.Integer()
    access = fields.String(validate=validate.OneOf((ACCESS_OWNER, ACCESS_HOST)))
    kind = fields.String(validate=validate.OneOf(PORT_KINDS))
    user = fields.String(allow_none=True)
    url = url_field()
    connect = connect_field()
    ssh = ssh_field()


class IdleOfWorkspace(Schema):
    """The idle policy of the template and its state."""

    since = fields.DateTime(allow_none=True, metadata={"description": "since when the workspace is idle"})
    keep_until = fields.DateTime(
        allow_none=True, metadata={"description": "the policy does not apply until then"}
    )
    action = fields.String(validate=validate.OneOf(("none", "notify", "stop")))
    after_minutes = fields.Integer(allow_none=True)


class Workspace(Schema):
    """A workspace."""

    id = fields.String()
    name = fields.String()
    display_name = fields.String()
    owner = fields.String()
    template = fields.Nested(TemplateOfWorkspace)
    image = fields.Nested(ImageOfWorkspace)
    image_status = fields.String()
    newer_image = fields.Boolean(
        metadata={
            "description": "the store has an image of this reference that was pulled or built after the"
            " container was made; an upgrade takes it"
        }
    )
    status = fields.String(validate=validate.OneOf(STATUSES))
    status_reason = fields.String(allow_none=True)
    status_since = fields.DateTime()
    health = fields.String(validate=validate.OneOf(("unknown", "ok", "gpu_lost")))
    last_error = fields.Nested(LastError, allow_none=True)
    operation = fields.Nested(OperationOfWorkspace, allow_none=True)
    allowed_actions = fields.List(fields.String())
    resources = fields.Nested(Resources)
    gpus = fields.List(fields.Nested(GpuOfWorkspace))
    limits_missing = fields.List(
        fields.String(), metadata={"description": "resources that this host cannot limit"}
    )
    warnings = fields.List(fields.Nested(RecordWarning))
    mounts = fields.List(fields.Nested(MountOfWorkspace))
    env = fields.List(fields.Nested(Variable))
    launchers = fields.List(fields.Nested(WorkspaceLauncher))
    ports = fields.List(fields.Nested(WorkspacePort))
    idle = fields.Nested(IdleOfWorkspace)
    command = fields.List(
        fields.String(),
        allow_none=True,
        metadata={"description": "of its own; null for the template's, or the image's"},
    )
    network = fields.String(
        allow_none=True,
        metadata={"description": "of the owner's, on which it has its own name; null for none"},
    )
    restart_on_boot = fields.Boolean()
    delete_when_stopped = fields.Boolean()
    exit_code = fields.Integer(allow_none=True)
    created_at = fields.DateTime()
    updated_at = fields.DateTime()
    started_at = fields.DateTime(allow_none=True)
    stopped_at = fields.DateTime(allow_none=True)


class LauncherFailed(Schema):
    """A launcher that has exited in the first moments, with an exit code other than 0."""

    name = fields.String()
    exit_code = fields.Integer(allow_none=True)
    output = fields.List(fields.String(), metadata={"description": "its last lines"})


class LauncherNotListening(Schema):
    """A launcher on whose port nothing listened in the first moments."""

    name = fields.String()
    container_port = fields.Integer()


class WorkspaceStarted(Workspace):
    """A workspace after its start."""

    launchers_failed = fields.List(
        fields.Nested(LauncherFailed),
        metadata={"description": "with autostart: by two seconds after the start, or sooner if all listen"},
    )
    launchers_not_listening = fields.List(
        fields.Nested(LauncherNotListening), metadata={"description": "those that run, by then"}
    )


class WorkspaceUpgrade(Schema):
    """The move to the newest revision of the template."""

    revision = Whole(1, REVISION_MAX, metadata={"description": "refused unless it is the newest one"})
    replace_container = Flag(
        load_default=False,
        metadata={"description": "a new container may replace the present one, with what is installed in it"},
    )


class UpgradeChange(Schema):
    """One part that an upgrade changes; null where it is not there. Secret values are not shown."""

    part = fields.String(
        validate=validate.OneOf(
            (
                "image",
                *upgrade_plan.CREATED_WITH,
                "network",
                "env",
                "resources",
                "ports",
                *upgrade_plan.OTHERS,
            )
        )
    )
    name = fields.String(allow_none=True, metadata={"description": "of the variable, resource or port"})
    before = fields.Raw(allow_none=True)
    after = fields.Raw(allow_none=True)
    needs_container = fields.Boolean()


class UpgradePlan(Schema):
    """What an upgrade would change."""

    before = fields.Integer(metadata={"description": "the workspace's revision"})
    after = fields.Integer(metadata={"description": "the newest revision of its template"})
    container = fields.String(
        validate=validate.OneOf(("none", "kept", "replaced")),
        metadata={"description": "replaced: what is installed in it is lost"},
    )
    changes = fields.List(fields.Nested(UpgradeChange))


LIVE_USE = page_of(LiveUse, "LiveUseList")
WORKSPACE = Workspace()
WORKSPACES = page_of(Workspace, "WorkspacePage")
