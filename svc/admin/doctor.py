"""`svc admin doctor`: checks of everything that must be right on this host.

A check is a function of svc/admin/checks/ that yields findings; order.py has all
of them, codes.py their codes. A check changes nothing (but the record that the
check of the audit keeps of the last run) and starts no user's Podman.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from svc.admin import own_files, reporting
from svc.admin.checks import order
from svc.admin.checks.codes import CODES, NOT_CHECKED
from svc.admin.checks.service import server_of
from svc.admin.command import require_owner, settings_of, wrap_db_errors
from svc.admin.findings import Finding, Host, fail, linux_account, read_enrolled
from svc.admin.findings import warn as warn_of
from svc.admin.repair import repair
from svc.cli.env import warn
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command
from svc.db.location import absolute_path, database_path
from svc.domain import host_reports
from svc.errors import SettingInvalid, SvcError
from svc.host.accounts import APP, creation
from svc.host.owner import Owner, owner_of, service_owner
from svc.settings import Settings

COLUMNS = (
    ("CHECK", "code", output.plain),
    ("LEVEL", "level", output.plain),
    ("FOUND", "found", output.plain),
    ("REMEDY", "remedy", output.plain),
)
EXAMPLES = """\
sudo svc admin doctor
sudo svc admin doctor --repair
sudo svc admin doctor --json"""
LISTED_MAX = 20  # of one code and level: a host may have thousands of users
AGAIN = "mend these first, then: sudo svc admin doctor"
PAINT = {"ok": "32", "warn": "33", "fail": "31"}


@wrap_db_errors
def doctor(args: Arguments) -> int:
    """Check this host's prerequisites; print each finding with its remedy.

    Exit code 0 when nothing fails (warnings may remain), else 1: something must
    be mended. docs/doctor.md has a line for each check. Of one check at most 20
    findings are listed, whatever the number of users; then how many more. Changes
    nothing, except that root's run records the last row of the audit, from which
    the next run detects rows cut off or rewritten since, and writes the report
    that administrators read in the API. Columns: check, level
    (ok, warn, fail), found, remedy.

    With --repair it first sets owner and mode of the service's own files and
    moves aside what the service did not make, such as a link in its data
    directory; it deletes nothing. A pasted chown would be less safe: whoever can
    write the directory may put a link there meanwhile.
    """
    findings = list(repaired(args)) if args.repair else []
    settings = settings_of(args, silent=True)  # its faults are findings
    findings += findings_of(settings)
    records = [finding._asdict() for finding in findings]
    report(settings, records)
    if args.json:
        output.items_json(records)
    elif output.on_terminal():
        for finding in findings:
            show(finding)
    else:
        output.table(COLUMNS, records, "")
    return 1 if any(finding.level == "fail" for finding in findings) else 0


def findings_of(settings: Settings) -> list[Finding]:
    """What all checks find on this host."""
    try:
        host = host_of(settings)
    except SvcError:
        warn(settings.faults(), settings.unknown())
        raise
    checks = [check for check in order.CHECKS if host.database or check not in order.NEED_DATABASE]
    return bounded(run(checks, host))


def report(settings: Settings, records: list[dict[str, Any]]) -> None:
    """Report what was found."""
    if reporting.is_reported(settings):
        reporting.write(settings, host_reports.HOST, records)


def repaired(args: Arguments) -> Iterator[Finding]:
    """Repair the service's own files: the settings file first, which must be sound before it is read."""
    is_root = os.geteuid() == 0
    if is_root:
        yield from repair(list(own_files.settings_file()))
    if is_root and service_owner() is None:
        yield fail("repair", f"there is no system user {APP} to give its files to", f"sudo {creation(APP)}")
        return
    settings = settings_of(args, silent=True)
    files: list[own_files.OwnFile] = []
    for listed in (own_files.of_root, lambda settings: own_files.of_data(settings, absolute_path(settings))):
        if not is_root and listed is own_files.of_root:
            continue
        try:
            files += listed(settings)
        except SettingInvalid as error:
            yield fail("repair", f"not everything is repaired: {error.message}", error.hint)
    yield from repair(files)


def host_of(settings: Settings) -> Host:
    """The host to check; raises DatabaseRefused unless the caller is root or the database's owner.

    What has no valid setting is left empty: the database's path, the enrolment, the server.
    """
    host = Host(settings, "", Owner(os.geteuid(), os.getegid()))
    if settings.is_valid("SVC_DB"):
        path = database_path(settings)
        require_owner(path)
        host.database, host.owner = path, owner_of(path)
    host.knows_enrolled = settings.is_valid("SVC_STATE_DIR")
    host.enrolled = list(read_enrolled(settings.state_dir)) if host.knows_enrolled else []
    host.gone = frozenset(entry.name for entry in host.enrolled if linux_account(entry.name) is None)
    server = server_of(settings.socket) if settings.is_valid("SVC_SOCKET") else None
    if server and os.geteuid() == 0:
        host.view, host.server = f"/proc/{server}/root", server
    return host


def run(checks: Iterable[Callable[[Host], Iterator[Finding]]], host: Host) -> Iterator[Finding]:
    """The findings of the checks; a check that cannot run yields a finding of its own."""
    faults = {fault.text for fault in host.settings.faults()}
    for check in checks:
        name = check.__name__
        code, what = (name, "") if name in CODES else (NOT_CHECKED, f"{name}: ")
        try:
            yield from check(host)
        except SvcError as error:
            if error.message in faults:  # which is a finding itself
                yield warn_of(code, f"{what}not checked: {error.message}", error.hint)
                continue
            yield fail(code, f"{what}{error.message}", error.hint)
        except OSError as error:
            yield fail(code, f"{what}check failed: {error}", "sudo svc admin doctor")


def bounded(findings: Iterable[Finding]) -> list[Finding]:
    """The first findings of each code and level, and a line that counts the others."""
    kept: list[Finding] = []
    counts: dict[tuple[str, str], int] = {}
    for finding in findings:
        key = finding.code, finding.level
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= LISTED_MAX:
            kept.append(finding)
    for (code, level), count in counts.items():
        if count > LISTED_MAX:
            last = max(at for at, one in enumerate(kept) if (one.code, one.level) == (code, level))
            found = f"{count - LISTED_MAX} more like the {LISTED_MAX} above"
            kept.insert(last + 1, kept[last]._replace(found=found, remedy=AGAIN))
    return kept


def show(finding: Finding) -> None:
    """Print a finding on a terminal; the remedy stands on a line of its own, to be copied."""
    level = f"{finding.level:<4}"
    if not os.environ.get("NO_COLOR"):
        level = f"\x1b[{PAINT[finding.level]}m{level}\x1b[0m"
    print(f"{level}  {finding.code:<22}{output.visible(finding.found)}")
    if finding.remedy:
        print(f"{'':<28}{output.visible(finding.remedy)}")


COMMANDS = (
    Command(
        "doctor",
        doctor,
        Argument("--repair", "first set owners and modes of the service's own files", kind="flag"),
        Argument("--json", "print the findings as JSON", kind="flag"),
        examples=EXAMPLES,
        json=False,
    ),
)
