"""Detach keys: their spelling, and the sequence in whatever cut it comes."""

from __future__ import annotations

import random

import pytest

from svc.cli.ws import detaching
from svc.cli.ws.detaching import Detector, keys


@pytest.mark.parametrize(
    ("text", "sequence"),
    [
        (detaching.DEFAULT, b"\x10\x11"), ("", b""), ("ctrl-]", b"\x1d"), ("Ctrl-A,d", b"\x01d"),
        ("~,.", b"~."), ("ctrl-@,ctrl-[,ctrl-\\,ctrl-^,ctrl-_", b"\0\x1b\x1c\x1e\x1f"),
    ],
)  # fmt: skip
def test_keys(text: str, sequence: bytes) -> None:
    assert keys(text) == sequence


@pytest.mark.parametrize("text", [",", "ctrl-", "ctrl-1", "ab", "ctrl-p,", "ü", "\x01"])
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        keys(text)


def test_the_sequence_in_any_cut() -> None:
    chance = random.Random(5)
    for _ in range(300):
        sequence = bytes(chance.choices(b"ab", k=chance.randint(1, 3)))
        typed = bytes(chance.choices(b"abc", k=12))
        detector, passed, rest = Detector(sequence), b"", typed
        while rest and not detector.found:
            step = chance.randint(1, 4)
            passed += detector.pass_on(rest[:step])
            rest = rest[step:]
        assert detector.found == (sequence in typed)
        if detector.found:
            assert passed == typed[: typed.find(sequence)]
        else:  # all of it, but for what may be the sequence's beginning
            assert typed.startswith(passed)
            assert sequence.startswith(typed[len(passed) :])


def test_no_keys() -> None:
    assert Detector(b"").pass_on(b"\x10\x11") == b"\x10\x11"
