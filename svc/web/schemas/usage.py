"""Usage, capacity, recommendations and the host's hardware, as they are shown."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.limits import GPU_USE_CASES
from svc.web.schemas.fields import Text
from svc.web.schemas.quotas import UNLIMITED, Quota
from svc.web.schemas.resources import Resources

GPU_STATES = ("free", "leased", "shared", "busy", "lost", "unusable")
BLOCKS = ("no_gpu", "template", "quota", "gpu_busy")
STANDARD = "standard"


class Amounts(Schema):
    """What a user has, as a quota counts it."""

    workspaces = fields.Integer()
    running = fields.Integer(metadata={"description": "workspaces that run, start or stop"})
    gpus = fields.Integer()
    cpu = fields.Float(metadata={"description": "cores that what runs may use"})
    memory_bytes = fields.Integer(metadata={"description": "what runs may use"})
    image_bytes = fields.Integer(metadata={"description": "as last seen; shared layers count with each"})


class Usage(Amounts):
    """What the caller has, and the policy that it counts against."""

    quota = fields.Nested(Quota)


class Remaining(Schema):
    """What a quota has left."""

    workspaces = fields.Integer(allow_none=True, metadata=UNLIMITED)
    running = fields.Integer(allow_none=True, metadata=UNLIMITED)
    gpus = fields.Integer(allow_none=True, metadata=UNLIMITED)
    cpu = fields.Float(allow_none=True, metadata=UNLIMITED)
    memory_bytes = fields.Integer(allow_none=True, metadata=UNLIMITED)
    image_bytes = fields.Integer(allow_none=True, metadata=UNLIMITED)


class HostCapacity(Schema):
    """The machine itself."""

    cpus = fields.Integer()
    memory_bytes = fields.Integer()
    gpus = fields.Integer()
    gpus_free = fields.Integer()


class GpuHolder(Schema):
    """Who has a GPU: a workspace, or something that a Linux user runs outside svc."""

    owner = fields.String()
    workspace = fields.String(allow_none=True, metadata={"description": "the caller's own only"})
    outside = fields.Boolean()
    mine = fields.Boolean()


class GpuCapacity(Schema):
    """A GPU and its holders."""

    uuid = fields.String()
    model = fields.String(allow_none=True)
    vram_bytes = fields.Integer(allow_none=True)
    state = fields.String(validate=validate.OneOf(GPU_STATES))
    mode = fields.String(allow_none=True, metadata={"description": "exclusive or shared, of its leases"})
    holders = fields.List(fields.Nested(GpuHolder))


class Capacity(Schema):
    """Quota, what is used and left of it, the host, and who holds which GPU."""

    quota = fields.Nested(Quota)
    used = fields.Nested(Amounts)
    remaining = fields.Nested(Remaining)
    host = fields.Nested(HostCapacity)
    gpus = fields.List(fields.Nested(GpuCapacity))


class RecommendWish(Schema):
    """From which template, for what use of GPUs."""

    template = Text(64, 1, required=True, metadata={"description": "the template's id or name"})
    gpu_use_case = fields.String(load_default=STANDARD, validate=validate.OneOf(GPU_USE_CASES))


class TemplateOfRecommendation(Schema):
    """The template that was asked about."""

    id = fields.String()
    name = fields.String()


class Alternative(Schema):
    """Another level, and what it would be."""

    gpu_use_case = fields.String(validate=validate.OneOf(GPU_USE_CASES))
    resources = fields.Nested(Resources)
    allocatable_now = fields.Boolean()


class Recommendation(Alternative):
    """What to make a workspace with; nothing is reserved."""

    template = fields.Nested(TemplateOfRecommendation)
    blocked_by = fields.String(allow_none=True, validate=validate.OneOf(BLOCKS))
    alternatives = fields.List(fields.Nested(Alternative))
    command = fields.String()


class HostGpu(Schema):
    """One GPU, or one MIG instance of one."""

    index = fields.Integer()
    uuid = fields.String()
    model = fields.String()
    vram_bytes = fields.Integer(allow_none=True)
    compute_capability = fields.String(allow_none=True)
    mig = fields.Boolean(metadata={"description": "cut into instances, or one of them"})
    cdi = fields.String(allow_none=True, metadata={"description": "by which a container gets it"})


class CdiState(Schema):
    """Whether the installed CDI specifications fit; if not, why, and what mends it."""

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
