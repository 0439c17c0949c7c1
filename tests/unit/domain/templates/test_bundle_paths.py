"""Names of members: which are taken, how they are shown, how they fit a header."""

from __future__ import annotations

import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.domain.templates import bundle_headers, bundle_paths
from svc.errors import ValidationFailed

BAD = {
    "": "without a name",
    "/etc/passwd": "absolute",
    "//x": "absolute",
    "..": "leads out",
    "context/../../x": "leads out",
    "context/..": "leads out",
    "context/./x": "empty component or a dot",
    ".": "empty component or a dot",
    "context//x": "empty component",
    "context/": "empty component",
    "context\\..\\x": "backslash",
    "C:\\x": "backslash",
    "context/a\nb": "control",
    "context/a\x00b": "control",
    "context/a\x1b[2J": "control",
    "context/a\x7f": "control",
    "context/\u202egpj.exe": "invisible",
    "context/a\u200bb": "invisible",
    "context/a\u2028b": "invisible",
    "context/\ud800": "invisible",
    "context/e\u0301": "composed form",
    "context/\u212b": "composed form",
    "context/" + "a" * 101: "over 100 bytes",
    "context/" + "\u00e9" * 51: "over 100 bytes",
    "context/" + "a/" * 124: "over 255 bytes",
    "context/" + "a" * 10**6: "over 255 bytes",
    "\u00e9/" * 90: "over 255 bytes",
    "context/" + "a" * 92 + "/" + "b" * 60 + "/" + "c" * 90: "does not fit",
}
GOOD = [
    "Dockerfile", "context/a", "context/A", "context/..a", "context/...", "context/ö/日本 x", "context/-rf",
    "context/CON", "context/a b$(id)'\"", "context/" + "a" * 100, "a/" * 100 + "b",
    "d" * 100 + "/" + "n" * 100,
]  # fmt: skip


@pytest.mark.parametrize("path", BAD, ids=lambda path: repr(path)[:40])
def test_a_bad_name_is_refused_and_shown_escaped(path: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        bundle_paths.check(path)
    [field] = caught.value.fields
    assert BAD[path] in field["message"] or path.startswith("\u00e9/")
    assert caught.value.message.isprintable() and field["field"].isprintable()
    assert len(caught.value.message) < 1500


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path[:40])
def test_a_good_name_stays_as_it_is(path: str) -> None:
    assert bundle_paths.check(path) == path


def test_a_name_that_costs_much_to_normalise_is_not_normalised() -> None:
    with pytest.raises(ValidationFailed, match="over 255"):
        bundle_paths.check("a" + "\u0315\u0300" * 500_000)


@given(st.text(st.sampled_from("ab/é."), max_size=260))
def test_what_is_taken_comes_back_from_a_header(path: str) -> None:
    try:
        bundle_paths.check(path)
    except ValidationFailed:
        return
    block = bundle_headers.make(path, 0, executable=False)
    assert bundle_headers.parse(block).path == path
    assert tarfile.TarInfo.frombuf(block, "utf-8", "strict").name == path


@given(st.text() | st.binary())
def test_whatever_is_shown_is_visible_and_short(untrusted: str | bytes) -> None:
    printed = bundle_paths.printable(untrusted)
    assert printed.isprintable() and len(printed) <= 1300
