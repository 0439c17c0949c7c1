"""Root's record of updates, `update.json` in SVC_STATE_DIR: what was seen, and how the last apply ended.

The newest release that was seen is remembered, so that nobody can offer an older one again, signed
as it is. Everybody may read the file.
"""

from __future__ import annotations

import fcntl
import json
import os
from typing import Any

from svc.errors import HostRefused
from svc_helper import atomic_file

NAME = "update.json"
FORMAT = 1
READ_MAX = 64 * 1024
SEEN: dict[str, type] = {
    "version": str, "commit": str, "schema": int, "published_at": str, "min_from": str, "notes": str,
    "at": str,
}  # fmt: skip
CHECKED: dict[str, type] = {"at": str, "source": str, "problem": str}
APPLIED: dict[str, type] = {
    "at": str, "from": str, "to": str, "commit": str, "outcome": str, "reason": str, "recovery_set": str,
}  # fmt: skip
REASON_MAX = 2000
PARTS = {"seen": SEEN, "checked": CHECKED, "applied": APPLIED}


# How an apply ended: begun is what an interrupted one leaves.
BEGUN, OK = "begun", "ok"
REHEARSAL_FAILED, WENT_BACK, FAILED = "rehearsal_failed", "went_back", "failed"


def path_of(state_dir: str) -> str:
    """The path of the record."""
    return os.path.join(state_dir, NAME)


def read(state_dir: str) -> dict[str, Any]:
    """{"seen", "checked", "applied"}, each None without one; raises HostRefused for another content."""
    path = path_of(state_dir)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            content = file.read(READ_MAX + 1) or b""
    except FileNotFoundError:
        return dict.fromkeys(PARTS)
    except OSError as error:
        raise HostRefused(f"{path} cannot be read: {error.strerror}", hint="sudo svc admin doctor") from None
    try:
        found = json.loads(content)
        if found["format"] == FORMAT and all(_fits(found[name], form) for name, form in PARTS.items()):
            return {name: found[name] for name in PARTS}
    except (ValueError, KeyError, TypeError):
        pass
    raise HostRefused(
        f"{path} is not what svc wrote; it says which releases were seen",
        hint="find out who wrote to it; `sudo svc admin update check` begins a new one when it is gone",
    )


def _write(state_dir: str, record: dict[str, Any]) -> None:
    """Write the record durably (root only); raises HostRefused."""
    path = path_of(state_dir)
    content = json.dumps({"format": FORMAT, **record}, indent=1).encode() + b"\n"
    try:
        atomic_file.replace(path, content, 0o644)
    except OSError as error:
        why = f"{path} cannot be written: {error.strerror}"
        raise HostRefused(why, hint="sudo svc admin doctor") from None


def change(state_dir: str, **parts: dict[str, Any]) -> None:
    """Replace parts of the record; others that do so wait.

    The lock is a file that only root can open, since whoever opens one can hold it.
    """
    os.makedirs(state_dir, mode=0o755, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(f"{path_of(state_dir)}.lock", flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _write(state_dir, read(state_dir) | parts)
    finally:
        os.close(lock)


def _fits(part: Any, form: dict[str, type]) -> bool:
    if part is None:
        return True
    return set(part) == set(form) and all(type(part[name]) is kind for name, kind in form.items())
