"""The user's terminal while a remote one has it: raw, and put back, with the modes that programs left on."""

from __future__ import annotations

import pytest

from svc.cli.ws import tty


@pytest.mark.parametrize(
    ("output", "put_back"),
    [
        (b"plain", b""),
        (b"\x1b[?1049h\x1b[?25l", b"\x1b[?1049l\x1b[?25h"),
        (b"\x1b[?1049h...\x1b[?1049l", b""),
        (b"\x1b[?1000;1006;2004h", b"\x1b[?1000l\x1b[?1006l\x1b[?2004l"),
        (b"\x1b[?25h\x1b[?9999h\x1b[?1049$p\x1b[1049h", b""),
    ],
)
def test_modes_are_put_back(output: bytes, put_back: bytes) -> None:
    for step in (1, 2, 3, 5, 100):
        modes = tty.Modes()
        for start in range(0, len(output), step):
            modes.note(output[start : start + step])
        assert modes.put_back() == put_back


def test_output_without_end_keeps_nothing() -> None:
    modes = tty.Modes()
    for _ in range(100):
        modes.note(b"\x1b[?1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1")
        modes.note(b";1" * 1000)
    assert len(modes._rest) <= tty.SEQUENCE_MAX
