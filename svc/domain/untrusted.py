"""Typed reading of what an agent answered.

The agent belongs to its user, who may trace it: every answer is hostile until
its type and size were looked at. Nonsense is EngineFailed, never a crash.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from svc.db.ids import after
from svc.errors import EngineFailed, EngineTimeout, EngineUnavailable
from svc.limits import EXEC_OUTPUT_MAX

TEXT_MAX = 4096
SILENT = (EngineTimeout, EngineUnavailable)  # no answer at all: another call would be waited for in vain
NUMBER_MAX = 2**63 - 1  # what a column of the database holds


def _nonsense(key: str) -> EngineFailed:
    return EngineFailed(f"the engine's answer has no usable {key}")


def get_text(untrusted: Mapping[str, Any], key: str, max_length: int = TEXT_MAX) -> str:
    """A string of at most max_length characters."""
    value = untrusted.get(key)
    if type(value) is not str or len(value) > max_length or "\0" in value:
        raise _nonsense(key)
    return value


def get_output_text(untrusted: Mapping[str, Any], key: str, max_length: int) -> str:
    """What a container wrote: any characters at all, bounded."""
    value = untrusted.get(key)
    if type(value) is not str or len(value) > max_length:
        raise _nonsense(key)
    return value


def get_choice(untrusted: Mapping[str, Any], key: str, choices: Sequence[str]) -> str:
    """One of these strings."""
    value = untrusted.get(key)
    if type(value) is not str or value not in choices:
        raise _nonsense(key)
    return value


def find_text(untrusted: Mapping[str, Any], key: str, max_length: int = TEXT_MAX) -> str | None:
    """The same, or None where the answer has none."""
    return None if untrusted.get(key) is None else get_text(untrusted, key, max_length)


def get_number(untrusted: Mapping[str, Any], key: str) -> int:
    """A whole number that a column can hold."""
    value = untrusted.get(key)
    if type(value) is not int or not -NUMBER_MAX <= value <= NUMBER_MAX:
        raise _nonsense(key)
    return value


def find_number(untrusted: Mapping[str, Any], key: str) -> int | None:
    """The same, or None where the answer has none."""
    return None if untrusted.get(key) is None else get_number(untrusted, key)


def get_count(untrusted: Mapping[str, Any], key: str) -> int:
    """A whole number that is not negative."""
    value = get_number(untrusted, key)
    if value < 0:
        raise _nonsense(key)
    return value


def get_flag(untrusted: Mapping[str, Any], key: str) -> bool:
    """True or false."""
    value = untrusted.get(key)
    if type(value) is not bool:
        raise _nonsense(key)
    return value


def get_output(untrusted: Mapping[str, Any], key: str) -> str:
    """Base64 of at most EXEC_OUTPUT_MAX bytes, as text."""
    value = get_text(untrusted, key, EXEC_OUTPUT_MAX * 4 // 3 + 4)
    try:
        output = binascii.a2b_base64(value, strict_mode=True) if value else b""
    except ValueError:
        raise _nonsense(key) from None
    if len(output) > EXEC_OUTPUT_MAX:
        raise _nonsense(key)
    return value


def get_amount(untrusted: Mapping[str, Any], key: str) -> float:
    """A finite number that is not negative: a share, a percentage."""
    value = untrusted.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= NUMBER_MAX:
        raise _nonsense(key)
    return float(value)


def get_moment(untrusted: Mapping[str, Any], key: str) -> str | None:
    """A time, in the form of a row's; None where the answer has none."""
    text = find_text(untrusted, key, 64)
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise _nonsense(key)
        return after(moment.astimezone(UTC).isoformat(), 0)
    except (ValueError, OverflowError):
        raise _nonsense(key) from None


def get_rows(untrusted: Mapping[str, Any], key: str, most: int) -> list[Mapping[str, Any]]:
    """A list of at most so many objects, whose values are as untrusted as before."""
    rows = untrusted.get(key)
    if type(rows) is not list or len(rows) > most or not all(type(row) is dict for row in rows):
        raise _nonsense(key)
    return rows
