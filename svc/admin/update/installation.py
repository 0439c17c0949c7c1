"""What is installed on this host: by the package or from a checkout, its version, and what fits the host."""

from __future__ import annotations

import os
import re
import subprocess
from typing import NamedTuple

from svc.errors import HostRefused
from svc.version import commit

PACKAGE = "svc"
PRIVATE_TREE = "/usr/lib/svc"  # of the package; a program that runs from elsewhere is another installation
DPKG, DPKG_QUERY = "/usr/bin/dpkg", "/usr/bin/dpkg-query"
OS_RELEASE = "/etc/os-release"
DPKG_S = 60.0
FIELD = re.compile(r'^(ID|VERSION_ID)="?([a-z0-9.-]+)"?$', re.MULTILINE)
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class Installed(NamedTuple):
    """The running program; `version` is empty unless the package has installed it."""

    by: str  # "package" or "checkout"
    directory: str
    version: str
    commit: str
    os: str
    architecture: str

    @property
    def name(self) -> str:
        """The version and where it comes from, for people."""
        return self.version or f"commit {self.commit[:12]}"


def installed(program: str = "") -> Installed:
    """What is installed; `program` is the directory of the package svc, by default this one's."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    directory = os.path.realpath(program or os.path.dirname(own))
    by, version = "checkout", ""
    if directory.startswith(f"{PRIVATE_TREE}/"):
        by, version = "package", _package_version()
    return Installed(by, directory, version, commit(), _system(), _architecture())


def compare(one: str, relation: str, other: str) -> bool:
    """Whether dpkg's order of versions has `one` lt, le, eq, ge or gt `other`."""
    return _run(DPKG, "--compare-versions", one, relation, other).returncode == 0


def _package_version() -> str:
    answer = _run(DPKG_QUERY, "--show", "--showformat=${db:Status-Status} ${Version}", PACKAGE).stdout
    status, _, version = answer.partition(" ")
    if status != "installed":
        raise HostRefused(
            f"the package {PACKAGE} is not completely installed (dpkg: {status or 'not known'})",
            hint=f"sudo dpkg --configure {PACKAGE}",
        )
    return version


def _system() -> str:
    """ID and VERSION_ID of the operating system: `debian-12`."""
    try:
        with open(OS_RELEASE, encoding="utf-8", errors="replace") as file:
            found = dict(FIELD.findall(file.read(4096)))
    except OSError:
        found = {}
    return f"{found.get('ID', 'unknown')}-{found.get('VERSION_ID', 'unknown')}"


def _architecture() -> str:
    if not os.path.exists(DPKG):
        return os.uname().machine
    return _run(DPKG, "--print-architecture").stdout.strip()


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, env=ENVIRONMENT, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=DPKG_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostRefused(f"{command[0]} could not be run: {error}", hint="sudo svc admin doctor") from None
