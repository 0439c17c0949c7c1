"""Subordinate ids: the ranges of uids and gids for one user's containers alone.

An overlap would let one user's containers reach another's files, so each range is compared
with all others and with the host's accounts and groups.
"""

from __future__ import annotations

import fcntl
import grp
import os
import pwd
import re
from collections.abc import Collection
from typing import NamedTuple

from svc_helper import atomic_file
from svc_helper.provision import account_ids
from svc_helper.provision.verbs import Refusal
from svc_helper.root.check import login_defs
from svc_helper.root.drop import Account

COUNT = 65536  # the ids that a container image may use
LOCK = "/etc/.pwd.lock"  # of lckpwdf(3)
SEARCH_S = 4.0  # for the ids of one range in a directory service; the call has 60 s
CHOICES = 8  # ranges that are tried where a directory service has accounts in them
MAX_DEFAULT = 600100000  # of SUB_UID_MAX and SUB_GID_MAX without an entry in login.defs


class Span(NamedTuple):
    """Ids in use: from `first` to before `end`."""

    first: int
    end: int
    owner: str

    def overlaps(self, other: Span) -> bool:
        """Whether an id is in both."""
        return self.first < other.end and other.first < self.end


def read(kind: str) -> list[Span]:
    """The ranges in /etc/subuid or /etc/subgid (kind: uid, gid)."""
    found = [
        re.fullmatch(r"([^:]+):([0-9]{1,10}):([0-9]{1,10})\s*", line) for line in _lines(f"/etc/sub{kind}")
    ]
    return [Span(int(m[2]), int(m[2]) + int(m[3]), m[1]) for m in found if m]


def real_ids(kind: str) -> list[Span]:
    """The ids of the host's accounts or groups."""
    if kind == "uid":
        return [
            Span(entry.pw_uid, entry.pw_uid + 1, f"the account {entry.pw_name}") for entry in pwd.getpwall()
        ]
    return [Span(entry.gr_gid, entry.gr_gid + 1, f"the group {entry.gr_name}") for entry in grp.getgrall()]


def ensure(account: Account, kind: str, enrolled: Collection[Account] = ()) -> None:
    """Add a range of 65536 ids unless the account has one, by name or uid; raises Refusal on an overlap.

    The ids of enrolled accounts are known even where a directory service does not list them.
    """
    known = [_real_id(kind, other) for other in (account, *enrolled)]
    names = (account.name, str(account.uid))
    before = spans = read(kind)
    if not any(span.owner in names and span.end - span.first >= COUNT for span in spans):
        add(account.name, kind, known)
        spans = read(kind)
    for number, own in enumerate(spans):
        if own.owner in names:
            others = [*spans[:number], *spans[number + 1 :], *real_ids(kind), *known]
            if own in before:  # a new one has been compared with the directory service
                others += in_directory(kind, own.first, own.end)
            refuse_shared(account.name, kind, own, others)


def _real_id(kind: str, account: Account) -> Span:
    number = account.uid if kind == "uid" else account.gid
    return Span(number, number + 1, f"the account {account.name}")


def in_directory(kind: str, first: int, end: int) -> list[Span]:
    """An account or group of a directory service with one of these ids, if one is found in SEARCH_S."""
    if not account_ids.has_directory(kind):
        return []  # real_ids has them all
    found = account_ids.search(kind, first, end, SEARCH_S)
    what = {"uid": "account", "gid": "group"}[kind]
    return [Span(found.id, found.id + 1, f"the {what} {found.name}")] if found.name else []


def choose_unused(kind: str, taken: list[Span]) -> int:
    """As choose, but no range in which a directory service has an account or group."""
    taken = list(taken)
    for number in range(CHOICES):
        first = choose(kind, taken)
        found = in_directory(kind, first, first + COUNT)
        if not found:
            return first
        taken.append(Span(first, first + COUNT * 2**number, found[0].owner))  # they have ids in blocks
    raise Refusal(
        "conflict",
        f"{found[0].owner} and others of the directory service have ids from {taken[-CHOICES].first} on;"
        f" set SUB_{kind.upper()}_MIN in /etc/login.defs above their ids",
    )


def choose(kind: str, taken: list[Span]) -> int:
    """The first id of the lowest free range."""
    defs = login_defs()
    first = defs.get(f"SUB_{kind.upper()}_MIN", 100000)
    for span in sorted(taken):
        if span.first >= first + COUNT:
            break
        first = max(first, span.end)
    if first + COUNT - 1 > defs.get(f"SUB_{kind.upper()}_MAX", MAX_DEFAULT):
        raise Refusal("conflict", f"no {COUNT} ids are free; raise SUB_{kind.upper()}_MAX in /etc/login.defs")
    return first


def add(name: str, kind: str, known: Collection[Span] = ()) -> None:
    """Add a range for the account, without these ids and all that are found to be somebody's.

    Under the lock of lckpwdf(3): a concurrent useradd would choose the same ids. usermod(8)
    cannot choose a range and supports local accounts only.
    """
    path = f"/etc/sub{kind}"
    with open(os.open(LOCK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        first = choose_unused(kind, [*read(kind), *real_ids(kind), *known])
        lines = [*_lines(path), f"{name}:{first}:{COUNT}"]
        text = "".join(f"{line}\n" for line in lines).lstrip("\n")
        atomic_file.replace(path, text.encode(errors="surrogateescape"), 0o644)


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read().rstrip("\n").split("\n")
    except FileNotFoundError:
        return []


def refuse_shared(name: str, kind: str, own: Span, others: list[Span]) -> None:
    """Raise Refusal if the range overlaps another, the account's own others included."""
    for other in others:
        if own.overlaps(other):
            line = f"{own.owner}:{own.first}:{own.end - own.first}"
            raise Refusal(
                "conflict",
                f"{name} and {other.owner} share subordinate {kind}s;"
                f" remove the line {line} from /etc/sub{kind}, then run this again",
            )
