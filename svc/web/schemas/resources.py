"""Resources and variables, as workspaces and templates share them."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields, validate, validates_schema
from marshmallow.exceptions import ValidationError

from svc.domain.quotas.resources import UNLIMITED
from svc.web.schemas.fields import Number, VariableName, Whole, duplicates, variable_value
from svc_helper.wire.limits import (
    CPU_MAX,
    ENV_COUNT_MAX,
    GPUS_MAX,
    MEMORY_MIN,
    PIDS_MAX,
    RUN_AS_MAX,
    SHM_MIN,
    SIZE_MAX,
)

CPU_MIN = 0.01


def described(text: str = "") -> dict[str, str]:
    """The description of a requested resource."""
    return {"description": f'{text + "; " if text else ""}also "{UNLIMITED}"'}


class Limits(Schema):
    """The maximum of each resource; null or a missing key means no limit."""

    cpu_limit = Number(CPU_MIN, float(CPU_MAX), allow_none=True, metadata={"description": "cores"})
    memory_bytes = Whole(MEMORY_MIN, SIZE_MAX, allow_none=True)
    shm_bytes = Whole(SHM_MIN, SIZE_MAX, allow_none=True, metadata={"description": "size of /dev/shm"})
    pids_limit = Whole(1, PIDS_MAX, allow_none=True)
    gpu_count = Whole(0, GPUS_MAX)


class Resources(Limits):
    """The resources of a workspace; null means no limit."""

    gpu_mode = fields.String(validate=validate.OneOf(["exclusive", "shared"]))


class _OrUnlimited:
    """A field that also takes "unlimited"."""

    def deserialize(self, value: Any, *arguments: Any, **more: Any) -> Any:
        """The word as it is, everything else as the field has it."""
        if value == UNLIMITED:
            return value
        return super().deserialize(value, *arguments, **more)  # type: ignore[misc]  # a field stands behind it


class NumberOrUnlimited(_OrUnlimited, Number):
    """A number in a range, or "unlimited"."""


class WholeOrUnlimited(_OrUnlimited, Whole):
    """A whole number in a range, or "unlimited"."""


class ResourcesRequest(Schema):
    """The requested resources: null means the template's default, "unlimited" no limit."""

    cpu_limit = NumberOrUnlimited(CPU_MIN, float(CPU_MAX), allow_none=True, metadata=described("cores"))
    memory_bytes = WholeOrUnlimited(MEMORY_MIN, SIZE_MAX, allow_none=True, metadata=described())
    shm_bytes = WholeOrUnlimited(SHM_MIN, SIZE_MAX, allow_none=True, metadata=described("size of /dev/shm"))
    pids_limit = WholeOrUnlimited(1, PIDS_MAX, allow_none=True, metadata=described())
    gpu_count = Whole(0, GPUS_MAX, allow_none=True)
    gpu_mode = fields.String(validate=validate.OneOf(["exclusive", "shared"]), allow_none=True)


class Variable(Schema):
    """One environment variable."""

    name = VariableName(required=True)
    value = variable_value(required=True)


class RunAs(Schema):
    """The ids inside the container that map to the user outside."""

    uid = Whole(0, RUN_AS_MAX, required=True)
    gid = Whole(0, RUN_AS_MAX, required=True)


class WithEnv(Schema):
    """`env`, each name once."""

    env = fields.List(fields.Nested(Variable), validate=validate.Length(max=ENV_COUNT_MAX))

    @validates_schema(skip_on_field_errors=True)
    def each_name_once(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse a duplicate name."""
        if errors := duplicates(data.get("env", [])):
            raise ValidationError({"env": errors})


class Defaults(Resources, WithEnv):
    """The defaults of a workspace."""
