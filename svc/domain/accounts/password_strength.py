"""How many guesses a password withstands: zxcvbn's estimate, of every way that a guesser reads it.

zxcvbn comes with a hundred thousand words in dictionaries of 12 MB. It is imported
when somebody first chooses a password, and its words are then kept in one megabyte.
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

# One look-alike for one letter. zxcvbn's own table has many for some, tries them all together, and takes
# four seconds for a password of 64 of them.
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
GROUPS = re.compile(r"\d+|[\W_]+")  # what is no letter
LIKELY_SIGNS = frozenset("!.-_* ")
RUNS: tuple[set[int], ...] = (set(), {0}, {1}, {-1})  # one digit, the same again, up, down

_loading = threading.Lock()


class Ranks:
    """Words and their ranks, looked up as in a dict a tenth of its size: by their hashes, sorted."""

    def __init__(self, ranks: dict[str, int]) -> None:
        words = sorted(ranks, key=hash)
        self.hashes = array("q", map(hash, words))
        self.ranks = array("I", map(ranks.__getitem__, words))

    def __contains__(self, word: str) -> bool:
        place = bisect_left(self.hashes, hash(word))
        return place < len(self.hashes) and self.hashes[place] == hash(word)

    def __getitem__(self, word: str) -> int:
        if word not in self:
            raise KeyError(word)
        return self.ranks[bisect_left(self.hashes, hash(word))]


class Estimate(NamedTuple):
    """So many guesses, and what they would be made of: zxcvbn's patterns, for words their list."""

    guesses: float
    kinds: frozenset[str]


def weakest(password: str, known: Iterable[str]) -> Estimate:
    """The estimate by the way of reading it that a guesser gets through first.

    `known` are words that a guesser of this very password would try before all others.
    """
    matching, scoring = _zxcvbn()
    lists = matching.RANKED_DICTIONARIES | {
        "ours": {word: rank for rank, word in enumerate(COMMON, 1)},
        "known": dict.fromkeys((word.lower() for word in known), 1),
    }
    return min(
        (_estimate(text, cost, lists, matching, scoring) for text, cost in readings(password)),
        key=lambda estimate: estimate.guesses,
    )


def readings(password: str) -> list[tuple[str, int]]:
    """The password as it is, without what is around its letters, and its letters alone.

    Each with the guesses that it costs to put back what was taken off.
    """
    bare = re.sub(r"^[\W\d_]+|[\W\d_]+$", "", password)
    around = password.split(bare, 1) if bare else []
    letters = GROUPS.sub("", password)
    taken_off = {password: (), bare: around, letters: (password,)}
    return [(text, _decoration(taken)) for text, taken in taken_off.items() if text]


def _decoration(texts: Iterable[str]) -> int:
    """The guesses for the digits and signs in these: few for a year, a count, the same one again."""
    groups = [group for text in texts for group in GROUPS.findall(text)]
    product = max(len(groups) - 1, 1)  # one behind the other costs less than places to find
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
    # Without zxcvbn's surcharge for each further piece: it takes Summer2024!! for a strong one.
    found = scoring.most_guessable_match_sequence(
        text, matching.omnimatch(text, lists), _exclude_additive=True
    )
    kinds = frozenset(match.get("dictionary_name", match["pattern"]) for match in found["sequence"])
    return Estimate(float(found["guesses"]) * cost, kinds)


def _zxcvbn() -> tuple[Any, Any]:
    """Its modules, made small at the first use."""
    with _loading:
        from zxcvbn import matching, scoring

        if matching.FREQUENCY_LISTS:
            matching.FREQUENCY_LISTS.clear()
            for name, ranks in matching.RANKED_DICTIONARIES.items():
                matching.RANKED_DICTIONARIES[name] = Ranks(ranks)
            matching.L33T_TABLE.clear()
            matching.L33T_TABLE.update(LEET)
        return matching, scoring
