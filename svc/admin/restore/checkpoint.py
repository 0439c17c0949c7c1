"""`svc admin checkpoint`: the log of the stopped service's database goes back into its file."""

from __future__ import annotations

import os
from functools import partial

from svc.admin.backup.offline import offline
from svc.admin.backup.snapshot import source_of
from svc.admin.command import settings_of, wrap_db_errors
from svc.admin.restore import new_database
from svc.commandline import output
from svc.commandline.arguments import Arguments, Command
from svc.errors import SvcError
from svc.host.owner import run_as
from svc.host.restoring import require_none

WITHIN_S = 3600.0
EXAMPLES = "sudo svc admin checkpoint"


@wrap_db_errors
def checkpoint(args: Arguments) -> int:
    """Write the log back into the database, and remove the files beside it.

    Flushes the offline write-ahead log and closes the database sidecar files.
    Afterwards the database is one plain SQLite file, without `-wal` and `-shm`.
    The service and backups must be stopped first. Nothing of the data changes.
    """
    settings = settings_of(args, ("SVC_DB", "SVC_STATE_DIR"))
    source = source_of(settings)
    require_none(settings.state_dir, source.database)
    with offline(source, "checkpoint"):
        flush = partial(new_database.flush, source.database, os.getpid())
        result = run_as(source.owner, flush, WITHIN_S)
    flushed = result.get("bytes") if isinstance(result, dict) else None
    if type(flushed) is not int:
        raise SvcError("the checkpoint returned no usable result")
    print(
        output.visible(f"{source.database}: {output.size(flushed, True)} of the log written back; one file")
    )
    return 0


COMMANDS = (Command("checkpoint", checkpoint, examples=EXAMPLES, json=False),)
