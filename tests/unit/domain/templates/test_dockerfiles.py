"""Dockerfiles as buildah 1.28 reads them: what is read, and what could be read in two ways and is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.domain.templates import dockerfile_review, dockerfiles
from svc.domain.templates.dockerfiles import Dockerfile, parse
from svc.errors import RegistryNotAllowed, ValidationFailed
from svc.limits import (
    BUNDLE_DOCKERFILE_MAX,
    DOCKERFILE_INSTRUCTIONS_MAX,
    DOCKERFILE_LINE_MAX,
    DOCKERFILE_STAGES_MAX,
)

BASE = "FROM r.example/base:1\n"


def arguments(dockerfile: Dockerfile) -> list[tuple[int, str, str]]:
    return [(one.line, one.keyword, one.rest) for stage in dockerfile.stages for one in stage.instructions]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RUN a \\\n  && b\n", [(2, "RUN", "a   && b")]),
        ("RUN a \\\n# comment\n   # and \\\n\n  b\nUSER u\n", [(2, "RUN", "a   b"), (7, "USER", "u")]),
        ("run a\nUsEr u", [(2, "RUN", "a"), (3, "USER", "u")]),
        ("RU\\\nN echo \\  \t\nx", [(2, "RUN", "echo x")]),
        ("\\\nRUN x", [(2, "RUN", "x")]),
        ("  \t# note\n\n \tRUN\tx\r\n", [(4, "RUN", "x")]),
        ("RUN a\\\r\nb\r\n", [(2, "RUN", "ab")]),
        ("RUN x \\", [(2, "RUN", "x")]),
        ("RUN x \\\n", [(2, "RUN", "x")]),
        ("RUN -- --mount=x", [(2, "RUN", "--mount=x")]),
        ("ONBUILD onbuild_x", "instruction"),
        ("onbuild RUN x", [(2, "RUN", "x")]),
        ("RUN echo # no comment\\\\\nUSER u", [(2, "RUN", "echo # no comment\\USER u")]),
    ],
)
def test_lines_become_instructions(text: str, expected: Any) -> None:
    if isinstance(expected, str):
        assert code_of((BASE + text).encode()) == expected
    else:
        assert arguments(parse((BASE + text).encode())) == expected


def test_the_escape_directive_changes_what_joins_lines() -> None:
    text = f"# EsCaPe = `\n{BASE}RUN dir c:\\\nUSER a`\nb\n"
    assert arguments(parse(text.encode())) == [(3, "RUN", "dir c:\\"), (4, "USER", "ab")]
    assert arguments(parse(b"\xef\xbb\xbf" + text.encode())) == arguments(parse(text.encode()))
    after = f"# a comment ends the directives\n# escape=`\n{BASE}RUN a`\nUSER b\n"
    assert arguments(parse(after.encode())) == [(4, "RUN", "a`"), (5, "USER", "b")]


def test_a_trigger_is_the_instruction_that_it_holds() -> None:
    (trigger,) = parse(f"{BASE}ONBUILD  RUN --mount=type=bind,source=/ x".encode()).stages[0].instructions
    assert trigger.onbuild and trigger.keyword == "RUN" and trigger.flags == ("--mount=type=bind,source=/",)


@pytest.mark.parametrize(
    ("head", "written", "image"),
    [
        ("ARG V=1", "r.example/a:$V", "r.example/a:1"),
        ("ARG V=1\nARG V", "r.example/a:${V}", "r.example/a:1"),
        ("ARG R='r.example' V=\"2 \"", "$R/a", "r.example/a"),
        ("ARG R=r.example\nARG I=${R}/a", "$I:1", "r.example/a:1"),
        ("ARG S=", "r.example/a$S", "r.example/a"),
        ("ARG V", "r.example/a:${V:-3}", "r.example/a:3"),
        ("ARG V=1", "r.example/a${V:+-x}", "r.example/a-x"),
        ("ARG A='x B=ok y'\nARG B=evil", "$B/a", "evil/a"),
        ("ARG V", "r.example/a:$V", None),
        ("ARG V=1", "r.example/a:$W", None),
        ("ARG W=1\nARG V='$W'", "r.example/a:$V", None),
        ("ARG A=1 B=$A", "r.example/a:$B", None),
        ("ARG V=$W", "r.example/a:${V:-1}", None),
        ("ARG TARGETARCH=evil", "r.example/$TARGETARCH", None),
        ("ARG TARGETPLATFORM", "r.example/$TARGETPLATFORM", None),
        ("ARG V=1", "r.example/$Vé", None),
        ("ARG V=1", "r.example/$$V", None),
        ("ARG V=1", "r.example/$1", None),
        ("ARG V=1", "${V:-${V}}", None),
        ("ARG V=1", "${V#1}", None),
    ],
)
def test_the_files_own_defaults_name_the_image(head: str, written: str, image: str | None) -> None:
    (stage,) = parse(f"{head}\nFROM {written}\n".encode()).stages
    assert (stage.written, stage.image) == (written, image)


def test_the_platform_is_the_hosts() -> None:
    text = b"ARG TARGETOS\nFROM r.example/a AS base-linux\nFROM base-$TARGETOS\n"
    assert [stage.parent for stage in parse(text).stages] == [None, 0]


def test_doubling_values_stay_small() -> None:
    lines = ["ARG A=xx", *["ARG A=$A$A"] * 1500, "FROM r.example/$A"]
    began = time.monotonic()
    assert parse("\n".join(lines).encode()).stages[0].image is None
    assert time.monotonic() - began < 5


def test_stages_are_named_as_written() -> None:
    text = "FROM r.example/a as Build\nFROM Build AS two\nFROM build\nFROM scratch\nFROM 0\n"
    stages = parse(text.encode()).stages
    assert [stage.name for stage in stages] == ["Build", "two", "", "", ""]
    assert [stage.parent for stage in stages] == [None, 0, None, None, None]
    assert [stage.image for stage in stages] == ["r.example/a", None, "build", "scratch", "0"]


def code_of(text: bytes) -> str:
    with pytest.raises(ValidationFailed) as caught:
        parse(text)
    (field,) = caught.value.fields
    assert field["field"] == "source.dockerfile" and field["message"].startswith("line ")
    assert field["message"].isprintable() and len(field["message"]) < 300
    return field["code"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no_from"),
        ("# only words\n", "no_from"),
        ("ARG A=1", "no_from"),
        ("RUN x\n" + BASE, "before_from"),
        ("ONBUILD ARG x\n" + BASE, "before_from"),
        ("FROM", "arguments"),
        ("FROM a b", "from"),
        ("FROM a AS", "from"),
        ("FROM a IS b", "from"),
        ("FROM a AS 0", "stage_name"),
        ("FROM a AS scratch", "stage_name"),
        ("FROM a AS r.example/b", "stage_name"),
        ("FROM a AS $b", "stage_name"),
        ("FROM a AS b\nFROM a AS B", "stage_name"),
        ('ARG A="x B=ok\nFROM a', "arg"),
        ("ARG A=a\\b\nFROM a", "arg"),
        ("ARG A=`b`\nFROM a", "arg"),
        ("ARG 1=b\nFROM a", "arg"),
        ("# escape=x\n" + BASE, "escape"),
        ("# escape=\n" + BASE, "escape"),
        ("# escape=`x\n" + BASE, "escape"),
        ("# escape=`\n# escape=`\n" + BASE, "escape"),
        (BASE + "RUN <<EOF\nUSER root\nEOF", "heredoc"),
        (BASE + "RUN cat 3<<-'EOF' >x", "heredoc"),
        (BASE + "COPY <<f /f", "heredoc"),
        (BASE + "RUN cat <<#\nUSER root\n#", "heredoc"),
        (BASE + "RUN cat <<\\1\nUSER root", "heredoc"),
        (BASE + "RUN", "arguments"),
        (BASE + "\\\n", "instruction"),
        (BASE + "RUNX y", "instruction"),
        (BASE + "RUN--mount=x y", "instruction"),
        (BASE + "INCLUDE x", "instruction"),
        (BASE + "u\u017fer root", "instruction"),
        (BASE + "WOR\u212aDIR /", "instruction"),
        (BASE + "ONBUİLD RUN x", "instruction"),
        (BASE + "\uff32\uff35\uff2e x", "instruction"),
        (BASE + 'RUN --m"ount"=type=bind x', "flag"),
        (BASE + "RUN --mo\\unt=type=bind x", "flag"),
        (BASE + "RUN --m${X}ount=type=bind x", "flag"),
        (BASE + "RUN --${X}mount=type=bind x", "flag"),
        (BASE + "RUN --mount x", "flag"),
        (BASE + "COPY --chown=aŠ--from=evil a b", "flag"),
        (BASE + "COPY --from a b", "flag"),
        (BASE + "ONBUILD --x=y RUN x", "flag"),
        (BASE + "ONBUILD -- RUN --mount=x y", "flag"),
        (BASE + "ONBUILD ONBUILD RUN x", "onbuild"),
        (BASE + "ONBUILD FROM x", "onbuild"),
        ("# escape=`\n" + BASE + "ONBUILD RUN x \\ \nONBUILD RUN y", "onbuild"),
        (BASE + "RUN a\0b", "character"),
        (BASE + "RUN a\x1b[2J", "character"),
        (BASE + "RUN a\rUSER b", "character"),
        (BASE + "RUN a\r\r\n", "character"),
        (BASE + "RUN\x0ba", "character"),
        (BASE + "\u00a0RUN --mount=x a", "character"),
        (BASE + "RUN\u2003a", "character"),
        (BASE + "# \u202eabc", "character"),
        (BASE + "\ufeffRUN x", "character"),
        (BASE + "RUN a\u2028USER root", "character"),
        (BASE + "RUN " + "x" * DOCKERFILE_LINE_MAX, "long_line"),
        ("FROM a\n" * (DOCKERFILE_STAGES_MAX + 1), "too_many"),
        (BASE + "RUN x\n" * DOCKERFILE_INSTRUCTIONS_MAX, "too_many"),
        ("#" * (BUNDLE_DOCKERFILE_MAX + 1), "too_large"),
    ],
    ids=lambda value: value[:40].encode("unicode_escape").decode(),
)
def test_what_is_not_read(text: str, code: str) -> None:
    assert code_of(text.encode()) == code


def test_text_is_utf8() -> None:
    assert code_of(BASE.encode() + b"RUN \xff") == "not_utf8"
    assert code_of(BASE.encode() + b"RUN \xc0\xaf") == "not_utf8"
    assert code_of("FROM a".encode("utf-16")) == "not_utf8"


_ARGUMENTS = (
    "FROM ", "r.example/a", "AS b", "\n", "\\", "`", " ", "\t", "\r\n", "# escape=`\n", "# syntax=x\n",
    "RUN ", "--mount=", "type=bind,from=", "COPY ", "--from=", "b", "0", "$A", "${A:-x}", "ARG A=", "'", '"',
    "ONBUILD ", "ADD ", "[", '"http://x"', "]", ",", "USER ", "ENV ", "EXPOSE ", "<<EOF", "é", "--", "\0",
)  # fmt: skip
_PIECES = st.lists(st.sampled_from(_ARGUMENTS), max_size=40).map(
    lambda arguments: "".join(arguments).encode()
)


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode), _PIECES), st.booleans())
def test_nothing_else_is_ever_raised(text: bytes, own: bool) -> None:
    """Whatever the bytes: two classes of error, and findings of short, printable words."""
    try:
        dockerfile = parse(text)
        for found in dockerfile_review.findings(dockerfile):
            assert found["message"].isprintable()
        dockerfile_review.require(dockerfile, own=own, allows=lambda image: image.startswith("r.example/"))
    except (ValidationFailed, RegistryNotAllowed) as error:
        assert error.fields and error.message.isprintable()


@given(_PIECES)
def test_what_passes_for_others_mounts_nothing(pieces: bytes) -> None:
    """A file that is let through has no mount, however its lines were joined."""
    try:
        dockerfile = parse(BASE.encode() + pieces)
        dockerfile_review.require(dockerfile, own=False, allows=lambda image: image.startswith("r.example/"))
    except (ValidationFailed, RegistryNotAllowed):
        return
    ours = [one for stage in dockerfile.stages for one in stage.instructions]
    assert not [one for one in ours for flag in one.flags if "mount" in flag]
    assert all(one.keyword in dockerfiles.INSTRUCTIONS for one in ours)


_UNITS = (
    "\\\n", "RUN x\n", "RUN x \\\n", "# x\n", "x ", " ", "\t", '"', "'", "$A", "${A:-", "a,", '\\"', "[",
    '["a",', "<<", "0<", "--a=b ", "--", "ARG A=$A$A\n", 'A="', "ENV A=1\n", "é", "`", "ONBUILD ",
)  # fmt: skip


@pytest.mark.parametrize("unit", _UNITS)
@pytest.mark.parametrize("head", ["", "RUN ", "ENV A=", "ADD [", "# escape="])
def test_reading_takes_linear_time(unit: str, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is quadratic takes minutes for this; the longest line allowed is a quarter of it."""
    for limit in ("BUNDLE_DOCKERFILE_MAX", "DOCKERFILE_LINE_MAX", "DOCKERFILE_INSTRUCTIONS_MAX"):
        monkeypatch.setattr(dockerfiles, limit, 2**21)
    text = (BASE * bool(head != "# escape=") + head + unit * (2**18 // len(unit))).encode()
    began = time.monotonic()
    try:
        dockerfile = parse(text)
        dockerfile_review.findings(dockerfile)
        dockerfile_review.refusals(dockerfile, own=False, allows=lambda _: True)
    except ValidationFailed:
        pass
    assert time.monotonic() - began < 10


def test_a_mebibyte_is_read_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("BUNDLE_DOCKERFILE_MAX", "DOCKERFILE_INSTRUCTIONS_MAX"):
        monkeypatch.setattr(dockerfiles, limit, 2**21)
    text = (BASE + "RUN a \\\n  b\nENV A=1\n" * (2**20 // 23)).encode()
    began = time.monotonic()
    dockerfile_review.findings(parse(text))
    assert time.monotonic() - began < 10
