"""A snapshot of what a running workspace uses."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.domain.workspaces.monitor import SOURCES


class GpuProcess(Schema):
    """A process of the workspace on a GPU."""

    pid = fields.Integer(metadata={"description": "its pid on the host"})
    used_bytes = fields.Integer(allow_none=True)


class GpuSample(Schema):
    """A GPU that the workspace leased, or that its processes use."""

    uuid = fields.String()
    model = fields.String(allow_none=True)
    vram_bytes = fields.Integer(allow_none=True)
    used_bytes = fields.Integer(metadata={"description": "by this workspace"})
    utilization_percent = fields.Integer(allow_none=True, metadata={"description": "by all its processes"})
    processes = fields.List(fields.Nested(GpuProcess))


class ProcessSample(Schema):
    """One process of the workspace."""

    pid = fields.Integer(metadata={"description": "its pid on the host"})
    parent = fields.Integer()
    command = fields.String()
    cpu_percent = fields.Float(metadata={"description": "of one core"})
    memory_bytes = fields.Integer()


class Snapshot(Schema):
    """CPU, memory, GPUs and the busiest processes; limits are those in force, null means none."""

    at = fields.DateTime()
    source = fields.String(
        validate=validate.OneOf(SOURCES),
        metadata={"description": "cgroup: the kernel's own count; proc: the sum over the processes"},
    )
    cpu_percent = fields.Float(metadata={"description": "of one core"})
    sampled_ms = fields.Integer(metadata={"description": "CPU use is that of so many milliseconds before"})
    cpu_limit = fields.Float(allow_none=True, metadata={"description": "cores"})
    memory_bytes = fields.Integer()
    memory_limit_bytes = fields.Integer(allow_none=True)
    pids = fields.Integer()
    pids_limit = fields.Integer(allow_none=True)
    gpus = fields.List(fields.Nested(GpuSample))
    processes = fields.List(fields.Nested(ProcessSample))
    more_processes = fields.Integer()
