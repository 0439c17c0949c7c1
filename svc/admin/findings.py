"""The host that `svc admin doctor` checks, readers of its files, and the findings that the checks yield."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from svc.host.owner import Owner
from svc.settings import Settings
from svc_helper.wire.limits import USER_NAME

ENROLLED = re.compile(rf"({USER_NAME}) (\d{{1,10}}) (user|administrator)")
FILE_MAX = 4 * 1024 * 1024


class Finding(NamedTuple):
    """One line of the table; the remedy is the exact next command, empty for the level ok."""

    code: str
    level: str
    found: str
    remedy: str = ""


def ok(code: str, found: str) -> Finding:
    """Nothing to do."""
    return Finding(code, "ok", found)


def warn(code: str, found: str, remedy: str) -> Finding:
    """Something works, but not as it should."""
    return Finding(code, "warn", found, remedy)


def fail(code: str, found: str, remedy: str) -> Finding:
    """Something does not work until this is repaired."""
    return Finding(code, "fail", found, remedy)


class Enrolled(NamedTuple):
    """A line of the helper's enrolment list."""

    name: str
    uid: int
    administrator: bool = False


@dataclass
class Host:
    """The host as the checks see it; tests pass another directory as `root`.

    `view` is the root directory of the running server, which may have a mount
    namespace of its own: its /sys and /dev are the ones that count.
    """

    settings: Settings
    database: str
    owner: Owner
    root: str = "/"
    view: str = "/"
    enrolled: list[Enrolled] = field(default_factory=list)
    knows_enrolled: bool = True  # False where SVC_STATE_DIR has no valid value
    gone: frozenset[str] = frozenset()  # names of these whose Linux account was removed
    server: int | None = None  # the pid of the running supervisor

    @property
    def present(self) -> list[Enrolled]:
        """The enrolled accounts that have a Linux account, to which the host's set-up belongs."""
        return [entry for entry in self.enrolled if entry.name not in self.gone]

    def at(self, path: str) -> str:
        """A path of this host."""
        return os.path.join(self.root, path.lstrip("/"))

    def seen(self, path: str) -> str:
        """A path as the running server sees it."""
        return os.path.join(self.view, path.lstrip("/"))

    @property
    def systemd(self) -> bool:
        """Whether systemd runs this host, by the helper's criterion."""
        return os.path.isdir(self.at("/run/systemd/system"))


def linux_account(name: str) -> pwd.struct_passwd | None:
    """The Linux account of this name; None when there is none."""
    try:
        return pwd.getpwnam(name)
    except (KeyError, ValueError):  # ValueError: a NUL in the name
        return None


def lines_of(path: str) -> list[str]:
    """The lines of a text file that root owns; none when it is missing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(FILE_MAX).splitlines()
    except OSError:
        return []


def read_enrolled(state_dir: str) -> Iterator[Enrolled]:
    """The accounts that the helper acts for, from its enrolment list."""
    for line in lines_of(os.path.join(state_dir, "enrolled")):
        match = ENROLLED.fullmatch(line)
        if match:
            yield Enrolled(match[1], int(match[2]), match[3] == "administrator")


class Range(NamedTuple):
    """A line of /etc/subuid or /etc/subgid."""

    start: int
    end: int  # one past the last
    owner: str


def read_ranges(path: str) -> Iterator[Range]:
    """The valid lines of the file."""
    for line in lines_of(path):
        match = re.fullmatch(r"([^:\s]+):([0-9]{1,10}):([0-9]{1,10})", line.strip())
        if match:
            yield Range(int(match[2]), int(match[2]) + int(match[3]), match[1])
