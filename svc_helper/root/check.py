"""May this enrolled account be acted for now? Asked of the host, in a child, every few seconds at most.

The child resolves the Linux account itself (NSS may wait for a server), holds
it against the enrolment and the host's ranges, and asks PAM. Meanwhile the
account's calls wait here, a bounded number of them.
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
LOGIN_DEFS = "/etc/login.defs"


class Verdict(NamedTuple):
    """What came out: the account, or the code and text of the refusal."""

    account: Account | None
    code: str = ""
    message: str = ""


Waiter = Callable[[Verdict], None]
NO_PAM = Verdict(None, "account", "the PAM service of svc is not installed")
NO_ANSWER = Verdict(None, "unavailable", "the account check gave no answer")


class Full(Exception):
    """Too many calls wait already."""


class Checks:
    """The verdicts of the last seconds and whoever waits for one."""

    def __init__(self, children: Children, pam_service: str) -> None:
        self.children = children
        self.pam_service = pam_service
        self.authenticator: Any = None
        self.verdicts: dict[Entry, tuple[float, Verdict]] = {}
        self.waiting: dict[Entry, list[Waiter]] = {}
        self.told = False

    def prepare(self) -> None:
        """Load what the children need, once, before the first call."""
        self.authenticator = pam.load()

    def ask(self, entry: Entry, waiter: Waiter) -> None:
        """Call the waiter with the verdict on the entry, now or when it is there; raises Full."""
        at, verdict = self.verdicts.get(entry, (0.0, NO_ANSWER))
        if at and time.monotonic() - at < ACCOUNT_CHECK_S:
            waiter(verdict)
            return
        waiters = self.waiting.get(entry, [])
        if len(waiters) >= WAITING_PER_ACCOUNT or sum(map(len, self.waiting.values())) >= WAITING_MAX:
            raise Full
        if not waiters:
            self._start(entry)
        self.waiting.setdefault(entry, []).append(waiter)

    def fresh_s(self, entry: Entry) -> float:
        """For how long the last verdict on the entry still holds; where none is asked for, as long as one."""
        at, _ = self.verdicts.get(entry, (0.0, NO_ANSWER))
        return max(0.0, at + ACCOUNT_CHECK_S - time.monotonic()) if at else ACCOUNT_CHECK_S

    def _start(self, entry: Entry) -> None:
        result, written = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        asked = time.monotonic()  # the verdict's age counts from here: what PAM says may be as old

        def examine_and_say() -> None:
            verdict = examine(entry, self.authenticator, self.pam_service)
            os.write(written, json.dumps(verdict).encode())

        try:
            self.children.fork(
                examine_and_say,
                lambda code: self._ended(entry, asked, code, result),
                keep=[written],
                deadline_s=DEADLINE_S,
            )
        except OSError:
            os.close(result)
            raise
        finally:
            os.close(written)

    def _ended(self, entry: Entry, asked: float, code: int, result: int) -> None:
        with open(result, "rb", buffering=0) as file:
            said = file.read(8192) if code == 0 else None
        verdict = NO_ANSWER
        if said:
            account, refusal, message = json.loads(said)
            verdict = Verdict(account and Account(*account), refusal, message)
            self.verdicts[entry] = (asked, verdict)
        if verdict == NO_PAM and not self.told:
            self.told = True
            log(verdict.message + "; nobody is served", "critical", pam_service=self.pam_service)
        for waiter in self.waiting.pop(entry, []):
            waiter(verdict)


def examine(entry: Entry, authenticator: Any, pam_service: str) -> Verdict:
    """The verdict, by asking the host; may take its time."""
    account = resolve(entry.name)
    if account is None or account.uid != entry.uid:
        return Verdict(None, "refused", "the enrolled name and uid are no Linux account")
    if not ordinary(account.uid):
        return Verdict(None, "refused", "a system account")
    if authenticator is None or not os.path.exists(os.path.join("/etc/pam.d", pam_service)):
        return NO_PAM
    if not pam.allows(authenticator, entry.name, pam_service) or pam.expired(entry.name):
        return Verdict(None, "account", "the Linux account is expired or shut out")
    return Verdict(account)


def resolve(name: str) -> Account | None:
    """The Linux account of that very name."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None
    if found.pw_name != name or not found.pw_dir.startswith("/"):
        return None
    return Account(name, found.pw_uid, found.pw_gid, found.pw_dir)


def ordinary(uid: int) -> bool:
    """Whether the uid is one of a person: not root, not a system account, not nobody."""
    defs = login_defs()
    return max(defs.get("UID_MIN", 1000), 1) <= uid <= defs.get("UID_MAX", 60000) and uid != NOBODY


def login_defs() -> dict[str, int]:
    """The numbers in /etc/login.defs."""
    try:
        with open(LOGIN_DEFS, encoding="utf-8", errors="replace") as file:
            words = [line.split() for line in file if not line.startswith("#")]
    except FileNotFoundError:
        return {}
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdecimal()}
