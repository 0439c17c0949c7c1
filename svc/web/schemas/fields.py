"""Fields without conversions: numbers, booleans and strings are accepted as such only."""

from __future__ import annotations

import math
import re
import unicodedata
from binascii import a2b_base64
from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, validate

from svc.domain.plain_text import is_plain
from svc.host.ids import ALPHABET, LENGTH
from svc_helper.wire.limits import (
    ARGUMENT_NAME,
    ENV_NAME,
    ENV_VALUE_MAX,
    EXEC_ARG_COST,
    EXEC_ARG_MAX,
    EXEC_ARGS_BYTES_MAX,
    EXEC_ARGS_MAX,
    EXEC_COMMAND_BYTES_MAX,
    SLUG,
)


def matching(pattern: str, error: str) -> validate.Regexp:
    """A validator: the pattern must match the whole value."""
    return validate.Regexp(rf"^{pattern}\Z", error=error)


def duplicates(items: list[dict[str, Any]]) -> dict[int, dict[str, list[str]]]:
    """The errors for items that have the name of an earlier one, by index."""
    names = [item["name"] for item in items]
    return {
        number: {"name": [f"{name} is listed twice."]}
        for number, name in enumerate(names)
        if name in names[:number]
    }


class Whole(fields.Integer):
    """A JSON whole number (no bool, no 1.0, no "1") in a range."""

    def __init__(self, low: int, high: int, **options: Any) -> None:
        super().__init__(strict=True, validate=validate.Range(low, high), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> int:
        if type(value) is not int:
            raise ValidationError("Not a whole number.")
        return value


class Number(fields.Float):
    """A finite JSON number (no bool, no "1") in a range."""

    def __init__(self, low: float, high: float, **options: Any) -> None:
        super().__init__(allow_nan=False, validate=validate.Range(low, high), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> float:
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ValidationError("Not a number.")
        return float(value)


class QueryNumber(fields.Integer):
    """A whole number in a query: decimal digits only, in a range."""

    def __init__(self, low: int, high: int, **options: Any) -> None:
        super().__init__(validate=validate.Range(low, high), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> int:
        if not isinstance(value, str) or not value.isascii() or not value.isdigit() or len(value) > 18:
            raise ValidationError("Not a whole number.")
        return int(value)


class QueryFlag(fields.String):
    """true or false in a query (also 1 or 0); loads into a bool."""

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> Any:
        if value not in ("true", "false", "1", "0"):
            raise ValidationError("Use true or false.")
        return value in ("true", "1")


class Flag(fields.Boolean):
    """JSON true or false only."""

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> bool:
        if type(value) is not bool:
            raise ValidationError("Not true or false.")
        return value


class Text(fields.String):
    """One line of text without control, direction and invisible characters, in NFC."""

    def __init__(self, most: int, least: int = 0, **options: Any) -> None:
        super().__init__(validate=validate.Length(least, most), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> str:
        if type(value) is not str:
            raise ValidationError("Not a string.")
        text = unicodedata.normalize("NFC", value)
        if not is_plain(text):
            raise ValidationError("Contains a control, direction or invisible character.")
        return text


class Raw(fields.String):
    """A string without NUL, otherwise unchecked: an argument of a command, the value of a variable."""

    def __init__(self, most: int, least: int = 0, **options: Any) -> None:
        super().__init__(validate=validate.Length(least, most), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> str:
        if type(value) is not str or "\0" in value:
            raise ValidationError("Not a string without NUL.")
        return value


COMMAND_ARGUMENT_MAX = 4096  # of a main command
ARG_TOO_LONG = (
    f"A word of {{}} bytes; Linux passes at most {EXEC_ARG_MAX} in one: upload it as a file below /work"
)
COMMAND_TOO_LONG = (
    f"{{}} words take {{:.1f}} MiB, nine bytes for each included; Linux passes at most"
    f" {EXEC_COMMAND_BYTES_MAX >> 20} MiB to a program. Let a shell in the workspace find the names:"
    " sh -c 'COMMAND /work/*'"
)


class Command(fields.List[str]):
    """A command as a list of arguments that fits one message to the helper; `program`: the first is one."""

    def __init__(
        self, argument_max: int = EXEC_ARGS_BYTES_MAX, *, program: bool = True, **options: Any
    ) -> None:
        self.program = program
        length = validate.Length(1, EXEC_ARGS_MAX)
        super().__init__(Raw(argument_max), validate=(length, self._require_fitting), **options)

    def _require_fitting(self, command: list[str]) -> None:
        if self.program and command and not command[0]:
            raise ValidationError("The name of the program is empty.")
        if sum(len(argument.encode()) for argument in command) > EXEC_ARGS_BYTES_MAX:
            raise ValidationError(f"At most {EXEC_ARGS_BYTES_MAX} bytes in total.")


class SecretBytes(fields.Field[bytes]):
    """Bytes in base64, which no message repeats."""

    def __init__(self, **options: Any) -> None:
        super().__init__(metadata={"type": "string", "format": "byte", "description": "base64"}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> bytes:
        try:
            if type(value) is str:
                return a2b_base64(value, strict_mode=True)
        except ValueError:
            pass
        raise ValidationError("Not base64.")


class ExecCommand(fields.List[str]):
    """A command as the kernel takes it: any number of words, within its limits for each and for all."""

    items_max = EXEC_COMMAND_BYTES_MAX // EXEC_ARG_COST

    def __init__(self, **options: Any) -> None:
        super().__init__(fields.String(), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> Any:
        if type(value) is not list or not value:
            raise ValidationError("Not a list of words, the first of which is the program.")
        taken = 0
        for number, argument in enumerate(value):  # up to the first mistake: there may be 200,000 words
            if type(argument) is not str or "\0" in argument:
                raise ValidationError({number: ["Not a string without NUL."]})
            size = len(argument.encode())
            if size > EXEC_ARG_MAX:
                raise ValidationError({number: [ARG_TOO_LONG.format(size)]})
            taken += size + EXEC_ARG_COST
        if not value[0]:
            raise ValidationError("The name of the program is empty.")
        if taken > EXEC_COMMAND_BYTES_MAX:
            raise ValidationError(COMMAND_TOO_LONG.format(len(value), taken / 2**20))
        return value


class Slug(fields.String):
    """A name: a-z, 0-9 and - (inside), at most 63 characters.

    Never one of the `reserved` paths, nor what could be an id with the prefix `ids`,
    by which the same commands find another object.
    """

    def __init__(self, reserved: tuple[str, ...] = (), ids: str = "", **options: Any) -> None:
        free = validate.NoneOf(reserved, error="This name is reserved.")
        rule = matching(SLUG, "Use a-z, 0-9 and - (inside), at most 63.")
        self.an_id = re.compile(f"{ids}-[{ALPHABET}]{{{LENGTH}}}") if ids else None
        super().__init__(validate=[rule, free, self._require_no_id], **options)

    def _require_no_id(self, name: str) -> None:
        if self.an_id and self.an_id.fullmatch(name):
            raise ValidationError("It has the form of an id; choose another name.")


def main_command_field(described: str) -> Command:
    """The command that a workspace runs, or arguments for the image's own."""
    return Command(COMMAND_ARGUMENT_MAX, program=False, allow_none=True, metadata={"description": described})


def network_field() -> Slug:
    """A network of the owner's workspaces; null for none."""
    described = "on which workspaces of one owner reach each other by name; null for none"
    return Slug(("none",), allow_none=True, metadata={"description": described})


class VariableName(fields.String):
    """The name of an environment variable, as container engines take it."""

    pattern, rule = ENV_NAME, "Use A-Z, a-z, 0-9, _, . and -, at most 128; begin with a letter or _."

    def __init__(self, **options: Any) -> None:
        super().__init__(validate=matching(self.pattern, self.rule), **options)


class ArgumentName(VariableName):
    """The name of an ARG of a Dockerfile."""

    pattern, rule = ARGUMENT_NAME, "Use A-Z, a-z, 0-9 and _, at most 64."


def variable_value(**options: Any) -> Raw:
    """The value of an environment variable."""
    return Raw(ENV_VALUE_MAX, **options)
