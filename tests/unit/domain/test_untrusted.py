"""What an agent says is hostile until its type and size were looked at."""

from __future__ import annotations

from typing import Any

import pytest

from svc.domain import untrusted
from svc.errors import EngineFailed


@pytest.mark.parametrize("value", [None, 5, "a\0", "a" * 81, ["a"], b"a"])
def test_texts(value: Any) -> None:
    with pytest.raises(EngineFailed):
        untrusted.get_text({"key": value}, "key", 80)
    if value is None:
        assert untrusted.find_text({}, "key") is None


@pytest.mark.parametrize("value", [None, "5", True, 1.0, 2**63, -(2**63)])
def test_numbers(value: Any) -> None:
    with pytest.raises(EngineFailed):
        untrusted.get_number({"key": value}, "key")


def test_room_of_any_disk() -> None:
    for value, capped in ((-5, 0), (7, 7), (2**63, 2**63 - 1), (2**64 * 4096, 2**63 - 1)):
        assert untrusted.get_capped({"key": value}, "key") == capped
    assert untrusted.find_capped({}, "key") is None


@pytest.mark.parametrize("value", [None, "5", True, 1.0, 2**128])
def test_integers(value: Any) -> None:
    with pytest.raises(EngineFailed):
        untrusted.get_integer({"key": value}, "key")
    assert untrusted.get_integer({"key": -(2**100)}, "key") == -(2**100)


@pytest.mark.parametrize("value", [None, 0, "true"])
def test_flags(value: Any) -> None:
    with pytest.raises(EngineFailed):
        untrusted.get_flag({"key": value}, "key")


@pytest.mark.parametrize(
    "value", [None, 5, "!!!", "YQ", "YQ==YQ==", "YQ==\n", "A" * 400_000, "A" * 349_528, "\u0661"]
)
def test_output(value: Any) -> None:
    with pytest.raises(EngineFailed):
        untrusted.get_output({"key": value}, "key")


@pytest.mark.parametrize("value", [None, "5", True, -1, 1.0, 2**63])
def test_counts(value: Any) -> None:
    with pytest.raises(EngineFailed):
        untrusted.get_count({"key": value}, "key")


@pytest.mark.parametrize("value", [None, "5", True, -0.1, float("nan"), float("inf"), 10**400])
def test_amounts(value: Any) -> None:
    with pytest.raises(EngineFailed):
        untrusted.get_amount({"key": value}, "key")


@pytest.mark.parametrize(
    "value", [5, "", "now", "2025-01-02T03:04:05", "2025-01-02", "0001-01-01T00:00:00+14:00", "9" * 65]
)
def test_moments(value: Any) -> None:
    with pytest.raises(EngineFailed):
        untrusted.get_moment({"key": value}, "key")


@pytest.mark.parametrize("value", [None, 5, {}, [5], [[]], [{}, {}, {}]])
def test_rows(value: Any) -> None:
    with pytest.raises(EngineFailed):
        untrusted.get_rows({"key": value}, "key", 2)


@pytest.mark.parametrize("value", [None, 5, "", "Red", ["red"], {}])
def test_choices(value: Any) -> None:
    with pytest.raises(EngineFailed):
        untrusted.get_choice({"key": value}, "key", ("red", "green"))


def test_what_is_right_comes_through() -> None:
    said = {"text": "ü", "number": -7, "flag": False, "output": "YQ==", "none": None, "log": "a\0\x1b"}
    assert untrusted.get_text(said, "text") == "ü"
    assert untrusted.get_number(said, "number") == untrusted.find_number(said, "number") == -7
    assert untrusted.get_flag(said, "flag") is False
    assert untrusted.get_output(said, "output") == "YQ=="
    assert untrusted.get_output({"key": ""}, "key") == ""
    assert untrusted.find_number(said, "none") is None
    said |= {"share": 0.5, "at": "2025-01-02T03:04:05.123456+02:00", "rows": [{}, {"a": 1}]}
    assert untrusted.get_amount(said, "share") == 0.5
    assert untrusted.get_moment(said, "at") == "2025-01-02T01:04:05.123Z"
    assert untrusted.get_moment(said, "none") is None
    assert untrusted.get_choice({"key": "red"}, "key", ("red", "green")) == "red"
    assert untrusted.get_rows(said, "rows", 2) == [{}, {"a": 1}]
    assert untrusted.get_count({"key": 0}, "key") == 0
    assert untrusted.get_output_text(said, "log", 10) == "a\0\x1b"
    with pytest.raises(EngineFailed):
        untrusted.get_output_text(said, "log", 2)
