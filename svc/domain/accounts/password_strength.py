"""Password strength: zxcvbn's estimate of the guesses for a password, with and without its decoration.

zxcvbn has a hundred thousand words in dictionaries of 12 MB. It is imported at the
first check of a password, and its words are then stored in one megabyte
(docs/decisions/0030).
"""

from __future__ import annotations

import re
import threading
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from svc.domain.accounts.common_passwords import COMMON

# Few look-alikes for each letter. zxcvbn's own table has more, and all their combinations take seconds
# for a password of 64 look-alikes.
LEET = {
    "a": ["4", "@"],
    "e": ["3"],
    "i": ["1", "!"],
    "l": ["1"],
    "o": ["0"],
    "s": ["$", "5"],
    "t": ["7"],
}
YEAR = re.compile(r"(19|20)\d\d")
GROUPS = re.compile(r"\d+|[\W_]+")  # digits or signs
LIKELY_SIGNS = frozenset("!.-_* ")
RUNS: tuple[set[int], ...] = (set(), {0}, {1}, {-1})  # one digit, repeated, ascending, descending

_loading = threading.Lock()


class Ranks:
    """A mapping of entries to ranks in a tenth of a dict's memory: a sorted array of hashes."""

    def __init__(self, ranks: dict[str, int]) -> None:
        entries = sorted(ranks, key=hash)
        self.hashes = array("q", map(hash, entries))
        self.ranks = array("I", map(ranks.__getitem__, entries))

    def __contains__(self, entry: str) -> bool:
        index = bisect_left(self.hashes, hash(entry))
        return index < len(self.hashes) and self.hashes[index] == hash(entry)

    def __getitem__(self, entry: str) -> int:
        if entry not in self:
            raise KeyError(entry)
        return self.ranks[bisect_left(self.hashes, hash(entry))]


class Estimate(NamedTuple):
    """The number of guesses and the kinds of its parts: zxcvbn's pattern, for a dictionary its name."""

    guesses: float
    kinds: frozenset[str]


def weakest(password: str, known: Iterable[str]) -> Estimate:
    """The lowest estimate of all readings of the password.

    `known` are names that an attacker would try first for this account.
    """
    matching, scoring = _zxcvbn()
    lists = matching.RANKED_DICTIONARIES | {
        "ours": {entry: rank for rank, entry in enumerate(COMMON, 1)},
        "known": dict.fromkeys((name.lower() for name in known), 1),
    }
    return min(
        (_estimate(text, cost, lists, matching, scoring) for text, cost in readings(password)),
        key=lambda estimate: estimate.guesses,
    )


def readings(password: str) -> list[tuple[str, int]]:
    """The password, the part from its first to its last letter, and its letters alone.

    Each with the number of guesses for the characters that were removed.
    """
    bare = re.sub(r"^[\W\d_]+|[\W\d_]+$", "", password)
    around = password.split(bare, 1) if bare else []
    letters = GROUPS.sub("", password)
    removed = {password: (), bare: around, letters: (password,)}
    return [(text, _decoration(parts)) for text, parts in removed.items() if text]


def _decoration(texts: Iterable[str]) -> int:
    """The guesses for the digits and signs in these texts: few for years, sequences and repetitions."""
    groups = [group for text in texts for group in GROUPS.findall(text)]
    product = max(len(groups) - 1, 1)  # adjacent groups need fewer guesses than positions to find
    for group in set(groups):
        steps = {ord(after) - ord(before) for before, after in pairwise(group)}
        if group.isdigit() and steps in RUNS:
            product *= 10
        elif YEAR.fullmatch(group):
            product *= 100
        elif group.isdigit():
            product *= 10 ** len(group)
        else:
            product *= prod(10 if sign in LIKELY_SIGNS else 30 for sign in set(group))
    return product


def _estimate(text: str, cost: int, lists: dict[str, Any], matching: Any, scoring: Any) -> Estimate:
    # Without zxcvbn's surcharge for each further part, by which Summer2024!! would count as strong.
    found = scoring.most_guessable_match_sequence(
        text, matching.omnimatch(text, lists), _exclude_additive=True
    )
    kinds = frozenset(match.get("dictionary_name", match["pattern"]) for match in found["sequence"])
    return Estimate(float(found["guesses"]) * cost, kinds)


def _zxcvbn() -> tuple[Any, Any]:
    """Import zxcvbn and shrink its tables at the first use."""
    with _loading:
        from zxcvbn import matching, scoring

        if matching.FREQUENCY_LISTS:
            matching.FREQUENCY_LISTS.clear()
            for name, ranks in matching.RANKED_DICTIONARIES.items():
                matching.RANKED_DICTIONARIES[name] = Ranks(ranks)
            matching.L33T_TABLE.clear()
            matching.L33T_TABLE.update(LEET)
        return matching, scoring
