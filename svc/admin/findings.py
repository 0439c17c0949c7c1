"""What `svc admin doctor` checks on and what a check answers with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from svc.db.owner import Owner
from svc.limits import USER_NAME
from svc.settings import Settings

ENROLLED = re.compile(rf"({USER_NAME}) (\d{{1,10}}) (user|administrator)")
FILE_MAX = 4 * 1024 * 1024


class Finding(NamedTuple):
    """One line of the table; the remedy is the exact next command, empty when all is well."""

    code: str
    level: str
    found: str
    remedy: str = ""


def ok(code: str, found: str) -> Finding:
    """Nothing to do."""
    return Finding(code, "ok", found)


def warn(code: str, found: str, remedy: str) -> Finding:
    """It works, but not as it should."""
    return Finding(code, "warn", found, remedy)


def fail(code: str, found: str, remedy: str) -> Finding:
    """Something will not work until this is mended."""
    return Finding(code, "fail", found, remedy)


class Enrolled(NamedTuple):
    """A line of the helper's enrolment list."""

    name: str
    uid: int
    administrator: bool = False


@dataclass
class Host:
    """The host as the checks see it; `root` is another directory in tests.

    `view` is the root directory of the running server: it may live in a mount
    namespace of its own, and its /sys and /dev are the ones that count.
    """

    settings: Settings
    database: str
    owner: Owner
    root: str = "/"
    view: str = "/"
    enrolled: list[Enrolled] = field(default_factory=list)

    def at(self, path: str) -> str:
        """A path of this host."""
        return os.path.join(self.root, path.lstrip("/"))

    def seen(self, path: str) -> str:
        """A path as the running server sees it."""
        return os.path.join(self.view, path.lstrip("/"))

    @property
    def systemd(self) -> bool:
        """Whether systemd is the init of this host, as the helper decides it."""
        return os.path.isdir(self.at("/run/systemd/system"))


def lines_of(path: str) -> list[str]:
    """The lines of a text file of root's; none when it is missing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(FILE_MAX).splitlines()
    except OSError:
        return []


def read_enrolled(state_dir: str) -> Iterator[Enrolled]:
    """The accounts that the helper acts for."""
    for line in lines_of(os.path.join(state_dir, "enrolled")):
        match = ENROLLED.fullmatch(line)
        if match:
            yield Enrolled(match[1], int(match[2]), match[3] == "administrator")
