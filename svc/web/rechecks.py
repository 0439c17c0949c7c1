"""The access rule of a response that lasts: applied again now and then, and when its credential ends."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import peewee

from svc.domain.accounts import account_status
from svc.domain.principal import Caller
from svc.errors import SvcError
from svc.limits import ACCESS_ENDED_S, ACCESS_RECHECK_S


class Recheck:
    """Of one response, in its own thread; `require` applies the rule of its request again."""

    def __init__(self, caller: Caller, require: Callable[[], object]) -> None:
        self.caller, self.require = caller, require
        self.checked_at = self.asked_at = time.monotonic()

    def apply(self) -> None:
        """Raise the SvcError of the rule once access is lost; to be called at least every ACCESS_ENDED_S."""
        now = time.monotonic()
        if now - self.asked_at < ACCESS_ENDED_S:
            return
        self.asked_at = now
        if now - self.checked_at > ACCESS_RECHECK_S or has_ended(self.caller):
            self.require()
            self.checked_at = time.monotonic()


def has_ended(caller: Caller) -> bool:
    """As account_status.has_ended; a busy database has ended nothing."""
    with contextlib.suppress(SvcError, peewee.PeeweeException):
        return account_status.has_ended(caller)
    return False
