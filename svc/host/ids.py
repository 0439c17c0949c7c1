"""Ids and times of rows: short random ids and RFC 3339 times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

# Digits and lower-case letters without i, l, o and u, which are easily confused.
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
LENGTH = 8


def new_id(prefix: str) -> str:
    """A new id such as ``ws-4k2m9x0c``. It has 40 random bits; the primary key excludes duplicates."""
    import secrets  # loads OpenSSL, which the supervisor does without

    return prefix + "-" + "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def new_request_id() -> str:
    """A new request id; one that a client sends is ignored."""
    import secrets  # as above

    return f"req-{secrets.token_hex(8)}"


def now() -> str:
    """The current time as RFC 3339 UTC with milliseconds and Z, which sorts by time as text."""
    return _text(datetime.now(UTC))


def after(at: str, seconds: float) -> str:
    """The time so many seconds after (or before, if negative) a row's time, in the same format."""
    return _text(datetime.fromisoformat(at) + timedelta(seconds=seconds))


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
