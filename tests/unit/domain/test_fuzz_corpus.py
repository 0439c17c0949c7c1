"""The seeds that the fuzz run kept (tests/fuzz) end as they did, and so does what is made of them at random.

Each file's name says how the reader ends with it: `accepted`, or the code of the refusal.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from fuzz import mutations, oracles
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.bundling import BLOCK, END, written

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
KEPT = sorted(CORPUS.glob("*/*"))
FUZZ = settings(
    max_examples=int(os.environ.get("SVC_TEST_FUZZ", "200")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("seed", KEPT, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_kept_seed_ends_as_it_did(seed: Path) -> None:
    assert oracles.ORACLES[seed.parent.name](seed.read_bytes()) == seed.name.rpartition("-")[0]


FOUND = [  # by a run, and mended since: a refusal of no member, a tab in a finding
    ("bundles", written()[: -2 * BLOCK] + b"\0" + b"x" * (BLOCK - 1) + END, "header"),
    ("dockerfiles", b"FROM r.example/a:1\nUSER 1${A:+x}\tb\n", oracles.ACCEPTED),
    ("dockerfiles", b"FROM r.example/a:1 a\tb\n", "from"),
]


@pytest.mark.parametrize(("kind", "data", "end"), FOUND, ids=range(len(FOUND)))
def test_what_a_run_found(kind: str, data: bytes, end: str) -> None:
    assert oracles.ORACLES[kind](data) == end


@pytest.mark.parametrize("kind", oracles.ORACLES)
def test_there_are_seeds_of_both_ends(kind: str) -> None:
    ends = {path.name.rpartition("-")[0] for path in KEPT if path.parent.name == kind}
    assert oracles.ACCEPTED in ends and len(ends) >= 12


@FUZZ
@given(seed=st.sampled_from([path for path in KEPT if path.parent.name == "bundles"]), numbers=st.randoms())
def test_fuzz_a_bundle_made_of_a_seed(seed: Path, numbers: random.Random) -> None:
    oracles.bundle(_changed("bundles", seed.read_bytes(), numbers))


@FUZZ
@given(
    seed=st.sampled_from([path for path in KEPT if path.parent.name == "dockerfiles"]), numbers=st.randoms()
)
def test_fuzz_a_dockerfile_made_of_a_seed(seed: Path, numbers: random.Random) -> None:
    oracles.dockerfile(_changed("dockerfiles", seed.read_bytes(), numbers))


def _changed(kind: str, data: bytes, numbers: random.Random) -> bytes:
    """The seed after one to four changes of the fuzz run's; a random byte stands in for libFuzzer's own."""

    def one_byte(data: bytes, most: int) -> bytes:
        at = numbers.randrange(len(data) or 1)
        return (data[:at] + numbers.randbytes(1) + data[at + 1 :])[:most]

    for _ in range(numbers.randint(1, 4)):
        data = mutations.MUTATIONS[kind](data, 32 * 1024, numbers, one_byte)
    return data
