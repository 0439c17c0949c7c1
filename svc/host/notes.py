"""Notes of what is under way: written before a change that must not be half done, removed after it.

A note that is found tells of an interruption. Standard library only, for the supervisor.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from typing import Any

from svc.errors import DatabaseRefused
from svc_helper import atomic_file

READ_MAX = 64 * 1024


def read(path: str) -> dict[str, Any] | None:
    """The note at the path; None without one. Raises DatabaseRefused for what the caller did not write."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DatabaseRefused(
            f"{path} cannot be read: {error.strerror}", hint="sudo svc admin doctor"
        ) from None
    found = None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            found = json.loads(os.read(descriptor, READ_MAX))
    except ValueError:
        pass
    finally:
        os.close(descriptor)
    if not isinstance(found, dict):
        raise DatabaseRefused(f"{path} is not what svc wrote", hint="sudo svc admin doctor")
    return found


def put(path: str, note: dict[str, Any]) -> None:
    """Write the note durably."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    atomic_file.replace(path, json.dumps(note).encode() + b"\n", 0o600)


def remove(path: str) -> None:
    """Remove the note durably: what it tells of is complete."""
    os.unlink(path)
    with contextlib.suppress(OSError):  # a note that a power cut brings back is finished once more
        atomic_file.sync_directory(os.path.dirname(path))
