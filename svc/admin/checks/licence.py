"""Doctor check of the licence: what it stops now or soon, and why an installed file is not in force."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any

from svc.admin.findings import Finding, Host, fail, ok, warn
from svc.db.connect import close_database, open_database
from svc.domain import configuration
from svc.domain.licence import fingerprint, reports
from svc.errors import HostRefused, SvcError
from svc.host.owner import run_as

CODE = "license"
FAILING = {"license_lapsed", "license_not_in_force"}


def licence(host: Host) -> Iterator[Finding]:
    """The trial or licence in force; each notice that administrators get is a finding of its own code."""
    configuration.configure_only(**configuration.for_licence(host.settings))
    try:
        configuration.set_request_code(fingerprint.request_code(host.root))
    except HostRefused as error:
        yield warn("license_host", error.message, error.hint)
    path = host.settings.license_path
    if _is_foreign(path):
        yield warn(CODE, f"others than root can replace {path}", f"sudo svc admin license install {path}")
    untrusted = run_as(host.owner, lambda: _resolve(host.database))
    try:
        summary, notices = str(untrusted["summary"]), _checked(untrusted["notices"])
    except (KeyError, TypeError):
        raise SvcError("checking the licence returned no usable result") from None
    for code, message in notices:
        finding = fail if code in FAILING else warn
        yield finding(code, message, reports.HINTS[code])
    if not notices:
        yield ok(CODE, summary)


def _checked(untrusted: Any) -> list[tuple[str, str]]:
    return [
        (str(notice["code"]), str(notice["message"]))
        for notice in untrusted
        if notice["code"] in reports.HINTS
    ]


def _resolve(path: str) -> dict[str, Any]:
    """As the database's owner."""
    open_database(path)
    try:
        found = reports.current()
    finally:
        close_database()
    whose = f"{found['id']} of {found['holder']}" if found["id"] else "the trial"
    summary = f"{whose}, until {found['ends_at'][:10]} ({found['days_left']} days)"
    return {"summary": summary, "notices": found["notices"]}


def _is_foreign(path: str) -> bool:
    """Whether root runs this and the file is another account's, or others may write it."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return os.geteuid() == 0 and (status.st_uid != 0 or bool(stat.S_IMODE(status.st_mode) & 0o022))
