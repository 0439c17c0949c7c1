"""Service passwords: what is accepted, what is kept, what is recognised."""

from __future__ import annotations

import time
import unicodedata

import bcrypt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.domain import passwords
from svc.errors import ValidationFailed

SECRET = b"0123456789abcdef0123456789abcdef"
GOOD = "q7#fLp2z tap"
FULL_WIDTH = "".join(chr(ord(letter) + 0xFEE0) for letter in "password")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """bcrypt at its least cost: what is tested is not how long it takes."""
    cheap = bcrypt.gensalt
    monkeypatch.setattr(bcrypt, "gensalt", lambda _cost: cheap(4))


def reason(password: str, user: str = "demo", **about: object) -> str:
    try:
        passwords.check(password, user=user, **about)  # type: ignore[arg-type]
    except ValidationFailed as refused:
        assert [field["field"] for field in refused.fields] == ["password"]
        assert refused.fields[0]["message"]
        assert refused.hint
        return refused.fields[0]["code"].removeprefix("password_")
    return ""


@pytest.mark.parametrize(
    "password",
    [
        "q7#fLp2z",
        "correct-horse-9-tap",
        "Tr0ub4dor&3",
        "düsseldorf-rhein",
        "😀🎉🐎🌲🌍🎵🚀🧲",
        "blaubeerkuchen",
        "x!9 k_0~",
        "q" * 1 + "7kWzP3nV" * 7,
    ],
)
def test_good_ones_are_accepted(password: str) -> None:
    assert reason(password) == ""


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("", "too_short"),
        ("q7#fLp2", "too_short"),
        ("q7#fLp2z" * 8 + "x", "too_long"),
        ("ﷺ" * 8, "too_long"),  # 144 code points after NFKC
        ("x" * 100_000, "too_long"),
        ("q7#f\0Lp2z", "characters"),
        ("q7#f\nLp2z", "characters"),
        ("q7#f\x1bLp2z", "characters"),
        ("q7#f\ud800Lp2z", "characters"),
        ("q7#f\U000e0080Lp2z", "characters"),
        ("P@ssw0rd", "common"),
        ("password1!", "common"),
        (FULL_WIDTH, "common"),
        ("p-a-s-s-w-o-r-d", "common"),
        ("Summer2024!!", "common"),
        ("12345678", "common"),
        ("iloveyou123", "common"),
        ("aaaaaaaaaa", "pattern"),
        ("abcabcabcabc", "pattern"),
        ("            ", "pattern"),
        ("abcdefghij", "pattern"),
        ("98765432", "pattern"),
        ("asdfghjkl;", "common"),
        ("tzuiopü123", "pattern"),
        ("workspace1", "derived"),
        ("svc-12345", "derived"),
    ],
)
def test_bad_ones_are_refused_with_their_reason(password: str, why: str) -> None:
    assert reason(password) == why


@pytest.mark.parametrize(
    ("user", "display_name", "password"),
    [
        ("annika", "", "annika-kq7z"),
        ("annika", "", "AKINNA99x!"),
        ("annika", "", "4nn1k4_kq7z"),
        ("bob", "", "bob12345"),
        ("bob", "", "12bob345bob"),
        ("al", "Ada Lovelace", "xxLovelacexx7"),
        ("al", "Ada Lovelace", "adalovelace!"),
        ("jürgen_k", "", "jürgen__77"),
    ],
)
def test_guesses_from_names_are_refused(user: str, display_name: str, password: str) -> None:
    assert reason(password, user, display_name=display_name) in ("derived", "pattern")


def test_guesses_from_the_hosts_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "gpuhost7.example")
    assert reason("my-gpuhost7-kq") == "derived"


def test_superusers_need_twelve() -> None:
    assert reason("q7#fLp2z", superuser=True) == "too_short"
    assert reason(GOOD, superuser=True) == ""


def test_all_forms_of_one_password_are_one_password(quick: None) -> None:
    typed = "Übergrößenträger"
    stored = passwords.hash_password(passwords.check(typed, user="demo"), SECRET)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert passwords.verify(unicodedata.normalize(form, typed), stored, SECRET)
    assert not passwords.verify(typed.lower(), stored, SECRET)


def test_nothing_is_cut_off(quick: None) -> None:
    long = "😀🎉🐎🌲🌍🎵🚀🧲" * 8
    stored = passwords.hash_password(long, SECRET)
    assert passwords.verify(long, stored, SECRET)
    assert not passwords.verify(long[:-1] + "x", stored, SECRET)
    assert passwords.verify(
        "\N{NO-BREAK SPACE}" + long[1:], passwords.hash_password(" " + long[1:], SECRET), SECRET
    )


def test_the_secret_is_part_of_it(quick: None) -> None:
    stored = passwords.hash_password(GOOD, SECRET)
    assert stored.startswith("v1$$2b$")
    assert GOOD not in stored
    assert passwords.verify(GOOD, stored, SECRET)
    assert not passwords.verify(GOOD, stored, SECRET[::-1])
    assert stored != passwords.hash_password(GOOD, SECRET)


@pytest.mark.parametrize("stored", [None, "", "v1$", "v2$$2b$04$" + "a" * 53, "$2b$12$" + "a" * 53])
def test_what_is_no_hash_of_ours_never_matches(stored: str | None) -> None:
    assert not passwords.verify(GOOD, stored, SECRET)


def test_the_cost_is_twelve_and_nobody_takes_as_long() -> None:
    stored = passwords.hash_password(GOOD, SECRET)
    assert stored.startswith("v1$$2b$12$")
    took = []
    for reference in (stored, None):
        began = time.perf_counter()
        passwords.verify("another guess", reference, SECRET)
        took.append(time.perf_counter() - began)
    assert 0.4 < took[0] / took[1] < 2.5


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_accepted_or_refused(password: str) -> None:
    why = reason(password)
    assert why in ("", "too_short", "too_long", "characters", "common", "pattern", "derived")
