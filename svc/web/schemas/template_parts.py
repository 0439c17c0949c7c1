"""The parts of a template: what it needs of GPUs, its launchers, ports and mounts.

Here each part is checked by itself; what parts say of one another and of this
host (a launcher's port, a mount's root) is the domain's, for a patch names
only some of them.
"""

from __future__ import annotations

import re
from typing import Any

from marshmallow import Schema, fields, post_load, validate, validates, validates_schema
from marshmallow.exceptions import ValidationError

from svc.limits import (
    ENV_COUNT_MAX,
    IDLE_MINUTES_MAX,
    IDLE_MINUTES_MIN,
    LAUNCHERS_MAX,
    MOUNTS_MAX,
    PORTS_MAX,
)
from svc.web.schemas.fields import Command, Flag, Raw, Slug, Text, Whole
from svc.web.schemas.resources import Variable, WithEnv
from svc_helper.wire.limits import SIZE_MAX

TITLE_MAX, PATH_MAX, ROOT_MAX = 128, 255, 64
WORK = "/work"  # where every workspace has its owner's `work`
# What an image needs as it is to run at all, and what a container has from the host.
SYSTEM = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys",
    "/usr", "/var/run",
)  # fmt: skip

_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[^/\x00-\x1f\x7f\ud800-\udfff]+)+")


def _version(example: str, minor_digits: int, **options: Any) -> fields.String:
    """A version of two numbers, as a text: 12.10 is another one than 12.1."""
    wrong = f'Use a text like "{example}".'
    rule = validate.Regexp(rf"[1-9][0-9]?\.[0-9]{{1,{minor_digits}}}\Z", error=wrong)
    return fields.String(allow_none=True, validate=rule, error_messages={"invalid": wrong}, **options)


class Gpu(Schema):
    """What a template needs of GPUs; null or left out needs nothing in particular."""

    min_cuda = _version("12.4", 2, metadata={"description": "what the host's driver has to support"})
    min_vram_bytes = Whole(1, SIZE_MAX, allow_none=True, metadata={"description": "of each GPU"})
    min_compute_capability = _version("8.0", 1)
    allow_shared = Flag(metadata={"description": "whether a workspace may share its GPUs"})


class Launcher(WithEnv):
    """A named app, started inside the container."""

    name = Slug(required=True)
    title = Text(TITLE_MAX, load_default="")
    command = Command(required=True)
    env = fields.List(fields.Nested(Variable), load_default=list, validate=validate.Length(max=ENV_COUNT_MAX))
    port = Slug(
        load_default=None, allow_none=True, metadata={"description": "the name of the port it serves"}
    )
    autostart = Flag(load_default=False, metadata={"description": "with every start of the workspace"})


class Port(Schema):
    """A port inside the container, by a name."""

    name = Slug(required=True)
    container_port = Whole(1, 65535, required=True)


class Mount(Schema):
    """A file root of the host in the container; /work is there without being named."""

    root = Raw(ROOT_MAX, 1, required=True, metadata={"description": "one of the host's file roots"})
    path = Raw(PATH_MAX, 1, required=True, metadata={"description": "where, in the container"})
    read_only = Flag(load_default=False)

    @validates("path")
    def is_free(self, path: str, **_: Any) -> None:
        """Refuse a path that is not whole and plain, or that the container needs itself."""
        if not _PATH.fullmatch(path):
            raise ValidationError("Use an absolute path without empty parts, . and .., like /data.")
        for taken in (WORK, *SYSTEM):
            if _is_below(path, taken):
                raise ValidationError(f"{taken} is the container's own; use another path, like /data.")


class Idle(Schema):
    """What happens with a workspace in which nothing happens: off by default, to notify where it is on."""

    action = fields.String(load_default="notify", validate=validate.OneOf(("none", "notify", "stop")))
    after_minutes = Whole(
        IDLE_MINUTES_MIN,
        IDLE_MINUTES_MAX,
        load_default=None,
        allow_none=True,
        metadata={"description": "of quiet: no GPU, CPU, terminal, exec or port traffic"},
    )

    @validates_schema(skip_on_field_errors=True)
    def has_its_minutes(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse an action without a time."""
        if data["action"] != "none" and data["after_minutes"] is None:
            raise ValidationError({"after_minutes": ["Say after how many minutes, such as 60."]})

    @post_load
    def off_is_nothing(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Have one document for a policy that is switched off, said or not."""
        return {} if data["action"] == "none" else data


class WithParts(Schema):
    """`gpu`, `launchers`, `ports`, `mounts`, `idle`: every name once, no mount inside another."""

    gpu = fields.Nested(Gpu)
    launchers = fields.List(fields.Nested(Launcher), validate=validate.Length(max=LAUNCHERS_MAX))
    ports = fields.List(fields.Nested(Port), validate=validate.Length(max=PORTS_MAX))
    mounts = fields.List(fields.Nested(Mount), validate=validate.Length(max=MOUNTS_MAX))
    idle = fields.Nested(Idle)

    @validates_schema(skip_on_field_errors=True)
    def each_name_and_place_once(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse two of one name, and mounts of which one would hide in the other."""
        wrong: dict[str, dict[int, dict[str, list[str]]]] = {}
        for part in ("launchers", "ports"):
            names = [one["name"] for one in data.get(part, [])]
            twice = [number for number, name in enumerate(names) if name in names[:number]]
            if twice:
                wrong[part] = {number: {"name": [f"{names[number]} is there twice."]} for number in twice}
        paths = [one["path"] for one in data.get("mounts", [])]
        for number, path in enumerate(paths):
            other = next((one for one in paths[:number] if _is_below(path, one) or _is_below(one, path)), "")
            if other:
                where = {"path": [f"A mount inside another ({other}) is not possible."]}
                wrong.setdefault("mounts", {})[number] = where
        if wrong:
            raise ValidationError(wrong)


def _is_below(path: str, other: str) -> bool:
    return f"{path}/".startswith(f"{other}/")
