"""Dockerfiles: read as the host's Podman reads them, and refused before anything of them runs.

Words mean here what buildah 1.28 (in Podman 4.3) takes them for, not what a page shows: it joins lines,
takes quotes out of flags and knows no heredocs. Whatever could be read in two ways is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from svc.errors import ValidationFailed
from svc.limits import (
    BUNDLE_DOCKERFILE_MAX,
    DOCKERFILE_INSTRUCTIONS_MAX,
    DOCKERFILE_LINE_MAX,
    DOCKERFILE_STAGES_MAX,
    IMAGE_REF_MAX,
)

FIELD = "source.dockerfile"
INSTRUCTIONS = {
    "ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER",
    "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
}  # fmt: skip
NEVER_TRIGGERED = ("FROM", "MAINTAINER", "ONBUILD")  # buildah's own rule for ONBUILD
PLATFORM_ARGUMENTS = frozenset(
    f"{side}{part}" for side in ("TARGET", "BUILD") for part in ("PLATFORM", "OS", "ARCH", "VARIANT")
)
RESERVED_STAGES = ("scratch", "context")
BOM = b"\xef\xbb\xbf"

_ESCAPE = re.compile(r"#[ \t]*escape[ \t]*=(.*)", re.IGNORECASE | re.ASCII)
_SYNTAX = re.compile(r"#[ \t]*syntax[ \t]*=", re.IGNORECASE | re.ASCII)
_FLAG = re.compile(r"(--\S*)\s*")
_FLAG_FORM = re.compile(r"--[a-z][a-z-]*=[!#-&(-\[\]-~]+")  # no quotes, no backslash, no second alphabet
_HEREDOC = re.compile(r"(?:^|\s)\d*<<-?[\"']?[A-Za-z_]")
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_ARGUMENT = re.compile(rf"""({_NAME})(?:=("[^"'\\`]*"|'[^"'\\`]*'|[^\s"'\\`]*))?(?:\s+|\Z)""")
_VARIABLE = re.compile(rf"""\$(?:({_NAME})|{{({_NAME})(?::([-+])([^${{}}"'\\]*))?}})""")
_STAGE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,127}")


class Instruction(NamedTuple):
    """One instruction, its lines joined; what an ONBUILD holds stands for itself, marked."""

    line: int
    word: str
    flags: tuple[str, ...]
    rest: str
    onbuild: bool = False


class Stage(NamedTuple):
    """What one FROM begins. `image` is None where it is an earlier stage, or cannot be told from the file."""

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


def parse(untrusted: bytes) -> Dockerfile:
    """The file as the build would read it.

    Raises ValidationFailed, with the line, for what it would not read at all or might read otherwise.
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
        if one.word == "FROM":
            stage = _stage(one, values, named)
            if stage.name:
                named[stage.name] = len(stages)
            stages.append(stage)
            if len(stages) > DOCKERFILE_STAGES_MAX:
                raise wrong(one.line, "too_many", f"a Dockerfile has {DOCKERFILE_STAGES_MAX} stages at most")
        elif stages:
            stages[-1].instructions.append(one)
        elif one.word != "ARG" or one.onbuild:
            raise wrong(one.line, "before_from", f"{one.word} stands before the first FROM")
        else:
            arguments.append(one)
            _learn(one, values)
    if not stages:
        raise wrong(1, "no_from", "a Dockerfile has a FROM")
    return Dockerfile(arguments, stages, _syntax(lines))


def wrong(line: int, code: str, message: str) -> ValidationFailed:
    """The error that names a line of the file."""
    message = f"line {line}: {message}"
    return ValidationFailed(
        f"{FIELD}: {message}", fields=[{"field": FIELD, "code": code, "message": message}]
    )


def shown(text: str) -> str:
    """A word of the file as a message may have it: short, and on one line's terms."""
    text = text.replace("\t", " ")
    return text if len(text) <= 80 else f"{text[:80]}..."


def _lines(untrusted: bytes) -> list[str]:
    """The lines as text, each bounded and without what no reader of the file would see."""
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
            raise wrong(number, "character", f"has the character U+{ord(bad):04X}, which is not shown")
        lines.append(line)
    return lines


def _joined(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines as instructions; comments and empty lines go, also between the parts of one."""
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
    """What joins lines: the directive counts on the first line only, as a second one is an error."""
    said = _ESCAPE.fullmatch(lines[0].lstrip())
    if not said:
        return "\\"
    if said[1].strip() not in ("\\", "`"):
        raise wrong(1, "escape", "the escape character is \\ or `")
    if len(lines) > 1 and _ESCAPE.fullmatch(lines[1].lstrip()):
        raise wrong(2, "escape", "the escape character is said twice")
    return said[1].strip()


def _syntax(lines: list[str]) -> int:
    """The line of a `# syntax=` before the first instruction, where builders look for it; 0 for none."""
    for number, line in enumerate(lines, 1):
        bare = line.lstrip()
        if _SYNTAX.match(bare):
            return number
        if bare and not bare.startswith("#"):
            break
    return 0


def _instruction(line: int, text: str, onbuild: bool = False) -> Instruction:
    """Word, flags and the rest, as buildah splits them; of an ONBUILD the instruction that it holds."""
    word, rest = [*text.split(maxsplit=1), "", ""][:2]
    rest = rest.rstrip()
    known = word.isascii() and word.upper() in INSTRUCTIONS  # upper() alone makes ASCII of a look-alike
    if not known:
        raise wrong(line, "instruction", f"{shown(word)} is no instruction")
    word = word.upper()
    flags, place = [], 0
    while found := _FLAG.match(rest, place):
        place = found.end()
        flags.append(found[1])
        if found[1] == "--":  # ends the flags
            break
        if not _FLAG_FORM.fullmatch(found[1]):
            raise wrong(line, "flag", f"{shown(found[1])}: a flag is --name=value in plain characters")
    rest = rest[place:]
    if not rest:
        raise wrong(line, "arguments", f"{word} has no arguments")
    if word in ("RUN", "COPY", "ADD") and _HEREDOC.search(rest):
        raise wrong(line, "heredoc", "Podman 4.3 knows no heredocs and would run their lines as instructions")
    if onbuild and (word in NEVER_TRIGGERED or text.rstrip().endswith("\\")):
        raise wrong(line, "onbuild", f"ONBUILD does not take {word}, nor a \\ at its end")
    if word != "ONBUILD":
        return Instruction(line, word, tuple(flag for flag in flags if flag != "--"), rest, onbuild)
    if flags:
        raise wrong(line, "flag", "ONBUILD has no flags")
    return _instruction(line, rest, onbuild=True)


def _stage(one: Instruction, values: dict[str, str | None], named: dict[str, int]) -> Stage:
    """The stage that a FROM begins. Names are compared as written, as buildah does."""
    words = one.rest.split()
    if len(words) not in (1, 3) or (len(words) == 3 and words[1].lower() != "as"):
        raise wrong(one.line, "from", "FROM has an image, or an image AS a name")
    name = words[2] if len(words) == 3 else ""
    if name and (not _STAGE.fullmatch(name) or name.lower() in RESERVED_STAGES):
        raise wrong(one.line, "stage_name", f"{shown(name)} is no name for a stage")
    if name in named or any(name.lower() == other.lower() for other in named):
        raise wrong(one.line, "stage_name", f"the stage {shown(name)} is there twice")
    image = filled(words[0], values)
    parent = None if image is None else named.get(image)
    return Stage(one.line, name, words[0], None if parent is not None else image, parent, one.flags, [])


def _learn(one: Instruction, values: dict[str, str | None]) -> None:
    """Take the defaults of an ARG before the first FROM; one that cannot be told is None.

    One without a default is not in `values`: the build is given no arguments, so it is empty.
    """
    found: dict[str, str | None] = {}  # an ARG's own words do not see each other
    place = 0
    while place < len(one.rest):
        said = _ARGUMENT.match(one.rest, place)
        if not said:
            raise wrong(
                one.line, "arg", "an ARG before FROM is NAME=value, its quotes around the whole value"
            )
        name, value, place = said[1], said[2], said.end()
        if name in PLATFORM_ARGUMENTS:
            found[name] = _platform().get(name) if value is None else None
        elif value is not None and value[:1] == "'":
            found[name] = None if "$" in value else value[1:-1]
        elif value is not None:
            found[name] = filled(value.strip('"'), values)
    values.update(found)


def _platform() -> dict[str, str]:
    """What buildah itself puts into these names, where it is the same on every host of a kind."""
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine)
    known = {"TARGETOS": "linux", "BUILDOS": "linux"}
    return known | ({"TARGETARCH": arch, "BUILDARCH": arch} if arch else {})


def filled(text: str, values: dict[str, str | None]) -> str | None:
    """The text with its variables filled in from the file's own defaults; None where they do not tell.

    What is longer than any image reference is not told either: values may double on every line.
    """
    if len(text) > IMAGE_REF_MAX or not text.isascii() or "$" in _VARIABLE.sub("", text):
        return None
    told = True

    def value_of(variable: re.Match[str]) -> str:
        nonlocal told
        plain, name, sign, word = variable.groups()
        value = values.get(plain or name, "")
        told = told and value is not None and (bool(sign) or (plain or name) in values)
        if sign == "-":
            return value or word
        return (word if value else "") if sign == "+" else value or ""

    text = _VARIABLE.sub(value_of, text)
    return text if told and len(text) <= IMAGE_REF_MAX else None
