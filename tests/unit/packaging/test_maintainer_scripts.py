"""The package's own scripts where an upgrade goes wrong: other paths, commands that only note their call.

What they do with the real ones is seen on the booted machine (tests/machine).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.allow_commands("sh")
DEBIAN = Path(__file__).parents[3] / "packaging/debian"
NOTES = '#!/bin/sh\necho "$(basename "$0") $*" >>"{root}/calls"\n'


class Host:
    """A root directory with the scripts changed to it; `calls` is what they called."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("bin", "run/systemd/system", "usr/lib/svc", "usr/local/bin"):
            (root / name).mkdir(parents=True)
        for name in ("systemctl", "systemd-sysusers", "systemd-tmpfiles"):
            self.command(root / "bin" / name, "")
        self.link = root / "usr/local/bin/svc"
        self.link.symlink_to(root / "usr/lib/svc/svc")
        (root / "db").touch()
        self.program("")

    def command(self, path: Path, more: str) -> None:
        path.write_text(NOTES.format(root=self.root) + more)
        path.chmod(0o755)

    def program(self, fails: str) -> None:
        """A program whose database is there, and which fails at that command."""
        fault = f'*"{fails or "nothing"}"*) exit 1 ;;'
        more = f"case $* in *db-path*) echo {self.root}/db ;; {fault} *keep*) echo set-1 ;; esac\n"
        self.command(self.root / "usr/lib/svc/svc", more)

    def run(
        self, script: str, *arguments: str, umask: int = 0o022, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        text = (DEBIAN / script).read_text()
        for path in ("/usr/lib/svc/svc", "/usr/local/bin", "/run/svc-package", "/run/systemd/system"):
            text = text.replace(path, f"{self.root}{path}")
        (self.root / script).write_text(text)
        env = {"PATH": f"{self.root}/bin:/usr/bin:/bin", **environment}
        return subprocess.run(
            ["/bin/sh", self.root / script, *arguments], env=env, capture_output=True, text=True, umask=umask
        )

    @property
    def calls(self) -> list[str]:
        text = (self.root / "calls").read_text() if (self.root / "calls").exists() else ""
        return [line for line in text.splitlines() if "db-path" not in line and "is-active" not in line]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_an_upgrade_stops_keeps_migrates_and_starts(host: Host) -> None:
    assert host.run("prerm", "upgrade", "0.2").returncode == 0
    assert host.calls[0] == "systemctl stop svc.service" and "svc admin rollback keep" in host.calls[1]
    assert host.run("postinst", "configure", "0.1").returncode == 0
    assert host.calls[-2:] == ["svc admin migrate", "systemctl start svc.service"]
    assert not (host.root / "run/svc-package").exists()


def test_a_migration_that_fails_names_the_way_back_and_starts_nothing(host: Host) -> None:
    host.run("prerm", "upgrade", "0.2")
    host.program(fails="admin migrate")
    done = host.run("postinst", "configure", "0.1")
    assert done.returncode == 1 and "admin rollback apply set-1 --yes" in done.stderr
    assert "systemctl start svc.service" not in host.calls
    host.program(fails="")
    assert host.run("postinst", "configure", "0.1").returncode == 0, "dpkg --configure svc, once it is mended"
    assert host.calls[-1] == "systemctl start svc.service"


def test_without_a_recovery_set_the_upgrade_is_refused_and_the_service_runs_again(host: Host) -> None:
    host.program(fails="rollback keep")
    assert host.run("prerm", "upgrade", "0.2").returncode == 1
    assert host.run("prerm", "failed-upgrade", "0.1").returncode == 1, "the new version does not go on either"
    assert host.run("postinst", "abort-upgrade", "0.2").returncode == 0
    assert host.calls[-1] == "systemctl start svc.service"


def test_the_set_of_an_upgrade_that_failed_is_not_replaced(host: Host) -> None:
    host.run("prerm", "upgrade", "0.2")
    host.run("prerm", "upgrade", "0.3")
    assert sum("rollback keep" in call for call in host.calls) == 1


def test_whoever_switches_does_the_rest(host: Host) -> None:
    assert host.run("prerm", "upgrade", "0.2", SVC_SWITCHING="1").returncode == 0
    assert host.run("postinst", "configure", "0.1", SVC_SWITCHING="1").returncode == 0
    assert not [call for call in host.calls if "svc.service" in call or "migrate" in call or "keep" in call]


def test_another_installation_is_left_alone(host: Host) -> None:
    host.link.unlink()
    host.link.symlink_to("/opt/other/svc")
    for script, action in (
        ("prerm", "upgrade"),
        ("postinst", "configure"),
        ("prerm", "remove"),
        ("postrm", "remove"),
    ):
        assert host.run(script, action, "0.2").returncode == 0
    assert not [call for call in host.calls if "svc.service" in call or call.startswith("svc ")]
    assert os.readlink(host.link) == "/opt/other/svc"


def test_what_they_run_makes_readable_files_under_the_mask_of_a_hardened_root(host: Host) -> None:
    """Each command that they call would make its files with the mask of the script."""
    for name in ("systemd-sysusers", "systemd-tmpfiles", "systemctl"):
        host.command(host.root / "bin" / name, f'touch "{host.root}/made-$(basename "$0")"\n')
    host.command(
        host.root / "usr/lib/svc/svc",
        f'case $* in *db-path*) echo {host.root}/db ;; *) touch "{host.root}/made-svc-$2" ;; esac\n',
    )
    assert host.run("prerm", "upgrade", "0.2", umask=0o077).returncode == 0
    assert host.run("postinst", "configure", "0.1", umask=0o077).returncode == 0
    assert host.run("postrm", "remove", umask=0o077).returncode == 0
    made = {path.name: path.stat().st_mode & 0o777 for path in host.root.glob("made-*")}
    assert {"made-svc-migrate", "made-svc-rollback", "made-systemd-sysusers", "made-systemctl"} <= made.keys()
    assert set(made.values()) == {0o644}
