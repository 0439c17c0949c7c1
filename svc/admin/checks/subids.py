"""Doctor check of the subordinate ids of every enrolled user: enough of them, and nobody else's."""

from __future__ import annotations

import grp
import pwd
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from svc.admin.findings import Finding, Host, Range, fail, linux_account, ok, read_ranges
from svc_helper.provision import account_ids

SUBIDS = 65536  # the user and group ids that a container image may use
SUBID_FIRST = 100000
DIRECTORY_S = 4.0  # for the ids of all ranges of one file, where a directory service does not list them


def subids(host: Host) -> Iterator[Finding]:
    """Ranges of every enrolled user, without overlap among them or with real accounts."""
    for kind in ("uid", "gid"):
        path = host.at(f"/etc/sub{kind}")
        ranges = sorted(read_ranges(path))
        yield from _missing(host, kind, ranges)
        yield from _overlaps(host, kind, ranges)


def _missing(host: Host, kind: str, ranges: list[Range]) -> Iterator[Finding]:
    free = max([SUBID_FIRST, *(entry.end for entry in ranges)])
    counts: Counter[str] = Counter()
    for entry in ranges:
        counts[entry.owner] += entry.end - entry.start
    short = []
    for user in host.present:
        count = counts[user.name] + counts[str(user.uid)]
        if count < SUBIDS:
            short.append(user.name)
            yield fail(
                f"sub{kind}",
                f"{user.name} has {count} subordinate {kind}s of {SUBIDS}",
                f"sudo usermod --add-sub{kind}s {free}-{free + SUBIDS - 1} {user.name}",
            )
            free += SUBIDS
    if not short:
        yield ok(f"sub{kind}", f"every enrolled user has {SUBIDS} subordinate {kind}s")


def _overlaps(host: Host, kind: str, ranges: list[Range]) -> Iterator[Finding]:
    """Overlaps; sorted by start, a range can only overlap the one before it that ends last."""
    widest: Range | None = None
    path = host.at(f"/etc/sub{kind}")
    real = _real_ids(host, kind, ranges)
    for entry in ranges:
        if widest and entry.start < widest.end and entry.owner != widest.owner:
            yield fail(
                f"sub{kind}_overlap",
                f"{widest.owner} and {entry.owner} both have {kind}s from {entry.start} in {path}",
                f"sudo usermod --del-sub{kind}s {entry.start}-{entry.end - 1} {entry.owner}"
                "   (then svc admin create-user gives another range)",
            )
        place = bisect_left(real, entry.start)
        if place < len(real) and real[place] < entry.end:
            yield fail(
                f"sub{kind}_overlap",
                f"the range of {entry.owner} in {path} contains {kind} {real[place]} of a real account",
                f"sudo usermod --del-sub{kind}s {entry.start}-{entry.end - 1} {entry.owner}",
            )
        if widest is None or entry.end > widest.end:
            widest = entry


def _real_ids(host: Host, kind: str, ranges: list[Range]) -> list[int]:
    """The ids of accounts or groups, sorted: listed ones, of enrolled accounts, and found by asking."""
    known = [account for user in host.enrolled if (account := linux_account(user.name))]
    if kind == "uid":
        real = {entry.pw_uid for entry in (*pwd.getpwall(), *known)}
    else:
        real = {group.gr_gid for group in grp.getgrall()} | {account.pw_gid for account in known}
    if account_ids.has_directory(kind, host.at(account_ids.NSSWITCH)):
        for entry in ranges:
            found = account_ids.search(kind, entry.start, entry.end, DIRECTORY_S / len(ranges))
            real |= {found.id} if found.name else set()
    return sorted(real)
