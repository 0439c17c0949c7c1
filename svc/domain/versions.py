"""Versions of records, for the headers ETag and If-Match: two tabs never overwrite each other silently.

A version has one digest for each part of a record that a request may change, so that a refusal
names the parts that have changed since. Nothing is stored for it, and the state (status, use,
findings) is no part of it: a start is no reason to refuse an edit.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from svc.errors import PreconditionFailed

ANY = "any version"  # `*` of If-Match; no version in quotes has a space
DIGEST_BYTES = 6  # of a part; 8 characters

WORKSPACE = (
    "name", "display_name", "resources", "env", "command", "network", "restart_on_boot", "template.revision",
)  # fmt: skip
TEMPLATE = (
    "name", "revision", "description", "source", "defaults", "limits", "gpu", "command", "run_as", "env",
    "launchers", "ports", "mounts", "idle", "network",
)  # fmt: skip
DOCKERFILE = ("dockerfile",)
FILE = ("file",)
CONTEXT = ("context",)

Expected = tuple[str, ...] | None  # the versions of an If-Match header; None without one


def of(record: Mapping[str, Any], parts: tuple[str, ...]) -> str:
    """The version of a record: opaque to clients, the same text for the same content."""
    return ".".join(_digest(_part(record, part)) for part in parts)


def of_workspace(record: Mapping[str, Any]) -> str:
    """The version of a workspace's record."""
    return of(record, WORKSPACE)


def of_template(record: Mapping[str, Any]) -> str:
    """The version of a template's record."""
    return of(record, TEMPLATE)


def of_dockerfile(record: Mapping[str, Any]) -> str:
    """The version of a Dockerfile."""
    return of(record, DOCKERFILE)


def of_file(sha256: str, *, executable: bool) -> str:
    """The version of one file of a build context."""
    return of({"file": [sha256, executable]}, FILE)


def of_context(context: str | None) -> str:
    """The version of all files of a build context, of which this is the name."""
    return of({"context": context}, CONTEXT)


def require(
    expected: Expected,
    record: Mapping[str, Any] | None,
    parts: tuple[str, ...],
    what: str,
    hint: str,
) -> None:
    """Raise PreconditionFailed unless the record, None for one that is not there, has an expected version.

    Called in the transaction that makes the change, which has read the record.
    """
    if expected is None or (record is not None and ANY in expected):
        return
    present = of(record, parts) if record is not None else ""
    if present and present in expected:
        return
    changed = _changed(expected, present, parts)
    since = f": {', '.join(changed)}" if changed else ""
    raise PreconditionFailed(
        f"{what} has changed since it was read{since}" if present else f"{what} is not there",
        hint=hint,
        details={"version": f'"{present}"' if present else None, "changed": changed},
    )


def _changed(expected: tuple[str, ...], present: str, parts: tuple[str, ...]) -> list[str]:
    """The parts that differ from the first expected version that is one of this record's kind."""
    now = present.split(".")
    for version in expected:
        before = version.split(".")
        if len(before) == len(now) == len(parts):
            pairs = zip(parts, before, now, strict=True)
            return [part for part, old, new in pairs if old != new]
    return []


def _part(record: Mapping[str, Any], part: str) -> Any:
    found: Any = record
    for key in part.split("."):
        found = found[key]
    return found


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).digest()[:DIGEST_BYTES]
    return base64.urlsafe_b64encode(digest).decode("ascii")
