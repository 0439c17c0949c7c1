"""The worker's part of the licence: the time that was seen in the database, and notices in the log."""

from __future__ import annotations

import time

from svc.db import facts
from svc.domain.licence import reports
from svc.host import clock
from svc.log import log

NOTICE_S = 86400.0  # between two log lines of the same notice


def _read() -> clock.Record:
    return clock.of_facts(facts.find(*clock.FACTS))


def _write(record: clock.Record) -> None:
    facts.put(clock.facts_of(record))


class LicenceWatch:
    """What is due, and the notices that were logged."""

    def __init__(self) -> None:
        self.recorder = clock.Recorder(_read, _write)
        self.check_at = 0.0
        self.logged: dict[str, float] = {}  # by code

    def begin(self) -> None:
        """Write the time if it is due, and log the notices that administrators should know."""
        self.recorder.begin()
        if time.monotonic() < self.check_at:
            return
        self.check_at = time.monotonic() + clock.PERIOD_S
        for notice in reports.current()["notices"]:
            if time.monotonic() >= self.logged.get(notice["code"], 0.0):
                self.logged[notice["code"]] = time.monotonic() + NOTICE_S
                log("worker", notice["message"], "warning", code=notice["code"], hint=notice["hint"])
