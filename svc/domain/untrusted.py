"""Typed getters for the replies of agents.

An agent belongs to its user, who may control it: a reply is hostile until its
types and sizes are checked. An invalid value raises EngineFailed.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from svc.errors import EngineFailed, EngineTimeout, EngineUnavailable
from svc.host.ids import after
from svc_helper.wire.limits import EXEC_OUTPUT_MAX

TEXT_MAX = 4096
SILENT = (EngineTimeout, EngineUnavailable)  # no reply at all: further calls would time out too
NUMBER_MAX = 2**63 - 1  # the maximum of a database column
INTEGER_BITS = 128  # of a number that is only compared or converted: a time in ns, an inode's number


def _invalid(key: str) -> EngineFailed:
    return EngineFailed(f"the engine's answer has no usable {key}")


def get_text(untrusted: Mapping[str, Any], key: str, max_length: int = TEXT_MAX) -> str:
    """A string of at most max_length characters."""
    value = untrusted.get(key)
    if type(value) is not str or len(value) > max_length or "\0" in value:
        raise _invalid(key)
    return value


def get_output_text(untrusted: Mapping[str, Any], key: str, max_length: int) -> str:
    """Output of a container: any characters, bounded."""
    value = untrusted.get(key)
    if type(value) is not str or len(value) > max_length:
        raise _invalid(key)
    return value


def get_choice(untrusted: Mapping[str, Any], key: str, choices: Sequence[str]) -> str:
    """One of these strings."""
    value = untrusted.get(key)
    if type(value) is not str or value not in choices:
        raise _invalid(key)
    return value


def find_text(untrusted: Mapping[str, Any], key: str, max_length: int = TEXT_MAX) -> str | None:
    """The same, or None for a missing or null value."""
    return None if untrusted.get(key) is None else get_text(untrusted, key, max_length)


def get_number(untrusted: Mapping[str, Any], key: str) -> int:
    """An integer that fits a database column."""
    value = untrusted.get(key)
    if type(value) is not int or not -NUMBER_MAX <= value <= NUMBER_MAX:
        raise _invalid(key)
    return value


def find_number(untrusted: Mapping[str, Any], key: str) -> int | None:
    """The same, or None for a missing or null value."""
    return None if untrusted.get(key) is None else get_number(untrusted, key)


def get_count(untrusted: Mapping[str, Any], key: str) -> int:
    """An integer that is at least 0."""
    value = get_number(untrusted, key)
    if value < 0:
        raise _invalid(key)
    return value


def get_integer(untrusted: Mapping[str, Any], key: str) -> int:
    """An integer that may exceed a database column, as ns since 1970 do after April 2262."""
    value = untrusted.get(key)
    if type(value) is not int or value.bit_length() > INTEGER_BITS:
        raise _invalid(key)
    return value


def get_capped(untrusted: Mapping[str, Any], key: str) -> int:
    """Bytes of a disk: 0 for less, a database column's maximum for more, as some file systems report."""
    return min(max(0, get_integer(untrusted, key)), NUMBER_MAX)


def find_capped(untrusted: Mapping[str, Any], key: str) -> int | None:
    """The same, or None for a missing or null value."""
    return None if untrusted.get(key) is None else get_capped(untrusted, key)


def get_flag(untrusted: Mapping[str, Any], key: str) -> bool:
    """True or false."""
    value = untrusted.get(key)
    if type(value) is not bool:
        raise _invalid(key)
    return value


def get_output(untrusted: Mapping[str, Any], key: str) -> str:
    """Base64 of at most EXEC_OUTPUT_MAX bytes, as text."""
    value = get_text(untrusted, key, EXEC_OUTPUT_MAX * 4 // 3 + 4)
    try:
        output = binascii.a2b_base64(value, strict_mode=True) if value else b""
    except ValueError:
        raise _invalid(key) from None
    if len(output) > EXEC_OUTPUT_MAX:
        raise _invalid(key)
    return value


def get_amount(untrusted: Mapping[str, Any], key: str) -> float:
    """A finite number that is at least 0, such as a percentage."""
    value = untrusted.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= NUMBER_MAX:
        raise _invalid(key)
    return float(value)


def get_moment(untrusted: Mapping[str, Any], key: str) -> str | None:
    """A time in the format of the database, or None for a missing or null value."""
    text = find_text(untrusted, key, 64)
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise _invalid(key)
        return after(moment.astimezone(UTC).isoformat(), 0)
    except (ValueError, OverflowError):
        raise _invalid(key) from None


def get_rows(untrusted: Mapping[str, Any], key: str, most: int) -> list[Mapping[str, Any]]:
    """A list of at most `most` objects, whose values are still untrusted."""
    rows = untrusted.get(key)
    if type(rows) is not list or len(rows) > most or not all(type(row) is dict for row in rows):
        raise _invalid(key)
    return rows
