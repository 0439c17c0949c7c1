"""`svc admin report`: what administrators see of root's directories, for the API."""

from __future__ import annotations

import os

from svc.admin import doctor
from svc.admin.backup import recovery_sets, snapshots
from svc.admin.command import settings_of, wrap_db_errors
from svc.admin.release import status
from svc.commandline import output
from svc.commandline.arguments import Arguments, Command
from svc.domain import host_reports
from svc.domain.host_reports import Kind
from svc.errors import HostRefused

EXAMPLES = """\
sudo svc admin report
sudo svc api GET /api/admin/backups"""


@wrap_db_errors
def report(args: Arguments) -> int:
    """Renew the reports about this host that administrators read in the API.

    These are the snapshots, the recovery sets, the releases and the findings of
    `svc admin doctor`: root's directories, which the service cannot read. The
    other commands renew the report of what they change: `backup`, `rollback`,
    `update`, `doctor`. Prints nothing without a terminal; exit code 1 when a
    report could not be written.

    Every hour, as a line of /etc/cron.d/svc-report:

        23 * * * * root /usr/local/bin/svc admin report
    """
    settings = settings_of(args, ("SVC_DB", "SVC_STATE_DIR"))
    before = [(kind, _written(settings.state_dir, kind)) for kind in host_reports.KINDS]
    snapshots.report(settings)
    recovery_sets.report(settings)
    status.report(settings)
    found = doctor.findings_of(settings)
    doctor.report(settings, [finding._asdict() for finding in found])
    missing = [kind.name for kind, was in before if _written(settings.state_dir, kind) == was]
    if missing:
        where = host_reports.DIRECTORY
        raise HostRefused(
            f"not written to {settings.state_dir}/{where}: {', '.join(missing)}", hint="sudo svc admin doctor"
        )
    if output.on_terminal():
        failed = sum(finding.level == "fail" for finding in found)
        print(f"{len(before)} reports renewed; the doctor found {output.plural(failed, 'fault')}")
    return 0


def _written(state_dir: str, kind: Kind) -> int:
    """Which file a report is now; each writing makes another."""
    try:
        status = os.stat(host_reports.path_of(state_dir, kind))
    except OSError:
        return 0
    return status.st_mtime_ns


COMMANDS = (Command("report", report, examples=EXAMPLES, json=False),)
