"""Usage, capacity, recommendations and the hardware of the host."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.limits import GPU_USE_CASES
from svc.web.schemas.errors import ErrorAction
from svc.web.schemas.fields import Text
from svc.web.schemas.quotas import UNLIMITED, Quota
from svc.web.schemas.resources import Resources

GPU_STATES = ("free", "leased", "shared", "busy", "lost", "unusable")
BLOCKS = ("no_gpu", "template", "quota", "gpu_busy")
STANDARD = "standard"


class Amounts(Schema):
    """What a user has, as quotas count it."""

    workspaces = fields.Integer()
    running = fields.Integer(metadata={"description": "running, starting or stopping workspaces"})
    gpus = fields.Integer()
    cpu = fields.Float(metadata={"description": "cores of running workspaces"})
    memory_bytes = fields.Integer(metadata={"description": "of running workspaces"})
    image_bytes = fields.Integer(
        metadata={"description": "together, when the store was last read; shared layers count once"}
    )


class Usage(Amounts):
    """What the caller has, and the quota policy."""

    quota = fields.Nested(Quota)


class Remaining(Schema):
    """The rest of a quota."""

    workspaces = fields.Integer(allow_none=True, metadata=UNLIMITED)
    running = fields.Integer(allow_none=True, metadata=UNLIMITED)
    gpus = fields.Integer(allow_none=True, metadata=UNLIMITED)
    cpu = fields.Float(allow_none=True, metadata=UNLIMITED)
    memory_bytes = fields.Integer(allow_none=True, metadata=UNLIMITED)
    image_bytes = fields.Integer(allow_none=True, metadata=UNLIMITED)


class HostCapacity(Schema):
    """The host as a whole."""

    cpus = fields.Integer()
    memory_bytes = fields.Integer()
    gpus = fields.Integer()
    gpus_free = fields.Integer()


class GpuHolder(Schema):
    """The user of a GPU: a workspace, or a process of a Linux user outside svc."""

    owner = fields.String()
    workspace = fields.String(
        allow_none=True,
        metadata={"description": "its name; others' only for administrators"},
    )
    workspace_id = fields.String(allow_none=True, metadata={"description": "as `workspace`"})
    since = fields.DateTime(allow_none=True, metadata={"description": "of the lease"})
    outside = fields.Boolean()
    mine = fields.Boolean()


class OutsideProcess(Schema):
    """A process outside svc on a GPU."""

    pid = fields.Integer()
    owner = fields.String()
    used_bytes = fields.Integer(allow_none=True)


class GpuCapacity(Schema):
    """A GPU and its holders."""

    index = fields.Integer(allow_none=True, metadata={"description": "as in servers/hardware; null if lost"})
    uuid = fields.String()
    model = fields.String(allow_none=True)
    vram_bytes = fields.Integer(allow_none=True)
    used_bytes = fields.Integer(allow_none=True, metadata={"description": "of its memory, by all programs"})
    use_percent = fields.Integer(
        allow_none=True, metadata={"description": "of the last second; null for MIG instances"}
    )
    state = fields.String(validate=validate.OneOf(GPU_STATES))
    mode = fields.String(allow_none=True, metadata={"description": "exclusive or shared, of its leases"})
    holders = fields.List(fields.Nested(GpuHolder))
    processes = fields.List(
        fields.Nested(OutsideProcess), metadata={"description": "outside svc; at most 100"}
    )


class Capacity(Schema):
    """Quota, usage and rest of it, the host, and the users of each GPU."""

    quota = fields.Nested(Quota)
    used = fields.Nested(Amounts)
    remaining = fields.Nested(Remaining)
    host = fields.Nested(HostCapacity)
    gpus = fields.List(fields.Nested(GpuCapacity))


class RecommendRequest(Schema):
    """The template and the use of GPUs."""

    template = Text(64, 1, required=True, metadata={"description": "the template's id or name"})
    gpu_use_case = fields.String(load_default=STANDARD, validate=validate.OneOf(GPU_USE_CASES))


class TemplateOfRecommendation(Schema):
    """The requested template."""

    id = fields.String()
    name = fields.String()


class Alternative(Schema):
    """A level of GPU use and its resources."""

    gpu_use_case = fields.String(validate=validate.OneOf(GPU_USE_CASES))
    resources = fields.Nested(Resources)
    allocatable_now = fields.Boolean()


class Recommendation(Alternative):
    """The recommended resources of a workspace; nothing is reserved."""

    template = fields.Nested(TemplateOfRecommendation)
    blocked_by = fields.String(allow_none=True, validate=validate.OneOf(BLOCKS))
    message = fields.String(allow_none=True, metadata={"description": "why it is not possible now"})
    hint = fields.String(allow_none=True, metadata={"description": "the next command"})
    action = fields.Nested(ErrorAction, allow_none=True)
    alternatives = fields.List(fields.Nested(Alternative))
    command = fields.String(metadata={"description": "the commands that set it up and start it"})


class Block(Schema):
    """One thing that is in the way of a workspace."""

    code = fields.String(metadata={"description": "of the error with which its create or start would fail"})
    message = fields.String()
    hint = fields.String(metadata={"description": "the command after which it is no longer in the way"})
    action = fields.Nested(ErrorAction, allow_none=True)


class GpuOfDryRun(Schema):
    """A GPU that a start would take now."""

    index = fields.Integer(allow_none=True)
    uuid = fields.String()
    model = fields.String(allow_none=True)


class CheckedWorkspace(Schema):
    """Whether exactly these resources can be had now; nothing is created or reserved."""

    allocatable_now = fields.Boolean()
    blocked_by = fields.List(fields.Nested(Block))
    template = fields.Nested(TemplateOfRecommendation)
    resources = fields.Nested(Resources)
    image_status = fields.String(metadata={"description": "without its image it is created, but not started"})
    gpus = fields.List(fields.Nested(GpuOfDryRun))
    quota = fields.Nested(Quota)
    used = fields.Nested(Amounts)
    after = fields.Nested(Amounts, metadata={"description": "what is used once it runs"})
    remaining = fields.Nested(Remaining, metadata={"description": "of the quota then"})


class HostGpu(Schema):
    """A GPU or a MIG instance."""

    index = fields.Integer()
    uuid = fields.String()
    model = fields.String()
    vram_bytes = fields.Integer(allow_none=True)
    compute_capability = fields.String(allow_none=True)
    mig = fields.Boolean(metadata={"description": "divided into instances, or one of them"})
    cdi = fields.String(allow_none=True, metadata={"description": "its CDI name for containers"})


class CdiState(Schema):
    """Whether the installed CDI specifications are up to date; if not, why, and the remedy."""

    ready = fields.Boolean()
    problem = fields.String(allow_none=True)
    remedy = fields.String(allow_none=True)


class HostHardware(Schema):
    """The host's GPU driver, the newest CUDA version that it supports, and its GPUs."""

    provider = fields.String(metadata={"description": "nvml, file or none"})
    driver = fields.String(allow_none=True)
    max_cuda = fields.String(allow_none=True)
    gpus = fields.List(fields.Nested(HostGpu))
    cdi = fields.Nested(CdiState)
