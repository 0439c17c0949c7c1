"""Differences: as difflib has them, and bounded."""

from __future__ import annotations

import difflib
import random
import time

from hypothesis import given
from hypothesis import strategies as st

from svc.domain.templates import diffs
from svc.domain.templates.diffs import COMPARED_LINES_MAX, LINE_MAX, TEXT_MAX, bounded, unified
from svc.limits import DIFF_LINES_MAX

TEXT = st.lists(st.sampled_from(["FROM a", "RUN b", "", "@@ -1 +1 @@", "x"]), max_size=30).map("\n".join)


@given(before=TEXT, after=TEXT)
def test_the_diff_makes_the_one_of_the_other(before: str, after: str) -> None:
    lines = unified("file", before, after)
    assert bool(lines) == (before != after)
    old, new, at = before.split("\n"), [], 0
    for line in lines[2:]:
        if line.startswith("@@ "):
            first, _, _ = line.split()[1][1:].partition(",")
            length = line.split()[1].partition(",")[2]
            start = int(first) - (length != "0")
            new += old[at:start]
            at = start
        elif line.startswith("+"):
            new.append(line[1:])
        else:
            assert line[1:] == old[at]
            at += 1
            new += [line[1:]] if line.startswith(" ") else []
    assert new + old[at:] == after.split("\n")


def test_a_small_change_in_a_long_file() -> None:
    old = [f"line {number}" for number in range(5000)]
    new = [*old[:2000], "another", *old[2001:]]
    lines = unified("Dockerfile", "\n".join(old), "\n".join(new))
    assert lines == list(difflib.unified_diff(old, new, "Dockerfile", "Dockerfile", lineterm=""))


def test_another_file_altogether_is_not_compared_line_by_line() -> None:
    old = [f"old {number}" for number in range(COMPARED_LINES_MAX + 1)]
    new = [f"new {number}" for number in range(7)]
    lines = unified("f", "\n".join(["FROM a", *old, "end"]), "\n".join(["FROM a", *new, "end"]))
    removed, added = ([line[1:] for line in lines[3:] if line[0] == sign] for sign in "-+")
    assert (removed, added) == (old, new)
    assert lines[2] == f"@@ -2,{len(old)} +2,7 @@"


def test_nobody_keeps_the_service_comparing() -> None:
    dice = random.Random(7)
    for kinds in (2, 8, 40, 150):
        one, two = ("\n".join(str(dice.randrange(kinds)) for _ in range(60_000)) for _ in range(2))
        small, other = ("\n".join(text.split("\n")[:199]) for text in (one, two))
        began = time.thread_time()
        unified("f", one, two)
        unified("f", small, other)
        assert time.thread_time() - began < 2


def test_lines_that_are_all_alike_are_not_compared_one_by_one() -> None:
    """190 of them took a third of a second, with the write lock, twice for each edit."""
    old = ["x", "u"] * 240
    new = ["x", "y"] * 95
    began = time.thread_time()
    lines = unified("f", "\n".join(["a", *old, "b"]), "\n".join(["c", *new, "d"]))
    assert time.thread_time() - began < 0.05
    assert lines[2:4] == ["@@ -1,482 +1,192 @@", "-a"]


def test_what_is_shown_is_bounded() -> None:
    assert bounded([]) == ""
    assert bounded(["a", "b"]) == "a\nb"
    assert bounded(["+" + "x" * LINE_MAX]) == "+" + "x" * (LINE_MAX - 1) + "..."
    text = bounded([f"+{number}" for number in range(DIFF_LINES_MAX + 5)])
    assert text.count("\n") == DIFF_LINES_MAX - 1
    assert text.endswith("... and 6 more lines")
    text = bounded(["+" + "x" * (LINE_MAX - 1)] * DIFF_LINES_MAX)
    assert len(text) <= TEXT_MAX
    assert text.endswith(f"... and {DIFF_LINES_MAX - text.count(chr(10))} more lines")
    assert diffs.bounded([f"+{number}" for number in range(DIFF_LINES_MAX)]).endswith(
        f"+{DIFF_LINES_MAX - 1}"
    )
