"""`svc admin doctor`: checks of everything that must be right on this host.

A check is a function that yields findings: doctor_service.py has those of the
service, doctor_host.py those of Podman's prerequisites, doctor_gpus.py those of
GPUs. A check changes nothing (but doctor_audit.py's record of the last run) and
starts no user's Podman.
"""

from __future__ import annotations

import os

from svc.admin.command import require_owner, settings_of, wrap_db_errors
from svc.cli import output
from svc.cli.arguments import Argument, Arguments, Command

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from svc.admin.findings import Finding, Host
    from svc.settings import Settings

COLUMNS = (
    ("CHECK", "code", output.plain),
    ("LEVEL", "level", output.plain),
    ("FOUND", "found", output.plain),
    ("REMEDY", "remedy", output.plain),
)
EXAMPLES = """\
sudo svc admin doctor
sudo svc admin doctor --json"""
PAINT = {"ok": "32", "warn": "33", "fail": "31"}


@wrap_db_errors
def doctor(args: Arguments) -> int:
    """Check this host's prerequisites; print each finding with its remedy.

    Exit code 0 when nothing fails (warnings may remain), else 1. Changes
    nothing, except that root's run records the last row of the audit, from which
    the next run detects rows cut off or rewritten since. Columns: check, level
    (ok, warn, fail), found, remedy.
    """
    from svc.admin import doctor_gpus, doctor_host, doctor_service

    host = host_of(settings_of(args))
    findings = list(run((*doctor_service.CHECKS, *doctor_host.CHECKS, *doctor_gpus.CHECKS), host))
    records = [finding._asdict() for finding in findings]
    if args.json:
        output.items_json(records)
    elif output.on_terminal():
        for finding in findings:
            show(finding)
    else:
        output.table(COLUMNS, records, "")
    return 1 if any(finding.level == "fail" for finding in findings) else 0


def host_of(settings: Settings) -> Host:
    """The host to check; raises DatabaseRefused unless the caller is root or the database's owner."""
    from svc.admin.doctor_service import server_of
    from svc.admin.findings import Host, read_enrolled
    from svc.db.location import database_path
    from svc.db.owner import owner_of

    path = database_path(settings)
    require_owner(path)
    host = Host(settings, path, owner_of(path), enrolled=list(read_enrolled(settings.state_dir)))
    server = server_of(settings.socket)
    if server and os.geteuid() == 0:
        host.view = f"/proc/{server}/root"
    return host


def run(checks: Iterable[Callable[[Host], Iterator[Finding]]], host: Host) -> Iterator[Finding]:
    """The findings of the checks; a check that cannot run yields a finding of its own."""
    from svc.admin.findings import fail
    from svc.errors import SvcError

    for check in checks:
        try:
            yield from check(host)
        except SvcError as error:
            yield fail(check.__name__, error.message, error.hint)
        except OSError as error:
            yield fail(check.__name__, f"check failed: {error}", "sudo svc admin doctor")


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
        Argument("--json", "print the findings as JSON", kind="flag"),
        examples=EXAMPLES,
        json=False,
    ),
)
