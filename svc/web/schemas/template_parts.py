"""The parts of a template: its GPU requirements, launchers, ports, mounts and idle policy.

Each part is validated by itself; the domain checks references between parts
and to this host (the port of a launcher, the root of a mount), since a patch
may contain only some of them.
"""

from __future__ import annotations

import re
from typing import Any

from marshmallow import Schema, fields, post_load, validate, validates, validates_schema
from marshmallow.exceptions import ValidationError

from svc.domain.templates.parts import PORT_DEFAULTS
from svc.limits import IDLE_MINUTES_MAX, IDLE_MINUTES_MIN, LAUNCHERS_MAX, PORTS_MAX
from svc.web.schemas.fields import Command, Flag, Raw, Slug, Text, Whole, duplicates, matching
from svc.web.schemas.ports import PortAdd
from svc.web.schemas.resources import Variable, WithEnv
from svc_helper.wire.limits import ENV_COUNT_MAX, MOUNTS_MAX, PLACEHOLDER, SIZE_MAX, TOKEN_PATTERN_MAX

TITLE_MAX, PATH_MAX, ROOT_MAX = 128, 255, 64
WORK = "/work"  # where every workspace has its owner's `work`
# What the image or the runtime provides in each container.
SYSTEM = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys",
    "/usr", "/var/run",
)  # fmt: skip

_LINK = re.compile(r"/[!-~]*")
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[^/\x00-\x1f\x7f\ud800-\udfff]+)+")


def _version(example: str, minor_digits: int, **options: Any) -> fields.String:
    """A version of two numbers, as a string: 12.10 differs from 12.1."""
    error = f'Use a string like "{example}".'
    rule = matching(rf"[1-9][0-9]?\.[0-9]{{1,{minor_digits}}}", error)
    return fields.String(allow_none=True, validate=rule, error_messages={"invalid": error}, **options)


class Gpu(Schema):
    """The GPU requirements of a template; null or a missing key means none."""

    min_cuda = _version("12.4", 2, metadata={"description": "that the driver of the host must support"})
    min_vram_bytes = Whole(1, SIZE_MAX, allow_none=True, metadata={"description": "of each GPU"})
    min_compute_capability = _version("8.0", 1)
    allow_shared = Flag(metadata={"description": "whether workspaces may share their GPUs"})


class LauncherToken(Schema):
    """Where a launcher's login token is: in its output, or in a file inside."""

    pattern = Raw(
        TOKEN_PATTERN_MAX, 1,
        metadata={"description": "literal text around {token}, on one line of the output or of the file"},
    )  # fmt: skip
    file = Raw(
        PATH_MAX, 1, metadata={"description": "absolute, in the container; without a pattern: its first line"}
    )
    link = Raw(
        TOKEN_PATTERN_MAX, 1,
        metadata={"description": "the path with {token} behind the URL of its port, to open"},
    )  # fmt: skip

    @validates_schema(skip_on_field_errors=True)
    def can_be_found(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse one that says nowhere to look, or does not say what of it is the token."""
        if not {"pattern", "file"} & set(data):
            raise ValidationError({"pattern": [f"Name a pattern, such as token={PLACEHOLDER}, or a file."]})
        for key in {"pattern", "link"} & set(data):
            if data[key].count(PLACEHOLDER) != 1 or not data[key].isprintable():
                raise ValidationError({key: [f"Use {PLACEHOLDER} once, on one line."]})
        if not _LINK.fullmatch(data.get("link", f"/{PLACEHOLDER}")):
            raise ValidationError({"link": [f"Use a path, such as /?token={PLACEHOLDER}."]})
        if "file" in data and not _PATH.fullmatch(data["file"]):
            raise ValidationError({"file": ["Use an absolute path without empty parts, . and .."]})


class Launcher(WithEnv):
    """A named app inside the container."""

    name = Slug(required=True)
    title = Text(TITLE_MAX, load_default="")
    command = Command(required=True)
    env = fields.List(fields.Nested(Variable), load_default=list, validate=validate.Length(max=ENV_COUNT_MAX))
    port = Slug(
        load_default=None, allow_none=True, metadata={"description": "the name of the port that it serves"}
    )
    autostart = Flag(load_default=False, metadata={"description": "at every start of the workspace"})
    token = fields.Nested(LauncherToken)


class Port(PortAdd):
    """A named port inside the container."""

    @post_load
    def defaults_are_nothing(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Store a default like a missing key, as earlier documents have it."""
        return {key: value for key, value in data.items() if (key, value) not in PORT_DEFAULTS.items()}


class Mount(Schema):
    """A file root of the host in the container; /work is always mounted."""

    root = Raw(ROOT_MAX, 1, required=True, metadata={"description": "one of the host's file roots"})
    path = Raw(PATH_MAX, 1, required=True, metadata={"description": "in the container"})
    read_only = Flag(load_default=False)

    @validates("path")
    def is_free(self, path: str, **_: Any) -> None:
        """Refuse a path that is not absolute and normalised, or that the container needs itself."""
        if not _PATH.fullmatch(path):
            raise ValidationError("Use an absolute path without empty parts, . and .., such as /data.")
        for taken in (WORK, *SYSTEM):
            if _is_below(path, taken):
                raise ValidationError(f"{taken} belongs to the container; use another path, such as /data.")


class Idle(Schema):
    """The action for an idle workspace: off by default, otherwise to notify."""

    action = fields.String(load_default="notify", validate=validate.OneOf(("none", "notify", "stop")))
    after_minutes = Whole(
        IDLE_MINUTES_MIN, IDLE_MINUTES_MAX, load_default=None, allow_none=True,
        metadata={"description": "without GPU, CPU, terminal, exec or port traffic"},
    )  # fmt: skip

    @validates_schema(skip_on_field_errors=True)
    def has_its_minutes(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse an action without a duration."""
        if data["action"] != "none" and data["after_minutes"] is None:
            raise ValidationError({"after_minutes": ["Set after how many minutes, such as 60."]})

    @post_load
    def off_is_nothing(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Store a disabled policy like a missing one."""
        return {} if data["action"] == "none" else data


class WithParts(Schema):
    """`gpu`, `launchers`, `ports`, `mounts`, `idle`: each name once, no mount inside another."""

    gpu = fields.Nested(Gpu)
    launchers = fields.List(fields.Nested(Launcher), validate=validate.Length(max=LAUNCHERS_MAX))
    ports = fields.List(fields.Nested(Port), validate=validate.Length(max=PORTS_MAX))
    mounts = fields.List(fields.Nested(Mount), validate=validate.Length(max=MOUNTS_MAX))
    idle = fields.Nested(Idle)

    @validates_schema(skip_on_field_errors=True)
    def each_name_and_place_once(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse duplicate names, and mounts of which one would hide the other."""
        errors = {part: duplicates(data.get(part, [])) for part in ("launchers", "ports")} | {"mounts": {}}
        paths = [one["path"] for one in data.get("mounts", [])]
        for number, path in enumerate(paths):
            other = next((one for one in paths[:number] if _is_below(path, one) or _is_below(one, path)), "")
            if other:
                errors["mounts"][number] = {"path": [f"A mount cannot be inside another ({other})."]}
        if any(errors.values()):
            raise ValidationError({part: found for part, found in errors.items() if found})


def _is_below(path: str, other: str) -> bool:
    return f"{path}/".startswith(f"{other}/")
