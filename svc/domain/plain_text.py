"""What a line of text that people write may hold: nothing invisible, nothing that turns the text around."""

from __future__ import annotations

import unicodedata

# Control and format characters (bidirectional ones among them), surrogates, unassigned ones, ends of lines.
REFUSED = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})
BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")  # letters and marks that show nothing
JOINERS = frozenset("\u200c\u200d")  # within words of Persian or Hindi, and within emoji
WHY = "must be one line without control, direction or invisible characters"


def is_plain(text: str) -> bool:
    """Whether the text is one line, and a reader sees each of its characters where it stands."""
    return not any(
        character in BLANKS
        or (
            unicodedata.category(character) in REFUSED
            and not (character in JOINERS and place and not text[place - 1].isascii())
        )
        for place, character in enumerate(text)
    )
