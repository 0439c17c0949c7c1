"""What is read along with a terminal's output: title, modes, places to begin."""

from __future__ import annotations

from svc_helper.shim import escapes


def fed(*parts: bytes) -> escapes.Reader:
    """A reader that has read these."""
    reader = escapes.Reader()
    for part in parts:
        reader.feed(part)
    return reader


def test_the_title_in_all_its_forms_and_nothing_that_controls() -> None:
    assert fed(b"\x1b]0;one\x07").title == "one"
    assert fed(b"\x1b]2;tw", "é".encode()[:1], "é".encode()[1:] + b"\x1b\\").title == "twé"
    assert fed(b"\x1b]1;icon\x07\x1b]7;file:///\x07").title == ""
    assert fed(b"\x1bP2;no title\x1b\\").title == ""
    assert fed(b"\x1b]2;a\x1b[31mb").title == "a", "an escape ends it"
    assert fed(b"\x1b]2;x\x18y").title == "x"
    title = fed(b"\x1b]2;a\tb\nc\xc2\x9bd\xe2\x80\xae" + b"x" * 100_000 + b"\x07").title
    assert title.startswith("a b c d x") and len(title) == escapes.TITLE_MAX
    assert fed(*(bytes([byte]) for byte in b"\x1b]2;bytewise\x07")).title == "bytewise"


def test_where_a_reader_may_begin() -> None:
    for whole in (b"", b"text", b"\x1b[1m", b"\x1b]2;t\x07", b"\x1b(B", "é€😀".encode(), b"\x1bM", b"\xff"):
        assert fed(whole).incomplete() == 0, whole
    for cut in (b"\x1b", b"\x1b[", b"\x1b[38;5;1", b"\x1b]2;t", b"\x1bPq#0", b"\x1b(", "é".encode()[:1],
                "€".encode()[:2], "😀".encode()[:3]):  # fmt: skip
        assert fed(b"text" + cut).incomplete() in (len(cut), None), cut
        assert fed(b"text", *(bytes([byte]) for byte in cut)).incomplete() in (len(cut), None), cut
    assert fed("€".encode()[:2], "€".encode()[2:]).incomplete() == 0
    assert fed(b"\x1b]2;t").incomplete() is None and fed(b"\x1b[3").incomplete() == 3
    assert fed(b"\x1b[" + b"1" * 500).incomplete() == 0, "no sequence is that long"


def test_the_modes_that_are_in_force() -> None:
    reader = fed(b"\x1b[?1049h\x1b[?25l\x1b[?1;2004h\x1b[?9999h")
    assert escapes.setting(reader.modes()) == b"\x1b[?1h\x1b[?25l\x1b[?1049h\x1b[?2004h"
    reader.feed(b"\x1b[?1049l\x1b[?2")
    reader.feed(b"5h\x1b[?1;2004l")
    assert reader.modes() == ()
    assert fed(b"\x1b[?1000h\x1bc").modes() == ()
