"""`svc admin backup --verify`: what a snapshot holds, and whether this program could restore it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from svc.admin.backup.snapshot import check_of
from svc.admin.backup.snapshot_check import Check
from svc.admin.backup.snapshots import HOST, SIDE, read_side
from svc.admin.backup.target import Target
from svc.admin.command import print_json
from svc.commandline import output
from svc.commandline.arguments import Arguments
from svc.errors import FileRefused
from svc.host.owner import Owner, service_owner
from svc.settings import Settings

NOBODY = Owner(65534, 65534)
FIELDS = (
    ("SNAPSHOT", "path", output.plain),
    ("RESTORABLE", "restorable", output.plain),
    ("PROBLEM", "problem", output.plain),
    ("MADE", "created_at", output.when),
    ("HOST", "host", output.plain),
    ("DATABASE", "database", output.plain),
    ("COMMIT", "commit", output.plain),
    ("SIZE", "size_bytes", output.size),
    ("SHA256", "sha256", output.plain),
    ("DIGEST", "digest", output.plain),
    ("SCHEMA", "schema", output.plain),
    ("MIGRATIONS TO APPLY", "pending", output.plain),
    ("USERS", "rows.users", output.plain),
    ("WORKSPACES", "rows.workspaces", output.plain),
    ("TEMPLATES", "rows.templates", output.plain),
    ("AUDIT ROWS", "rows.audit", output.plain),
    ("HOST FILES", "host_files.holds", output.plain),
    ("NOT IN IT", "host_files.missing", output.plain),
)


def verify(args: Arguments, _settings: Settings) -> int:
    """Print the record of a snapshot; exit code 0 when it could be restored, else 1."""
    record = record_of(os.path.abspath(args.verify))
    if args.json:
        print_json(record)
    else:
        output.details(FIELDS, record)
    return 0 if record["restorable"] else 1


def record_of(path: str) -> dict[str, Any]:
    """Check the file; raises FileRefused for what is no file."""
    with opened_snapshot(path) as descriptor:
        return record_at(path, descriptor)


@contextmanager
def opened_snapshot(path: str, command: str = "backup --verify") -> Iterator[int]:
    """The file, opened to read; raises FileRefused for a link and for what is no file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        is_link = os.path.islink(path)
        why = "it is a symbolic link" if is_link else error.strerror
        hint = f"sudo svc admin {command} {output.shell_quote(os.path.realpath(path))}" if is_link else ""
        raise FileRefused(f"cannot read {path}: {why}", hint=hint) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileRefused(f"{path} is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def record_at(path: str, descriptor: int) -> dict[str, Any]:
    """Check the file that was opened."""
    reader = (service_owner() or NOBODY) if os.geteuid() == 0 else Owner(os.geteuid(), os.getegid())
    check, side = check_of(descriptor, reader), side_of(path)
    digest, changed = compared(check, side)
    problem = changed or check.problem
    record = {
        "path": path,
        "restorable": not problem,
        "problem": problem,
        "size_bytes": os.fstat(descriptor).st_size,
        "digest": digest,
        **{key: getattr(check, key) for key in ("sha256", "schema", "pending", "rows")},
    }
    if side is None:
        return record
    kept = {key: str(side.get(key, ""))[:300] for key in ("created_at", "host", "database", "commit")}
    return record | kept | {"host_files": small_files(path, side)}


def side_of(path: str) -> dict[str, Any] | None:
    """The side file of the snapshot; None without one that only the caller could have written."""
    directory, name = os.path.split(path)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return read_side(Target(directory, descriptor), name)
    finally:
        os.close(descriptor)


def compared(check: Check, side: dict[str, Any] | None) -> tuple[str, str]:
    """What the side file says of the digest, and what is wrong with it if anything is."""
    if side is None:
        return f"unknown: there is no {SIDE} file beside it that only you could have written", ""
    if side.get("sha256") == check.sha256:
        return f"as in the {SIDE} file", ""
    return (
        f"differs from the {SIDE} file",
        f"it was changed since it was made: its digest is not the {SIDE} file's",
    )


def small_files(path: str, side: dict[str, Any]) -> dict[str, Any]:
    """The names of the small files beside the snapshot, and of those that are not there."""
    listed = side.get("host_files")
    listed = listed if isinstance(listed, dict) else {}
    holds, left_out = listed.get("holds"), listed.get("left_out")
    holds = [str(name) for name in holds] if isinstance(holds, list) else []
    missing = {str(name): str(why) for name, why in left_out.items()} if isinstance(left_out, dict) else {}
    if not os.path.lexists(path + HOST):
        missing |= dict.fromkeys(holds, f"{os.path.basename(path)}{HOST} is not beside it")
        holds = []
    return {"holds": holds, "missing": missing}
