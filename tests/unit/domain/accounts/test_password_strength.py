"""How many guesses a password withstands, read in every way; and that the lists do not stay."""

from __future__ import annotations

import gc
import sys
import threading

import pytest

from svc.domain.accounts import password_strength


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        ("summer", {"summer": 1}),
        ("Summer2024!!", {"Summer2024!!": 1, "Summer": 100 * 10}),
        ("1summer1", {"1summer1": 1, "summer": 10}),
        ("123summer", {"123summer": 1, "summer": 10}),
        ("4711summer", {"4711summer": 1, "summer": 10**4}),
        ("p4ss-word99", {"p4ss-word99": 1, "p4ss-word": 10, "pssword": 2 * 10 * 10 * 10}),
        ("p-a-s-s", {"p-a-s-s": 1, "pass": 2 * 10}),
        ("%&/(a", {"%&/(a": 1, "a": 30**4}),
        ("12345678", {"12345678": 1}),
        ("", {}),
    ],
)
def test_a_guesser_reads_it_with_and_without_its_decoration(password: str, expected: dict[str, int]) -> None:
    assert dict(password_strength.readings(password)) == expected


@pytest.mark.parametrize(
    ("password", "most", "kind"),
    [
        ("password", 10, "passwords"),
        ("Drowssap1", 10**3, "passwords"),
        ("passwort", 10, "ours"),
        ("qwertzui", 100, "ours"),
        ("aaaaaaaa", 10**3, "repeat"),
        ("31.12.1999", 10**5, "date"),
        ("annika-1", 10**3, "known"),
    ],
)
def test_what_is_guessed_soon_and_from_what(password: str, most: int, kind: str) -> None:
    estimate = password_strength.weakest(password, {"annika"})
    assert estimate.guesses <= most
    assert kind in estimate.kinds


def test_random_ones_are_guessed_late() -> None:
    assert password_strength.weakest("q7#fLp2z", ()).guesses >= 10**7
    assert password_strength.weakest("blue kettle riverbank", ()).guesses >= 10**9


def test_the_words_are_kept_small() -> None:
    password_strength.weakest("blue kettle riverbank", {"annika"})
    from zxcvbn.matching import RANKED_DICTIONARIES

    lists = RANKED_DICTIONARIES.values()
    assert all(type(ranks) is password_strength.Ranks for ranks in lists)
    assert sum(len(ranks.hashes) for ranks in lists) > 90_000
    assert sum(sys.getsizeof(ranks.hashes) + sys.getsizeof(ranks.ranks) for ranks in lists) < 1_500_000
    assert not [thing for thing in gc.get_objects() if type(thing) is dict and "qwertyuiop" in thing]


def test_ranks_answer_as_the_dict_did() -> None:
    arguments = {f"word{number}": number for number in range(1, 500)}
    ranks = password_strength.Ranks(arguments)
    assert {argument: ranks[argument] for argument in arguments} == arguments
    for argument in ("", "word", "word0", "word500", "Word1"):
        assert argument not in ranks
        with pytest.raises(KeyError):
            ranks[argument]


def test_estimates_made_at_once_keep_their_names_apart() -> None:
    found: dict[str, float] = {}

    def estimate(name: str) -> None:
        found[name] = password_strength.weakest("zzyqxalbert", {name}).guesses

    threads = [threading.Thread(target=estimate, args=(name,)) for name in ("zzyqxalbert", "other") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found["zzyqxalbert"] == 1
    assert found["other"] > 10**4
