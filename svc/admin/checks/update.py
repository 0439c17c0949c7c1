"""Doctor check of updates: how the last apply ended, and what the last look at the source has found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from svc.admin.findings import Finding, Host, ok, warn
from svc.admin.release import record
from svc.admin.release.installation import compare, installed
from svc.admin.release.status import available

CODE = "update"
DAY = 10  # characters of a time


def update(host: Host) -> Iterator[Finding]:
    """The last apply, unless its release is installed by now, and a newer release that was seen."""
    found = record.read(host.settings.state_dir)
    seen, checked, applied = found["seen"], found["checked"], found["applied"]
    if checked is None:
        return
    here = installed()
    newer = applied if applied and here.version and compare(here.version, "lt", applied["to"]) else None
    if newer and newer["outcome"] != record.OK:
        yield warn(CODE, *_of_apply(newer))
    elif checked["problem"]:
        remedy = "sudo svc admin update check"
        yield warn(CODE, f"the last check, on {checked['at'][:DAY]}, failed: {checked['problem']}", remedy)
    else:
        undone = f"; {_what(newer)} was undone since: {here.version} is installed" if newer else ""
        yield ok(CODE, f"the last check was on {checked['at'][:DAY]}{undone}")
    if version := available(seen, here):
        yield ok("update_available", f"{version} was seen on {seen['at'][:DAY]} (svc admin update status)")


def _what(applied: dict[str, Any]) -> str:
    return f"the update to {applied['to']} on {applied['at'][:DAY]}"


def _of_apply(applied: dict[str, Any]) -> tuple[str, str]:
    """What is wrong with an apply whose release is not installed, and the next command."""
    what = _what(applied)
    if applied["outcome"] in (record.BEGUN, record.FAILED):
        why = f": {applied['reason']}" if applied["reason"] else ""
        return f"{what} was not completed{why}", "sudo svc admin update apply"
    if applied["outcome"] == record.WENT_BACK:
        return f"{what} went back: {applied['reason']}", "sudo svc admin rollback list"
    return f"{what} failed in its rehearsal: {applied['reason']}", "sudo svc admin update status"
