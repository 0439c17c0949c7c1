"""Checks that the user has the subordinate ids that a container's users are mapped to.

Without them Podman continues with one id and fails later, in odd places: an
image with files of other users cannot be unpacked, a program cannot change its
user.
"""

from __future__ import annotations

from svc_helper.agent.calls import Failure
from svc_helper.agent.home import Home

COUNT_MIN = 65536  # ids that images may use
FILES = ("/etc/subuid", "/etc/subgid")


def require(home: Home, files: tuple[str, str] = FILES) -> None:
    """Raise Failure, with the remedy, when a file has no full range for the user."""
    for path in files:
        if not _has_range(path, home):
            raise Failure(
                "subids_missing", f"{home.user} has no range of {COUNT_MIN} subordinate ids in {path}"
            )


def _has_range(path: str, home: Home) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            rows = [line.strip().split(":") for line in file]
    except OSError:
        return False
    own = [row for row in rows if len(row) == 3 and row[0] in (home.user, str(home.uid))]
    return any(row[2].isdigit() and int(row[2]) >= COUNT_MIN for row in own)
