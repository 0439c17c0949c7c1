"""Parser for Dockerfiles that reads them as the host's Podman does, before anything of them runs.

The rules are those of buildah 1.28 (in Podman 4.3): it joins lines and removes quotes
from flags. Ambiguous text is refused, and heredocs, which newer ones have.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from svc.errors import ValidationFailed, invalid_field
from svc.limits import (
    BUNDLE_DOCKERFILE_MAX,
    DOCKERFILE_INSTRUCTIONS_MAX,
    DOCKERFILE_LINE_MAX,
    DOCKERFILE_STAGES_MAX,
)
from svc_helper.wire.limits import IMAGE_REF_MAX

FIELD = "source.dockerfile"
INSTRUCTIONS = {
    "ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER",
    "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
}  # fmt: skip
FLAGS = {
    "FROM": ("--platform",),
    "RUN": ("--mount",),
    "COPY": ("--from", "--chown", "--chmod"),
    "ADD": ("--chown", "--chmod"),
    "HEALTHCHECK": ("--interval", "--timeout", "--start-period", "--retries"),
}
NEVER_TRIGGERED = ("FROM", "MAINTAINER", "ONBUILD")  # buildah's own rule for ONBUILD
PLATFORM_ARGUMENTS = frozenset(
    f"{side}{part}" for side in ("TARGET", "BUILD") for part in ("PLATFORM", "OS", "ARCH", "VARIANT")
)
RESERVED_STAGES = ("scratch", "context")
BOM = b"\xef\xbb\xbf"
HEREDOC = (
    "a heredoc is not taken: some releases of Podman run its lines as instructions;"
    " put them into a file of the build context and COPY it,"
    " or join commands by && with a \\ at each line's end"
)

_ESCAPE = re.compile(r"#[ \t]*escape[ \t]*=(.*)", re.IGNORECASE | re.ASCII)
_SYNTAX = re.compile(r"#[ \t]*syntax[ \t]*=", re.IGNORECASE | re.ASCII)
_FLAG = re.compile(r"(--\S*)\s*")
_FLAG_FORM = re.compile(r"--[a-z][a-z-]*=[!#-&(-\[\]-~]+")  # no quotes, no backslash, no second alphabet
_SWITCH = re.compile(r"--[a-z][a-z-]*")
_HEREDOC = re.compile(r"(?:^|\s)\d*<<[^\s<]")  # its end may be any word: `#` would be a comment here
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_ARGUMENT = re.compile(rf"""({_NAME})(?:=("[^"'\\`]*"|'[^"'\\`]*'|[^\s"'\\`]*))?(?:\s+|\Z)""")
_VARIABLE = re.compile(rf"""\$(?:({_NAME})|{{({_NAME})(?::([-+])([^${{}}"'\\]*))?}})""")
_STAGE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,127}")


class Instruction(NamedTuple):
    """One instruction, its lines joined; that of an ONBUILD is returned itself, with the mark."""

    line: int
    keyword: str
    flags: tuple[str, ...]
    rest: str
    onbuild: bool = False


class Stage(NamedTuple):
    """The stage of one FROM; `image` is None for an earlier stage, or if the file does not determine it."""

    line: int
    name: str
    written: str
    image: str | None
    parent: int | None
    flags: tuple[str, ...]
    instructions: list[Instruction]


class Dockerfile(NamedTuple):
    """A whole file: the ARGs before the first FROM, the stages, and the line of a `# syntax=` (or 0)."""

    arguments: list[Instruction]
    stages: list[Stage]
    syntax: int


def parse(untrusted: bytes, build_args: Mapping[str, str] | None = None) -> Dockerfile:
    """Parse a file as the build does, with the values that `build_args` gives its ARGs.

    Raises ValidationFailed, with the line, for invalid text.
    """
    lines = _lines(untrusted)
    instructions = [_instruction(line, text) for line, text in _joined(lines)]
    if len(instructions) > DOCKERFILE_INSTRUCTIONS_MAX:
        raise wrong(1, "too_many", f"a Dockerfile has {DOCKERFILE_INSTRUCTIONS_MAX} instructions at most")
    arguments: list[Instruction] = []
    values: dict[str, str | None] = {}
    stages: list[Stage] = []
    named: dict[str, int] = {}
    for one in instructions:
        if one.keyword == "FROM":
            stage = _stage(one, values, named)
            if stage.name:
                named[stage.name] = len(stages)
            stages.append(stage)
            if len(stages) > DOCKERFILE_STAGES_MAX:
                raise wrong(one.line, "too_many", f"a Dockerfile has {DOCKERFILE_STAGES_MAX} stages at most")
        elif stages:
            stages[-1].instructions.append(one)
        elif one.keyword != "ARG" or one.onbuild:
            raise wrong(one.line, "before_from", f"{one.keyword} is before the first FROM")
        else:
            arguments.append(one)
            _note_defaults(one, values, build_args or {})
    if not stages:
        raise wrong(1, "no_from", "a Dockerfile has a FROM")
    return Dockerfile(arguments, stages, _syntax(lines))


def wrong(line: int, code: str, message: str) -> ValidationFailed:
    """The error for one line of the file."""
    return invalid_field(FIELD, code, f"line {line}: {message}")


def excerpt(text: str) -> str:
    """Text of the file for a message: short, and on one line."""
    text = text.replace("\t", " ")
    return text if len(text) <= 80 else f"{text[:80]}..."


def _lines(untrusted: bytes) -> list[str]:
    """The lines as text, bounded, without invisible characters."""
    if len(untrusted) > BUNDLE_DOCKERFILE_MAX:
        raise wrong(1, "too_large", f"a Dockerfile has {BUNDLE_DOCKERFILE_MAX} bytes at most")
    lines = []
    for number, raw in enumerate(untrusted.removeprefix(BOM).split(b"\n"), 1):
        if len(raw) > DOCKERFILE_LINE_MAX:
            raise wrong(number, "long_line", f"longer than {DOCKERFILE_LINE_MAX} bytes")
        try:
            line = raw.removesuffix(b"\r").decode()
        except UnicodeDecodeError:
            raise wrong(number, "not_utf8", "not UTF-8") from None
        if not line.replace("\t", " ").isprintable():
            bad = next(char for char in line if char != "\t" and not char.isprintable())
            raise wrong(number, "character", f"has the character U+{ord(bad):04X}, which is invisible")
        lines.append(line)
    return lines


def _joined(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Join lines to instructions, without comments and empty lines, also inside of an instruction."""
    escape = _escape(lines)
    parts: list[str] = []
    start = 0
    for number, line in enumerate(lines, 1):
        bare = line.lstrip()
        if not bare or bare.startswith("#"):
            continue
        if not parts:
            start, line = number, bare
        ending = line.rstrip(" \t")
        goes_on = ending.endswith(escape)
        parts.append(ending[:-1] if goes_on else line)
        if not goes_on:
            yield start, "".join(parts)
            parts = []
    if parts:
        yield start, "".join(parts)


def _escape(lines: list[str]) -> str:
    """The character that joins lines; its directive must be on the first line, and only there."""
    directive = _ESCAPE.fullmatch(lines[0].lstrip())
    if not directive:
        return "\\"
    if directive[1].strip() not in ("\\", "`"):
        raise wrong(1, "escape", "the escape character is \\ or `")
    if len(lines) > 1 and _ESCAPE.fullmatch(lines[1].lstrip()):
        raise wrong(2, "escape", "the escape character is set twice")
    return directive[1].strip()


def _syntax(lines: list[str]) -> int:
    """The line of a `# syntax=` before the first instruction; 0 for none."""
    for number, line in enumerate(lines, 1):
        bare = line.lstrip()
        if _SYNTAX.match(bare):
            return number
        if bare and not bare.startswith("#"):
            break
    return 0


def _instruction(line: int, text: str, onbuild: bool = False) -> Instruction:
    """Keyword, flags and the rest, split as buildah does; of an ONBUILD its inner instruction."""
    keyword, rest = [*text.split(maxsplit=1), "", ""][:2]
    if not (keyword.isascii() and keyword.upper() in INSTRUCTIONS):  # upper() makes ASCII of look-alikes
        raise wrong(line, "instruction", f"{excerpt(keyword)} is no instruction")
    keyword = keyword.upper()
    flags, rest = _flags(line, keyword, rest.rstrip())
    if not rest:
        raise wrong(line, "arguments", f"{keyword} has no arguments")
    if keyword in ("RUN", "COPY", "ADD") and _HEREDOC.search(rest):
        raise wrong(line, "heredoc", HEREDOC)
    if onbuild and (keyword in NEVER_TRIGGERED or text.rstrip().endswith("\\")):
        raise wrong(line, "onbuild", f"ONBUILD does not take {keyword}, nor a \\ at its end")
    if keyword != "ONBUILD":
        return Instruction(line, keyword, tuple(flag for flag in flags if flag != "--"), rest, onbuild)
    if flags:
        raise wrong(line, "flag", "ONBUILD has no flags")
    return _instruction(line, rest, onbuild=True)


def _flags(line: int, keyword: str, text: str) -> tuple[list[str], str]:
    """The flags before an instruction's arguments, and the arguments."""
    flags, end = [], 0
    while found := _FLAG.match(text, end):
        end = found.end()
        flags.append(found[1])
        if found[1] == "--":  # ends the flags
            break
        if _SWITCH.fullmatch(found[1]) and found[1] not in FLAGS.get(keyword, ()):
            raise wrong(line, "flag", f"{keyword} takes no {excerpt(found[1])}")
        if not _FLAG_FORM.fullmatch(found[1]):
            raise wrong(line, "flag", f"{excerpt(found[1])}: a flag is --name=value in plain characters")
    return flags, text[end:]


def _stage(one: Instruction, values: dict[str, str | None], named: dict[str, int]) -> Stage:
    """The stage of a FROM. Names are compared as written, as buildah does."""
    arguments = one.rest.split()
    if len(arguments) not in (1, 3) or (len(arguments) == 3 and arguments[1].lower() != "as"):
        raise wrong(one.line, "from", "FROM has an image, or an image AS a name")
    name = arguments[2] if len(arguments) == 3 else ""
    if name and (not _STAGE.fullmatch(name) or name.lower() in RESERVED_STAGES):
        raise wrong(one.line, "stage_name", f"{excerpt(name)} is no name for a stage")
    if name in named or any(name.lower() == other.lower() for other in named):
        raise wrong(one.line, "stage_name", f"the stage {excerpt(name)} is defined twice")
    image = substitute(arguments[0], values)
    parent = None if image is None else named.get(image)
    return Stage(one.line, name, arguments[0], None if parent is not None else image, parent, one.flags, [])


def _note_defaults(one: Instruction, values: dict[str, str | None], build_args: Mapping[str, str]) -> None:
    """Note the defaults of an ARG before the first FROM; None for one that the file does not determine.

    One without a default and no value in `build_args` is not in `values`: it is empty.
    """
    found: dict[str, str | None] = {}  # the variables of one ARG do not see each other
    end = 0
    while end < len(one.rest):
        argument = _ARGUMENT.match(one.rest, end)
        if not argument:
            message = "an ARG before FROM is NAME=value, its quotes around the whole value"
            raise wrong(one.line, "arg", message)
        name, value, end = argument[1], argument[2], argument.end()
        if name in PLATFORM_ARGUMENTS:
            found[name] = _platform().get(name) if value is None else None
        elif name in build_args:
            found[name] = build_args[name]
        elif value is not None and value[:1] == "'":
            found[name] = None if "$" in value else value[1:-1]
        elif value is not None:
            found[name] = substitute(value.strip('"'), values)
    values.update(found)


def _platform() -> dict[str, str]:
    """buildah's own values of these variables, where they are the same on every host of a kind."""
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine)
    known = {"TARGETOS": "linux", "BUILDOS": "linux"}
    return known | ({"TARGETARCH": arch, "BUILDARCH": arch} if arch else {})


def substitute(text: str, values: dict[str, str | None]) -> str | None:
    """The text with its variables replaced by the file's own defaults; None if they do not determine it.

    Also None for results longer than any image reference: values may double on every line.
    """
    if len(text) > IMAGE_REF_MAX or not text.isascii() or "$" in _VARIABLE.sub("", text):
        return None
    determined = True

    def value_of(variable: re.Match[str]) -> str:
        nonlocal determined
        plain, name, sign, alternative = variable.groups()
        value = values.get(plain or name, "")
        determined = determined and value is not None and (bool(sign) or (plain or name) in values)
        if sign == "-":
            return value or alternative
        return (alternative if value else "") if sign == "+" else value or ""

    text = _VARIABLE.sub(value_of, text)
    return text if determined and len(text) <= IMAGE_REF_MAX else None
