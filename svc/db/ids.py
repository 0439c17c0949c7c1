"""Names and times of rows: short opaque ids and RFC 3339 times, for every layer that writes a row."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

# Digits and lower case without i, l, o and u: nothing that is misread, misheard or spells a word.
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
LENGTH = 8


def new_id(prefix: str) -> str:
    """A fresh id such as ``ws-4k2m9x0c``: 40 random bits, so a primary key still guards against a double."""
    return prefix + "-" + "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def now() -> str:
    """The present as RFC 3339 UTC with milliseconds and Z; as text it sorts as time does."""
    return _text(datetime.now(UTC))


def after(at: str, seconds: float) -> str:
    """The time that many seconds after a row's (before it, when they are negative), in the same form."""
    return _text(datetime.fromisoformat(at) + timedelta(seconds=seconds))


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
