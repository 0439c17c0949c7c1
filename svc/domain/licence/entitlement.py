"""What this installation may do now: by the trial, or by the licence that is installed.

Resolved anew at each question, without a restart: the file's signature is checked once for each file
that is found there (by its identity), the times are compared each time.
"""

from __future__ import annotations

import os
import stat
from datetime import datetime
from typing import Any, NamedTuple

from svc.db import facts
from svc.domain import configuration
from svc.domain.licence import documents, trial
from svc.domain.licence.documents import Licence
from svc.errors import LicenseInvalid
from svc.host import clock
from svc.host.clock import Clock, Record
from svc.host.ids import after, now
from svc.limits import LICENSE_NOTICE_DAYS, TRIAL_DAYS

TRIAL, SIGNED = "trial", "signed"
ACTIVE, ENDING, LAPSED = "active", "ending", "lapsed"
DAY_S = 86400
REQUEST = "sudo svc admin license request"  # for a licence that fits
BEHIND_S = 3600  # of the clock: less is no fault worth a finding


class Entitlement(NamedTuple):
    """The trial or the licence in force, or the one that was last in force."""

    kind: str  # trial, signed
    state: str  # active, ending, lapsed
    starts_at: str
    ends_at: str
    days_left: int  # begun days count; 0 when it has lapsed
    licence: Licence | None  # of a signed one
    problem: str  # why an installed file is not in force; empty otherwise
    clock_behind_s: int  # how far this host's clock is behind a time that was seen

    @property
    def is_valid(self) -> bool:
        """Whether workspaces may be created and started."""
        return self.state != LAPSED

    @property
    def name(self) -> str:
        """For messages."""
        return "the trial" if self.licence is None else f"the licence {self.licence.id}"


# --- the installed file ----------------------------------------------------------------------

_clock = Clock()
_kept: dict[tuple[Any, ...], Licence | str] = {}  # of the file seen last: the licence, or why it is none


def installed() -> Licence | None:
    """The licence in SVC_LICENSE_PATH, for this host, whatever its time; None without a file.

    Raises LicenseInvalid.
    """
    config = configuration.current
    try:
        descriptor = os.open(config.license_path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise LicenseInvalid(f"{config.license_path} cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise LicenseInvalid(f"{config.license_path} is not a regular file")
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        key = (*identity, config.license_keys, config.request_code)
        found = _kept.get(key)
        if found is None:
            found = _read(descriptor)
            _kept.clear()
            _kept[key] = found
    finally:
        os.close(descriptor)
    if isinstance(found, str):
        raise LicenseInvalid(found)
    return found


def _read(descriptor: int) -> Licence | str:
    try:
        untrusted = os.read(descriptor, documents.FILE_MAX + 1)
        return for_this_host(documents.read(untrusted, configuration.current.license_keys))
    except LicenseInvalid as error:
        return error.message
    except OSError as error:
        return f"{configuration.current.license_path} cannot be read: {error.strerror}"


def for_this_host(licence: Licence) -> Licence:
    """The licence; raises LicenseInvalid for another host's."""
    own = configuration.current.request_code
    if not own:
        raise LicenseInvalid("this host has no request code: /etc/machine-id is missing or empty")
    if licence.host != own:
        raise LicenseInvalid(
            f"{licence.id} is for another host ({licence.host}); this one is {own}", hint=REQUEST
        )
    return licence


# --- what is in force --------------------------------------------------------------------------


def resolve(*, with_database: bool = True) -> Entitlement:
    """The entitlement now; raises what the database raises.

    `with_database` False is for the administrator's commands when it cannot be used: by root's files alone.
    """
    directory = configuration.current.state_dir
    record = clock.read_file(directory)
    start = trial.read_file(directory)
    if with_database:
        record = clock.latest(record, clock.of_facts(facts.find(*clock.FACTS)))
        start = trial.find(start)
    present = _clock.read(record.seen)
    start = start or present
    problem, licence = "", None
    try:
        licence = installed()
    except LicenseInvalid as error:
        problem = error.message
    if licence is not None:
        problem = out_of_time(licence, max(present, licence.issued))
        if not problem:
            return _judged(
                SIGNED, licence.not_before, licence.not_after, max(present, licence.issued), licence
            )
    found = _judged(TRIAL, start, after(start, TRIAL_DAYS * DAY_S), present)
    if licence is not None and not found.is_valid and present >= licence.not_after:
        found = _judged(SIGNED, licence.not_before, licence.not_after, present, licence)
    return found._replace(problem=problem)


def require_in_time(licence: Licence, in_database: Record) -> None:
    """Raise LicenseInvalid for a licence that would not be valid now, once it were installed."""
    record = clock.latest(clock.read_file(configuration.current.state_dir), in_database)
    record = clock.after_issue(record, licence.issued)
    problem = out_of_time(licence, max(_clock.read(record.seen), licence.issued))
    if problem:
        raise LicenseInvalid(problem, hint=REQUEST)


def out_of_time(licence: Licence, present: str) -> str:
    """Why a licence is not valid at that time; empty when it is."""
    if present < licence.not_before:
        return f"{licence.id} is valid only from {licence.not_before[:10]}"
    if present >= licence.not_after:
        return f"{licence.id} ended on {licence.not_after[:10]}"
    return ""


def _judged(kind: str, starts: str, ends: str, present: str, licence: Licence | None = None) -> Entitlement:
    left_s = _seconds(present, ends)
    state = LAPSED if left_s <= 0 else ENDING if left_s <= LICENSE_NOTICE_DAYS * DAY_S else ACTIVE
    days_left = max(0, -int(-left_s // DAY_S))
    behind_s = int(_seconds(now(), present))
    return Entitlement(kind, state, starts, ends, days_left, licence, "", max(0, behind_s))


def _seconds(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()
