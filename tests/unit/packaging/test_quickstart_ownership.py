"""What the quickstart lists as its own, what it refuses, what it leaves. A real removal: tests/machine."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.allow_commands("bash")
PARTS = Path(__file__).parents[3] / "packaging/quickstart.d"
USERS = ("svc-apps", "svc-unix", "svc-tls", "svc-worker", "svc")


class Host:
    """A root directory with the paths of the parts changed to it; no account, and a package if told so."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("bin", "usr/local/bin", "opt", "var/lib", "var/log", "run", "etc/systemd/system"):
            (root / name).mkdir(parents=True)
        self.created = root / "var/lib/svc-quickstart"
        self.link = root / "usr/local/bin/svc"
        self.data = [root / name for name in ("var/lib/svc", "var/log/svc", "run/svc", "etc/svc")]
        self.command("getent", "exit 2")
        self.package("")

    def command(self, name: str, body: str) -> None:
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def package(self, status: str) -> None:
        """That dpkg knows svc in this status."""
        self.command("dpkg-query", f"echo {status}" if status else "exit 1")

    def make_data(self) -> None:
        for path in self.data:
            path.mkdir(exist_ok=True)
            (path / "kept").touch()

    def make_program(self) -> None:
        (self.root / "opt/svc").mkdir(exist_ok=True)
        self.link.symlink_to(self.root / "opt/svc/bin/svc")

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        text = (PARTS / "owned.sh").read_text()
        text = re.sub(r"(?<![\w$])/(?=usr/local/bin/svc|opt/svc|etc/|var/|run/svc)", f"{self.root}/", text)
        (self.root / "owned.sh").write_text(text)
        setting = (
            f"set -euo pipefail; umask 022; CREATED={shlex.quote(str(self.created))}\n"
            f". {shlex.quote(str(PARTS / 'output.sh'))}; . {shlex.quote(str(self.root / 'owned.sh'))}\n"
        )
        env = {"PATH": f"{self.root}/bin:/usr/bin:/bin"}
        return subprocess.run(["bash", "-c", setting + line], env=env, capture_output=True, text=True)

    def owned(self) -> set[str]:
        path = self.created / "owned"
        return set(path.read_text().splitlines()) if path.exists() else set()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_what_it_makes_is_listed_before_and_removed(host: Host) -> None:
    assert host.run("claim_host").returncode == 0
    assert host.owned() == {"program", *map(str, host.data), *(f"user:{name}" for name in USERS)}
    host.make_program()
    host.make_data()
    before = host.owned()
    assert host.run("claim_host").returncode == 0, "a second run, or one after an interruption"
    assert host.owned() == before
    assert host.run("made_here && remove_owned_data").returncode == 0
    assert not [path for path in host.data if path.exists()]


def test_the_lock_file_of_a_command_is_no_data(host: Host) -> None:
    """`svc admin backup` of another svc leaves one; what the quickstart makes beside it is its own."""
    host.data[0].mkdir()
    (host.data[0] / "backup.lock").touch()
    assert host.run("claim_host").returncode == 0
    assert str(host.data[0]) in host.owned()


def test_data_that_was_there_before_stays(host: Host) -> None:
    host.make_data()
    assert host.run("claim_host").returncode == 0
    host.make_program()
    done = host.run("made_here && remove_owned_data")
    assert done.returncode == 0 and done.stdout.count("kept, since it was there before the quickstart") == 4
    assert all((path / "kept").exists() for path in host.data)


@pytest.mark.parametrize("line", ["claim_host", "made_here || exit 0", "made_here && remove_owned_data"])
@pytest.mark.parametrize("kind", ["package", "install", "unit", "link"])
def test_another_installation_is_refused_with_a_way_out(host: Host, line: str, kind: str) -> None:
    host.make_data()
    way_out = "packaging/install --remove"
    if kind == "package":
        host.package("installed")
        host.link.symlink_to("/usr/lib/svc/svc")
        way_out = "apt-get remove svc"
    elif kind == "install":
        host.make_program()
    elif kind == "unit":
        (host.root / "etc/systemd/system/svc.service").touch()
    else:
        host.link.symlink_to("/opt/other/svc")
    done = host.run(line)
    assert done.returncode == 1 and "nothing was changed" in done.stderr and way_out in done.stderr
    assert all((path / "kept").exists() for path in host.data) and not host.created.exists()


def test_one_of_the_release_before_is_recognised(host: Host) -> None:
    """It has no list, but its registry or its account, and the program where the quickstart puts it."""
    host.created.mkdir()
    (host.created / "registry.yml").touch()
    host.make_program()
    host.make_data()
    assert host.run("made_here && is_owned program && remove_owned_data").returncode == 0
    assert not [path for path in host.data if path.exists()]


def test_its_directory_beside_a_package_proves_nothing(host: Host) -> None:
    host.created.mkdir()
    (host.created / "registry.yml").touch()
    host.link.symlink_to("/usr/lib/svc/svc")
    host.package("installed")
    assert host.run("made_here").returncode == 1 and not host.owned()


def test_a_removal_with_nothing_there_says_so(host: Host) -> None:
    done = host.run("made_here || exit 0")
    assert done.returncode == 0 and "nothing on this host was made by the quickstart" in done.stdout


def test_who_installs_after_a_removal_of_the_program_is_another(host: Host) -> None:
    assert host.run("claim_host; disown_program").returncode == 0
    assert host.run("made_here").returncode == 0, "its data are there still"
    host.make_program()
    assert host.run("made_here").returncode == 1
