"""The recovery sets that there are: what each would bring back, whether it can be applied, which are kept.

A list compares sizes; whoever applies a set compares digests too (`require_whole`). Only directories
in the form of `svc.admin.backup.recovery_set` that root (or the caller) alone can write are sets.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from typing import Any, NamedTuple

from svc.admin import reporting
from svc.admin.backup import package, recovery_set, snapshot_check
from svc.admin.backup.target import Target
from svc.commandline.output import shell_quote
from svc.db.location import database_path
from svc.domain import host_reports
from svc.errors import FileRefused, SvcError
from svc.host.owner import admin_command
from svc.settings import Settings

MANIFEST_MAX = 256 * 1024
KEPT = 3  # sets of each kind that stay
ROOM = 1024 * 1024 * 1024  # or a tenth of the disk, whichever is less: below it older sets go


class Here(NamedTuple):
    """What a set must fit: the database, the package, the host; "" and None without a package."""

    database: str
    installed: package.Installed | None
    architecture: str
    system: str


def here(database: str) -> Here:
    """This host."""
    installed = package.own()
    architecture = package.architecture() if installed else ""
    return Here(database, installed, architecture, package.system())


def every(top: Target, here: Here) -> list[dict[str, Any]]:
    """The record of each set, the newest first.

    {"id", "kind", "created_at", "why", "version", "commit", "schema", "next_version", "size_bytes",
    "applicable", "problem", "remedy", "path", "database"}; `problem` says why it cannot be applied,
    `whole` whether all its files are there.
    """
    names = [name for name in top.names() if recovery_set.NAME.fullmatch(name)]
    return sorted((record_of(top, name, here) for name in names), key=_age, reverse=True)


def report(settings: Settings) -> None:
    """Report the recovery sets, the newest first."""
    if not reporting.is_reported(settings):
        return
    database = database_path(settings)
    items: list[dict[str, Any]] = []
    if os.path.lexists(recovery_set.path_of(settings, database)):
        try:
            with recovery_set.directory(settings, database, create=False) as top:
                items = every(top, here(database))
        except SvcError:
            pass  # the doctor says why; the report is empty
    reporting.write(settings, host_reports.RECOVERY_SETS, items)


def _age(record: dict[str, Any]) -> tuple[str, str]:
    return record["id"].split("-", 1)[1], record["id"]


def record_of(top: Target, name: str, here: Here) -> dict[str, Any]:
    """The record of one set."""
    manifest, fault = manifest_of(top, name)
    described = manifest.get("program")
    program: dict[str, Any] = described if isinstance(described, dict) else {}
    path = os.path.join(top.path, name)
    holds = manifest.get("holds")
    database = os.path.join(path, holds) if isinstance(holds, str) else ""
    problem, remedy = (fault, "sudo svc admin rollback list") if fault else _unfit(manifest, program, here)
    if not fault and problem and not manifest.get("raw"):
        remedy = remedy or admin_command(f"restore {shell_quote(database)}", here.database)
    return {
        "id": name,
        "kind": name.split("-", 1)[0],
        **{key: _text(manifest.get(key)) for key in ("created_at", "why", "commit", "next_version")},
        "version": _text(program.get("version")),
        "schema": manifest.get("schema") if type(manifest.get("schema")) is int else None,
        "size_bytes": _size(top, name),
        "applicable": not problem,
        "whole": not fault,
        "problem": problem,
        "remedy": "" if fault else remedy,
        "path": path,
        "database": database,
    }


def manifest_of(top: Target, name: str) -> tuple[dict[str, Any], str]:
    """The manifest of a set, and what is wrong with the set; sizes are compared, not digests."""
    try:
        with recovery_set.opened_set(top, name) as target:
            status = os.fstat(target.descriptor)
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                return {}, "others can change it"
            manifest = _read(target)
            if manifest is None or manifest.get("id") != name:
                return {}, f"its {recovery_set.MANIFEST} is missing or unreadable: it is not complete"
            return manifest, _fault(target, manifest)
    except OSError as error:
        return {}, f"it cannot be read: {error.strerror}"


def _read(target: Target) -> dict[str, Any] | None:
    if not target.is_own_file(recovery_set.MANIFEST):
        return None
    with open(
        os.open(recovery_set.MANIFEST, recovery_set.READ, dir_fd=target.descriptor), encoding="utf-8"
    ) as file:
        try:
            found = json.loads(file.read(MANIFEST_MAX))
        except (ValueError, RecursionError):
            return None
    return found if isinstance(found, dict) and found.get("format") == recovery_set.FORMAT else None


def _fault(target: Target, manifest: dict[str, Any]) -> str:
    """What is wrong with the files of a set, by their sizes; empty when nothing is."""
    files = manifest.get("files")
    if not isinstance(files, list) or not all(_is_file(each) for each in files):
        return f"its {recovery_set.MANIFEST} does not list its files"
    for each in files:
        name, status = each["name"], target.status(each["name"])
        if status is None:
            return f"{name} is missing"
        if not target.is_own_file(name):
            return f"{name} is not a file that only root can change"
        if status.st_size != each["size_bytes"]:
            return f"{name} has {status.st_size} bytes and not {each['size_bytes']}: it was changed"
    listed = {each["name"] for each in files}
    needed = [manifest.get("holds"), *([recovery_set.PROGRAM] if manifest.get("program") else [])]
    missing = [str(name) for name in needed if not isinstance(name, str) or name not in listed]
    return f"its {recovery_set.MANIFEST} does not list {missing[0]}" if missing else ""


def _is_file(each: Any) -> bool:
    return (
        isinstance(each, dict)
        and isinstance(each.get("name"), str)
        and "/" not in each["name"]
        and each["name"].isprintable()
        and type(each.get("size_bytes")) is int
        and isinstance(each.get("sha256"), str)
    )


def _unfit(manifest: dict[str, Any], program: dict[str, Any], here: Here) -> tuple[str, str]:
    """Why a whole set cannot be applied, and the command for what can be done if it is a special one."""
    if manifest.get("database") != here.database:
        own = f"it is of the database {_text(manifest.get('database'))}, not of {here.database}"
        return own, admin_command("rollback list", _text(manifest.get("database")))
    if manifest.get("raw"):
        return "it holds a damaged database as it was, for tools that save what can be read", ""
    if not program:
        return "it holds the database and no program", ""
    if here.installed is None:
        return "svc is not installed as a package here: its program cannot be put in place", ""
    if program.get("architecture") not in (here.architecture, "all"):
        return (
            f"its program is for {_text(program.get('architecture'))}, this host is {here.architecture}",
            "",
        )
    if (system := _text(program.get("system"))) not in ("", here.system):
        return f"its program was built for {system}, this host is {here.system}", ""
    schema, known = manifest.get("schema"), program.get("schema")
    if type(schema) is not int or type(known) is not int or schema > known:
        return f"its database has schema {schema}, newer than its program supports ({known})", ""
    return "", ""


def require_whole(top: Target, name: str) -> dict[str, Any]:
    """The manifest of a set whose files all have their digests; raises FileRefused."""
    manifest, fault = manifest_of(top, name)
    if not fault:
        with recovery_set.opened_set(top, name) as target:
            for each in manifest["files"]:
                descriptor = os.open(each["name"], recovery_set.READ, dir_fd=target.descriptor)
                try:
                    if snapshot_check.sha256_of(descriptor) != each["sha256"]:
                        fault = (
                            f"{each['name']} was changed since it was kept: its digest is not the manifest's"
                        )
                        break
                finally:
                    os.close(descriptor)
    if fault:
        raise FileRefused(f"the set {name} is damaged: {fault}", hint="sudo svc admin rollback list")
    return manifest


# --- which are kept ----------------------------------------------------------------------


def prune(top: Target, here: Here, spared: Iterable[str] = ()) -> list[str]:
    """Remove old sets: all but the newest of each kind, and more while the disk has little room.

    Never the newest of a kind, the newest applicable one, and those of `spared`. Returns the removed.
    """
    records = [record for record in every(top, here) if record["whole"]]
    of_kind: dict[str, list[str]] = {}
    for record in records:
        of_kind.setdefault(record["kind"], []).append(record["id"])
    applicable = [record["id"] for record in records if record["applicable"]][:1]
    never = {*spared, *applicable, *(names[0] for names in of_kind.values())}
    too_many = {name for names in of_kind.values() for name in names[KEPT:]}
    removed = []
    for record in reversed(records):
        name = record["id"]
        if name not in never and (name in too_many or _is_tight(top)):
            recovery_set.remove(top, name)
            removed.append(name)
    return removed


def in_use(note: dict[str, Any] | None) -> set[str]:
    """The sets that a switch under way, or one of these paths, still needs."""
    paths = [str((note or {}).get(key, "")) for key in ("package", "snapshot")]
    return {str((note or {}).get("kept", "")), *(os.path.basename(os.path.dirname(path)) for path in paths)}


def _is_tight(top: Target) -> bool:
    status = os.fstatvfs(top.descriptor)
    return status.f_bavail * status.f_frsize < min(ROOM, status.f_blocks * status.f_frsize // 10)


def _size(top: Target, name: str) -> int:
    """How much the files of a set take."""
    try:
        with recovery_set.opened_set(top, name) as target:
            found = [target.status(each) for each in target.names()]
    except OSError:
        return 0
    return sum(status.st_size for status in found if status and stat.S_ISREG(status.st_mode))


def _text(value: object) -> str:
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""
