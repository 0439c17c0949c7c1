"""Unified diffs of two untrusted texts, in bounded time and length."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from itertools import takewhile

from svc.limits import DIFF_LINES_MAX

COMPARED_LINES_MAX = 500  # between the equal ends: the time grows with the square of it, or faster
PAIRS_MAX = 5000  # of equal lines, one from each text: difflib repeats them for each line it keeps
LINE_MAX = 300  # characters
TEXT_MAX = 32 * 1024  # characters in all; stored with the revision
CONTEXT_LINES = 3

_NUMBERS = re.compile(r"(?<= [-+])[0-9]+")


def unified(name: str, before: str, after: str) -> list[str]:
    """The lines of a unified diff, without line ends; none when the texts are equal."""
    old, new = before.split("\n"), after.split("\n")
    head = _equal(old, new)
    tail = _equal(old[head:][::-1], new[head:][::-1])
    if _is_quick(old[head : len(old) - tail], new[head : len(new) - tail]):
        first = max(0, head - CONTEXT_LINES)
        last = max(0, tail - CONTEXT_LINES)
        return _within(name, old, new, first, last)
    if head + tail == len(old) == len(new):
        return []
    return [
        f"--- {name}",
        f"+++ {name}",
        f"@@ -{head + 1},{len(old) - head - tail} +{head + 1},{len(new) - head - tail} @@",
        *(f"-{line}" for line in old[head : len(old) - tail]),
        *(f"+{line}" for line in new[head : len(new) - tail]),
    ]


def bounded(lines: list[str]) -> str:
    """The lines as one text: long ones are cut, those over DIFF_LINES_MAX or TEXT_MAX only counted."""
    kept: list[str] = []
    room = TEXT_MAX
    for line in lines[:DIFF_LINES_MAX]:
        kept.append(line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}...")
        room -= len(kept[-1]) + 1
        if room < 0:
            break
    if len(kept) < len(lines) or room < 0:
        kept[-1] = f"... and {len(lines) - len(kept) + 1} more lines"
    return "\n".join(kept)


def _is_quick(old: list[str], new: list[str]) -> bool:
    """Check that comparing line by line is fast; it is not for many equal lines."""
    if max(len(old), len(new)) > COMPARED_LINES_MAX:
        return False
    counts = Counter(new)
    return sum(counts[line] for line in old) <= PAIRS_MAX


def _equal(old: list[str], new: list[str]) -> int:
    """The number of equal lines at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _within(name: str, old: list[str], new: list[str], first: int, last: int) -> list[str]:
    """The diff of the lines between the ends, with line numbers of the whole texts."""
    diff = difflib.unified_diff(
        old[first : len(old) - last], new[first : len(new) - last], name, name, n=CONTEXT_LINES, lineterm=""
    )
    return [
        _NUMBERS.sub(lambda number: str(int(number[0]) + first), line) if line.startswith("@@ ") else line
        for line in diff
    ]
