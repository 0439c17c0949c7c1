"""Doctor checks of the recovery sets: how much they take, whether the newest is whole, a switch cut off."""

from __future__ import annotations

import os
from collections.abc import Iterator

from svc.admin.backup import recovery_set
from svc.admin.backup import recovery_sets as sets
from svc.admin.findings import Finding, Host, fail, ok, warn
from svc.admin.release.switch import finish_command
from svc.commandline import output
from svc.errors import FileRefused
from svc.host import switching
from svc.host.owner import admin_command

CODE = "recovery_sets"


def switch_under_way(host: Host) -> Iterator[Finding]:
    """A switch to another version that was interrupted."""
    note = switching.find(host.settings.state_dir)
    if note is not None:
        what = f"a switch of svc to version {note.get('version')} was interrupted at {note.get('at')}"
        yield fail("switch_under_way", f"{what} (step {note.get('step')})", finish_command(note))


def recovery_sets(host: Host) -> Iterator[Finding]:
    """How many sets there are and how much they take; whether the newest is whole, by its sizes."""
    path = recovery_set.path_of(host.settings, host.database)
    if os.geteuid() != 0 and not os.access(path, os.R_OK | os.X_OK):
        return
    if not os.path.lexists(path):
        yield ok(CODE, f"there is none yet in {path}")
        return
    try:
        with recovery_set.directory(host.settings, host.database, create=False) as top:
            records = sets.every(top, sets.here(host.database))
    except FileRefused as error:
        yield warn(CODE, error.message, error.hint)
        return
    if not records:
        yield ok(CODE, f"there is none yet in {path}")
        return
    taken = output.size(sum(record["size_bytes"] for record in records), True)
    newest, number = records[0], output.plural(len(records), "set")
    if newest["whole"]:
        yield ok(CODE, f"{number} in {path} take {taken}; the newest is {newest['id']}")
    else:
        again = admin_command("rollback keep --why 'the last one is damaged'", host.database)
        yield warn(CODE, f"the newest of {number} in {path}, {newest['id']}: {newest['problem']}", again)
