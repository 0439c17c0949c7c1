"""`svc admin update`: "Shows, refreshes, or applies the latest release"."""

from __future__ import annotations

import os

from svc.admin.backup import recovery_set
from svc.admin.command import (
    exit_on_signals,
    for_database,
    print_json,
    settings_of,
    sudo_command,
    wrap_db_errors,
)
from svc.admin.release import apply, judgement, record, signed, status
from svc.admin.release.installation import Installed, installed
from svc.admin.release.signed import Release
from svc.admin.release.source import Source
from svc.build_keys import release_keys
from svc.commandline import output
from svc.commandline.arguments import YES, Argument, Arguments, Command, CommandGroup
from svc.db.location import database_path
from svc.errors import HostRefused, ReleaseInvalid, ReleaseUnavailable
from svc.host.ids import now
from svc.host.owner import Owner, service_owner
from svc.settings import Settings

NEEDED = ("SVC_STATE_DIR", "SVC_UPDATE_SOURCE")
FIELDS = (
    ("INSTALLED", "installed.version", output.plain),
    ("COMMIT", "installed.commit", output.plain),
    ("BY", "installed.by", output.plain),
    ("KEYS", "keys", output.plain),
    ("SOURCE", "source", output.plain),
    ("CHECKED", "checked.at", output.when),
    ("PROBLEM", "checked.problem", output.plain),
    ("AVAILABLE", "available", output.plain),
    ("APPLIED", "applied.at", output.when),
    ("OUTCOME", "applied.outcome", output.plain),
    ("REASON", "applied.reason", output.plain),
)


@wrap_db_errors
def update_status(args: Arguments) -> int:
    """Show the installed release, and what the last check and the last apply found.

    Asks no source. `available` is the newest release that `svc admin update check` has seen, unless it is
    installed. Fields: installed, commit, by (package or checkout), keys (of releases, in this
    build), source, checked, problem, available, applied, outcome, reason.
    """
    settings = settings_of(args, NEEDED)
    record = status.status_of(settings)
    status.report(settings)
    if args.json:
        print_json(record)
        return 0
    output.details(FIELDS, record)
    if record["available"]:
        print_notes(record["seen"]["notes"])
        output.note(f"to apply it: {way_to_apply(record['installed']['by'])}")
    return 0


@wrap_db_errors
def update_check(args: Arguments) -> int:
    """Look for a release at SVC_UPDATE_SOURCE, and check its signature.

    Prints what is offered, and remembers it; nothing is installed. Exit code 0 also when
    nothing newer is offered; 1 when the source does not answer, or offers what must not be applied: not
    signed with a key of this build, older than the installed release or than one that was seen, or not for
    this host.
    """
    settings = settings_of(args, NEEDED)
    here = installed()
    release = check(settings, here)
    if args.json:
        print_json(status.status_of(settings))
        return 0
    if release is None:
        print(output.visible(f"svc {here.name} is up to date"))
        return 0
    print(output.visible(f"svc {release.version} of {release.published_at[:10]} is available"))
    print_notes(release.notes)
    output.note(f"to apply it: {way_to_apply(here.by)}")
    return 0


@wrap_db_errors
def update_apply(args: Arguments) -> int:
    """Install the newest release, if its migration works on a copy of the database.

    Looks for a release as `svc admin update check` does, and asks. Then it downloads the package, has
    the new program migrate a copy of the database, keeps the present program and database as a
    recovery set, and switches. The service is stopped for that; workspaces run on. When the new service
    is not healthy, everything goes back by itself.

    Exit code 0 when the release is installed or nothing newer is offered, else 1: then the version before is
    in place. docs/update.md has each step, and what an interruption leaves.
    """
    exit_on_signals()
    settings = settings_of(args, (*NEEDED, *apply.NEEDED))
    require_root()
    here = installed()
    apply.require_package(here)
    release = check(settings, here)
    if release is None:
        print(output.visible(f"svc {here.name} is up to date"))
        return 0
    recovery_set.require_directory(settings, database_path(settings))
    question = f"Replace svc {here.version} by {release.version}? The service restarts, workspaces run on."
    output.confirm(question, args.yes, sudo_command(), lambda: release.notes.splitlines())
    outcome = apply.apply(settings, here, release, source_of(settings), progress)
    state = "the service runs" if outcome.started else "the service was stopped and still is"
    print(output.visible(f"svc {release.version} is installed in place of {here.version}; {state}"))
    print(f"to go back: {for_database(f'rollback apply {outcome.kept}', settings)}")
    return 0


def progress(text: str) -> None:
    """Say what is being done; that nobody reads it changes nothing."""
    output.note(text)


# --- what they have in common ------------------------------------------------------------------


def check(settings: Settings, here: Installed) -> Release | None:
    """The release that the source offers now, None when it is installed; what was found is recorded.

    Raises ReleaseInvalid, ReleaseUnavailable, HostRefused.
    """
    require_root()
    source = source_of(settings)
    try:
        release = offered(source, settings, here)
    except (ReleaseInvalid, ReleaseUnavailable) as error:
        checked = {"at": now(), "source": source.place, "problem": error.message}
        record.change(settings.state_dir, checked=checked)
        status.report(settings)
        raise
    checked = {"at": now(), "source": source.place, "problem": ""}
    seen = {name: value for name, value in release._asdict().items() if name in record.SEEN}
    record.change(settings.state_dir, checked=checked, seen=seen | {"at": checked["at"]})
    status.report(settings)
    return release if judgement.is_newer(release, here) else None


def offered(source: Source, settings: Settings, here: Installed) -> Release:
    """The release of the source, after all that is checked before it is believed."""
    keys = release_keys()
    if not keys:
        signed.read(b"", keys)  # refuses, before anything is asked
    release = signed.read(source.manifest(), keys)
    judgement.require_fresh(release, record.read(settings.state_dir)["seen"])
    if judgement.is_newer(release, here):
        judgement.package_for(release, here)
    return release


def source_of(settings: Settings) -> Source:
    """The source; a server is asked by the account of the service, or by the caller."""
    caller = Owner(os.geteuid(), os.getegid())
    return Source(settings.update_source, service_owner() or caller)


def require_root() -> None:
    """Raise HostRefused unless root runs the command."""
    if os.geteuid() != 0:
        raise HostRefused("updates are root's", hint=sudo_command())


def way_to_apply(by: str) -> str:
    """The command that installs the newest release here."""
    if by == "package":
        return "sudo svc admin update apply"
    return "in a checkout of the new release: sudo packaging/install"


def print_notes(notes: str) -> None:
    """Print what is new in a release."""
    if notes:
        print("\n".join(f"  {output.visible(line)}" for line in notes.splitlines()))


AS_JSON = Argument("--json", "print the record as JSON", kind="flag")
COMMANDS = (
    CommandGroup(
        "update",
        "Show, look for and apply releases.",
        Command(
            "status",
            update_status,
            AS_JSON,
            examples="sudo svc admin update status\nsudo svc admin update status --json",
            json=False,
        ),
        Command(
            "check",
            update_check,
            AS_JSON,
            examples="sudo svc admin update check",
            json=False,
        ),
        Command(
            "apply",
            update_apply,
            YES,
            examples="sudo svc admin update apply\nsudo svc admin update apply --yes",
            json=False,
        ),
    ),
)
