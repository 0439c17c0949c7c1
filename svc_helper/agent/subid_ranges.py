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
    return any(count >= COUNT_MIN for _, count in ranges(home, path))


def ranges(home: Home, path: str) -> list[tuple[int, int]]:
    """The user's ranges in one of the files: (first id, count); none where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            rows = [line.strip().split(":") for line in file]
    except OSError:
        return []
    own = [row for row in rows if len(row) == 3 and row[0] in (home.user, str(home.uid))]
    return [(int(first), int(count)) for _, first, count in own if first.isdecimal() and count.isdecimal()]
