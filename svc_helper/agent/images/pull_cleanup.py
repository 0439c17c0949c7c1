"""Removes what pulls left in the host's temporary directory when Podman was killed.

A layer is downloaded into a directory there, and removed once it is unpacked.
After a day without a change no pull uses it.
"""

from __future__ import annotations

import os
import time

DIRECTORY = "/var/tmp"  # noqa: S108  Podman's own choice; only the user's own directories are touched
PREFIX = "storage"
OLD_S = 24 * 3600


def remove_stale(directory: str = DIRECTORY) -> None:
    """Remove the user's own stale directories; follows no link."""
    limit = time.time() - OLD_S
    try:
        with os.scandir(directory) as entries:
            stale = [entry.path for entry in entries if _is_stale(entry, limit)]
    except OSError:
        return
    if stale:
        import shutil  # rarely needed, and every pull would pay for it

        for path in stale:
            shutil.rmtree(path, ignore_errors=True)


def _is_stale(entry: os.DirEntry[str], limit: float) -> bool:
    """Check for a download directory of this user in which nothing changed since the limit."""
    if not (entry.name.startswith(PREFIX) and entry.name.removeprefix(PREFIX).isdecimal()):
        return False
    try:
        status = entry.stat(follow_symlinks=False)
        if not entry.is_dir(follow_symlinks=False) or status.st_uid != os.getuid():
            return False
        with os.scandir(entry.path) as inside:
            times = [one.stat(follow_symlinks=False).st_mtime for one in inside]
    except OSError:
        return False
    return max([status.st_mtime, *times]) < limit
