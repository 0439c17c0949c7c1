"""What is kept of a terminal's output, and where its replay begins."""

from __future__ import annotations

import random
import re
import time

from svc_helper.shim import escapes
from svc_helper.shim.scrollback import SCROLLBACK_MAX, Scrollback


def replay(scrollback: Scrollback) -> bytes:
    """What a new viewer gets."""
    position, setting = scrollback.beginning()
    return setting + scrollback.read(position, SCROLLBACK_MAX)


def test_it_is_bounded_and_begins_sanely() -> None:
    scrollback, chance = Scrollback(), random.Random(5)
    line = "\x1b[?25l\x1b[38;5;196mé€😀\x1b]2;a title\x07\x1b[0m".encode()
    everything = line * 40_000
    at = 0
    while at < len(everything):
        count = chance.randint(1, 4096)
        scrollback.add(everything[at : at + count])
        at += count
        assert len(scrollback.read(scrollback.start, 10**9)) <= SCROLLBACK_MAX
    shown = replay(scrollback)
    assert shown.startswith(b"\x1b[?25l") and len(shown) > SCROLLBACK_MAX - 3 * 4096
    shown = shown.removeprefix(b"\x1b[?25l")
    assert everything.endswith(shown)
    first = shown.decode()  # no character is cut
    assert re.match(r"\x1b|é|€|😀", first), "no sequence is cut"


def test_one_endless_sequence_leaves_no_place_to_begin() -> None:
    scrollback = Scrollback()
    scrollback.add(b"\x1bPq")
    for _ in range(100):
        scrollback.add(b"#" * 8192)
    assert scrollback.beginning() == (scrollback.end, b"")
    scrollback.add(b"\x1b\\after")
    assert replay(scrollback) in (b"", b"after")


def test_reading_along_stays_quick_whatever_is_printed() -> None:
    chance = random.Random(3)
    kinds = (
        b"\x1b]" * 2048, b"\x1b[?1;1;1;1;1;1h" * 256, b"\x1b]2;x\x07" * 700, b"\x1b" * 4096, b"\x1b[" * 2048,
        b"\x1b(" * 2048, b"\x1b[" + b"0;" * 2047, bytes(chance.getrandbits(8) for _ in range(4096)),
    )  # fmt: skip
    for kind in kinds:
        scrollback = Scrollback()
        began = time.monotonic()
        for _ in range(50):
            scrollback.add(kind)
        assert time.monotonic() - began < 20, kind[:8]  # of 200 KB; a second is far more than it takes
        assert len(scrollback.title) <= escapes.TITLE_MAX
