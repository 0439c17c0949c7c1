"""Who owns a file: the name of a Linux user, or the id that a subordinate id has inside containers.

"0 inside" is the user; the subordinate ids follow from 1 in the order of /etc/subuid, as
rootless Podman maps them. A workspace with `run_as` maps its own ids differently.
"""

from __future__ import annotations

import os

from svc_helper.agent import subid_ranges
from svc_helper.agent.home import Home

CONTAINER = "container:"
_NAME_MAX = 64
_CACHED_MAX = 10_000


class Owners:
    """The owners of the files of one listing."""

    def __init__(self, home: Home) -> None:
        self._texts = {home.uid: home.user}
        self._ranges = subid_ranges.ranges(home, subid_ranges.FILES[0])

    def text(self, uid: int) -> str:
        """A user's name, `container:ID` for a subordinate id, or the bare id."""
        text = self._texts.get(uid)
        if text is None:
            text = self._find(uid)
            if len(self._texts) < _CACHED_MAX:
                self._texts[uid] = text
        return text

    def is_subordinate(self, uid: int) -> bool:
        """Whether it is one of the user's subordinate ids."""
        return any(start <= uid < start + count for start, count in self._ranges)

    def _find(self, uid: int) -> str:
        inside = 1
        for start, count in self._ranges:
            if start <= uid < start + count:
                return f"{CONTAINER}{inside + uid - start}"
            inside += count
        import pwd

        try:
            name = os.fsencode(pwd.getpwuid(uid).pw_name)
            return name.decode(errors="replace")[:_NAME_MAX]
        except (KeyError, OSError):
            return str(uid)


def is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to the user of this process."""
    return status.st_uid == os.geteuid()
