"""Lines that people write: any script and emoji, nothing invisible, nothing that turns the text around."""

from __future__ import annotations

import pytest

from svc.domain.plain_text import is_plain


@pytest.mark.parametrize("text", [
    "", "Ada Lovelace", "Bgün", "日本語", "Ελλάδα", "עברית", "\u0627\u0644\u0639", "क्\u200dष", "a\u00a0b",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "👩\u200d🔬 lab", "❤️",
])  # fmt: skip
def test_any_script_is_plain(text: str) -> None:
    assert is_plain(text)


@pytest.mark.parametrize("text", [
    "a\nb", "a\x1b[31m", "\x00", "a\x7f", "\x85", "a\u2028b", "a\u2029b", "a\ud800", "\u0378",
    *(f"a{chr(mark)}b" for mark in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)),
    "a\u200bb", "a\ufeffb", "a\u00adb", "a\u2060b", "ad\u200dmin", "ad\u200cmin", "\u200da", "\U000e0041",
    "a\u3164", "\u115f", "\u2800", "a\u034fb",
])  # fmt: skip
def test_what_is_invisible_or_turns_the_text_around_is_not(text: str) -> None:
    assert not is_plain(text)
