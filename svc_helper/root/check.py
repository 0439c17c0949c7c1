"""The account check: may this enrolled account be used now? The host is asked every few seconds at most.

A child resolves the Linux account (NSS may wait for a server), compares it with
the enrolment and the host's uid range, and runs PAM's account stack. Meanwhile a
bounded number of the account's calls wait in the helper.
"""

from __future__ import annotations

import json
import os
import pwd
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from svc_helper.root import pam
from svc_helper.root.children import Children
from svc_helper.root.drop import Account
from svc_helper.root.enrolment import NOBODY, Entry
from svc_helper.root.log import log
from svc_helper.wire.limits import ACCOUNT_CHECK_S

DEADLINE_S = 10
WAITING_PER_ACCOUNT = 16
WAITING_MAX = 256
LOGIN_DEFS, SUBUID = "/etc/login.defs", "/etc/subuid"


class Result(NamedTuple):
    """The outcome of a check: the account, or why it is refused; both for an expired or locked account."""

    account: Account | None
    code: str = ""
    message: str = ""


Callback = Callable[[Result], None]
NO_PAM = Result(None, "account", "the PAM service of svc is not installed")
NO_RESULT = Result(None, "unavailable", "the account check ended without a result")


class TooManyWaiting(Exception):
    """The limit of calls that wait for an account check is reached."""


class AccountChecks:
    """Recent results, the checks that run, and the calls that wait for them."""

    def __init__(self, children: Children, pam_service: str) -> None:
        self.children = children
        self.pam_service = pam_service
        self.authenticator: Any = None
        self.results: dict[Entry, tuple[float, Result]] = {}
        self.waiting: dict[Entry, list[Callback]] = {}
        self.logged_no_pam = False

    def prepare(self) -> None:
        """Load PAM once, before the first fork."""
        self.authenticator = pam.load()

    def request(self, entry: Entry, callback: Callback) -> None:
        """Call back with a fresh result, now or when the check ends; raises TooManyWaiting, OSError."""
        at, result = self.results.get(entry, (0.0, NO_RESULT))
        if at and time.monotonic() - at < ACCOUNT_CHECK_S:
            callback(result)
            return
        callbacks = self.waiting.get(entry, [])
        if len(callbacks) >= WAITING_PER_ACCOUNT or sum(map(len, self.waiting.values())) >= WAITING_MAX:
            raise TooManyWaiting
        if not callbacks:
            self._start(entry)
        self.waiting.setdefault(entry, []).append(callback)

    def fresh_s(self, entry: Entry) -> float:
        """Seconds for which the last result stays fresh; without one (single-user mode) the longest time."""
        at, _ = self.results.get(entry, (0.0, NO_RESULT))
        return max(0.0, at + ACCOUNT_CHECK_S - time.monotonic()) if at else ACCOUNT_CHECK_S

    def _start(self, entry: Entry) -> None:
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        started = time.monotonic()  # a result's age counts from here: PAM's answer may be as old

        def work() -> None:
            os.write(writing, json.dumps(examine(entry, self.authenticator, self.pam_service)).encode())

        try:
            self.children.fork(
                work,
                lambda code: self._ended(entry, started, code, reading),
                source=entry.name,
                keep=[writing],
                deadline_s=DEADLINE_S,
            )
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)

    def _ended(self, entry: Entry, started: float, exit_code: int, reading: int) -> None:
        with open(reading, "rb", buffering=0) as file:
            content = file.read(8192) if exit_code == 0 else None
        result = NO_RESULT
        if content:
            account, code, message = json.loads(content)
            result = Result(account and Account(*account), code, message)
            self.results[entry] = (started, result)
        if result == NO_RESULT:
            self.children.log.log(entry.name, result.message, "error", user=entry.name)
        if result == NO_PAM and not self.logged_no_pam:
            self.logged_no_pam = True
            log(f"{result.message}; every call is refused", "critical", pam_service=self.pam_service)
        for callback in self.waiting.pop(entry, []):
            callback(result)


def examine(entry: Entry, authenticator: Any, pam_service: str) -> Result:
    """Check an entry against the host, in a child: NSS and PAM may block."""
    account = resolve(entry.name)
    if account is None or account.uid != entry.uid:
        return Result(None, "refused", "the enrolled name and uid do not belong to one Linux account")
    if why := why_no_person(account.uid):
        return Result(None, "refused", f"a system account: {why}")
    if authenticator is None or not os.path.exists(os.path.join("/etc/pam.d", pam_service)):
        return NO_PAM
    if not pam.allows(authenticator, entry.name, pam_service) or pam.expired(entry.name):
        return Result(account, "account", "the Linux account is expired or locked")
    return Result(account)


def resolve(name: str) -> Account | None:
    """The Linux account of exactly this name."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None
    if found.pw_name != name or not found.pw_dir.startswith("/"):
        return None
    return Account(name, found.pw_uid, found.pw_gid, found.pw_dir)


def why_no_person(uid: int) -> str:
    """Why a uid is not a person's, empty for a person's; UID_MAX limits only what useradd(8) gives."""
    lowest, nobody = max(login_defs().get("UID_MIN", 1000), 1), resolve("nobody")
    if uid < lowest:
        return f"uid {uid} is below UID_MIN, {lowest} in {LOGIN_DEFS}"
    if uid in NOBODY or (nobody and uid == nobody.uid):
        return f"uid {uid} is nobody's; see getent passwd nobody"
    for owner, first, count in (row for row in _rows(SUBUID, ":") if len(row) == 3):
        if first.isdecimal() and count.isdecimal() and 0 <= uid - int(first) < int(count):
            return f"uid {uid} is one of the subordinate uids of {owner} in {SUBUID}"
    return ""


def login_defs() -> dict[str, int]:
    """The numbers in /etc/login.defs."""
    return {row[0]: int(row[1]) for row in _rows(LOGIN_DEFS) if len(row) == 2 and row[1].isdecimal()}


def _rows(path: str, separator: str | None = None) -> list[list[str]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.strip().split(separator) for line in file if not line.startswith("#")]
    except FileNotFoundError:
        return []
