"""What is installed on this host: by the package or from a checkout, its version, and what fits the host."""

from __future__ import annotations

import os
import subprocess
from typing import NamedTuple

from svc.admin.backup import package
from svc.errors import HostRefused
from svc.version import commit

COMPARE_S = 60.0


class Installed(NamedTuple):
    """The running program; `version`, of the release, is empty unless the package has installed it."""

    by: str  # "package" or "checkout"
    directory: str
    version: str
    commit: str
    os: str
    architecture: str

    @property
    def name(self) -> str:
        """The version, or the commit of a checkout, for people."""
        return self.version or f"commit {self.commit[:12]}"


def installed() -> Installed:
    """What is installed, by dpkg's own record."""
    found = package.own()
    directory = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    by, version = ("package", found.release) if found else ("checkout", "")
    return Installed(by, directory, version, commit(), package.system(), _architecture())


def compare(one: str, relation: str, other: str) -> bool:
    """Whether dpkg's order of versions has `one` lt, le, eq, ge or gt `other`."""
    command = ["dpkg", "--compare-versions", one, relation, other]
    try:
        done = subprocess.run(command, env=package.environment({}), timeout=COMPARE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostRefused(f"dpkg could not be run: {error}", hint="sudo svc admin doctor") from None
    return done.returncode == 0


def _architecture() -> str:
    try:
        return package.architecture()
    except HostRefused:  # a host without dpkg: an update is not for it
        return os.uname().machine
