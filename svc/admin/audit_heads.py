"""Rows of the audit that root remembers, where the app cannot write: a file with a line for each database."""

from __future__ import annotations

import os
import re

from svc.admin.findings import lines_of
from svc.domain.audit.chain import Head
from svc_helper import atomic_file

LINE = re.compile(r"([1-9][0-9]{0,18}) ([0-9a-f]{64}) (/.*)")  # number and hash of a row; database
HASH = re.compile(r"(?:[0-9a-f]{64})?")
NONE = Head(0, "")


class RootsHeads:
    """One such file in SVC_STATE_DIR; for anybody but root it is empty, and nothing is remembered."""

    def __init__(self, state_dir: str, name: str) -> None:
        self.path = os.path.join(state_dir, name)

    def get(self, database: str) -> Head:
        """The row that was recorded for a database, or id 0."""
        return self._read().get(database, NONE)

    def put(self, database: str, head: Head) -> None:
        """Record a row that has a hash."""
        if os.geteuid() != 0 or not database.isprintable():
            return
        heads = self._read() | {database: head}
        lines = [f"{number} {hash_} {path}\n" for path, (number, hash_) in heads.items()]
        atomic_file.replace(self.path, "".join(lines).encode(), 0o644)

    def _read(self) -> dict[str, Head]:
        if os.geteuid() != 0:
            return {}
        found = (LINE.fullmatch(line) for line in lines_of(self.path))
        return {match[3]: Head(int(match[1]), match[2]) for match in found if match}
