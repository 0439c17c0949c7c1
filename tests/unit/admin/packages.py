"""Two small versions of the package svc in a root of their own, where dpkg really installs them.

The launcher of each is this checkout's program with the migrations that the version brings: version 2 has one
more. `systemctl` is a script that keeps the unit's state in a file.
"""

from __future__ import annotations

import hashlib
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from conventions.inspection import ROOT as CHECKOUT

from svc.admin.backup import package
from svc.admin.release.switch import Switch

PROGRAMS = ("dpkg", "dpkg-deb", "dpkg-query", "systemctl", "svc")  # that tests with a package start

LAUNCHER = """\
#!{python}
import sys

sys.path[:0] = [{checkout!r}]
ROOT, VERSION = {root!r}, {version!r}
import svc.admin.backup.package as package
import svc.admin.release.service_unit as service_unit
import svc.db.migrate as migrate
import svc.host.owner
import svc.settings

svc.settings.read_env_file = dict
svc.host.owner.SERVICE_USER = "no-such-account"
package.ROOT, package.__file__ = ROOT, ROOT + "/usr/lib/svc/python/svc/package.py"
service_unit.SYSTEMD, service_unit.SYSTEMCTL = ROOT, ROOT + "/systemctl"
service_unit.HEALTHY_WITHIN_S, service_unit.EVERY_S = 0.05, 0.02  # the first answer counts however late
migrate.folder = lambda: ROOT + "/usr/lib/svc/python/migrations"


def call(text):
    with open(ROOT + "/calls", "a") as calls:
        calls.write(text + "\\n")


class Late:
    def find_spec(self, name, path, target=None):
        with open(ROOT + "/usr/lib/svc/python/version") as file:
            if file.read() != VERSION and name.split(".")[0] not in sys.stdlib_module_names:
                call("import " + name)


sys.meta_path.insert(0, Late)
Late.find_spec = Late().find_spec
call(VERSION + " " + " ".join(sys.argv[1:3]))
from svc.__main__ import main

sys.exit(main())
"""
MORE = "CREATE TABLE of_version_2 (id INTEGER PRIMARY KEY) STRICT;\n"
CONTROL = """\
Package: svc
Version: {version}
Architecture: {architecture}
Maintainer: nobody <nobody@example.org>
Section: admin
Svc-System: {system}
Description: a small svc
 for tests
"""
SYSTEMCTL = """\
#!/bin/sh
state={root}/unit-state
case "$1" in
show) echo LoadState=loaded; echo "ActiveState=$(cat $state)" ;;
start) echo active >$state ;;
stop) echo inactive >$state ;;
esac
echo "systemctl $*" >>{root}/calls
"""


class Place:
    """A root of dpkg with its packages, and what the tests look at."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for name in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "debs"):
            (path / name).mkdir(parents=True)
        (path / "var/lib/dpkg/status").touch()
        self.architecture = self.run("dpkg", "--print-architecture").strip()
        self.systemctl = path / "systemctl"
        self.systemctl.write_text(SYSTEMCTL.format(root=path))
        self.systemctl.chmod(0o755)
        (path / "unit-state").write_text("active\n")
        (path / "calls").touch()
        self.debs = {version: self.build(version) for version in ("1", "2")}

    def build(self, version: str) -> Path:
        """The .deb of a version; version 3 has a launcher that fails."""
        tree = self.path / f"tree-{version}"
        files = {
            "usr/lib/svc/svc": LAUNCHER.format(
                python=sys.executable, checkout=str(CHECKOUT), root=str(self.path), version=version
            ),
            "usr/lib/svc/python/version": version,
            "etc/svc-test.conf": f"# of version {version}\n",
            "usr/lib/svc/shipped/etc/svc-test.conf": f"# of version {version}\n",
            "DEBIAN/control": CONTROL.format(
                version=version, architecture=self.architecture, system=package.system()
            ),
            "DEBIAN/conffiles": "/etc/svc-test.conf\n",
            "DEBIAN/prerm": f'#!/bin/sh\necho "prerm $SVC_SWITCHING $*" >>{self.path}/calls\n',
        }
        for name, text in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
        shutil.copytree(CHECKOUT / "schema/migrations", tree / "usr/lib/svc/python/migrations")
        if version != "1":
            last = max(int(path.name[:4]) for path in (tree / "usr/lib/svc/python/migrations").glob("*.sql"))
            (tree / f"usr/lib/svc/python/migrations/{last + 1:04}_more.sql").write_text(MORE)
        (tree / "usr/bin").mkdir(parents=True)
        (tree / "usr/bin/svc").symlink_to("../lib/svc/svc")
        for directory in [tree, *(path for path in tree.rglob("*") if path.is_dir())]:
            directory.chmod(0o755)
        for name in ("usr/lib/svc/svc", "DEBIAN/prerm"):
            (tree / name).chmod(0o755)
        path = self.path / f"debs/svc_{version}.deb"
        self.run("dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(path))
        path.chmod(0o600)
        return path

    def run(self, *argv: str) -> str:
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    def dpkg(self, *argv: str) -> str:
        place = (
            f"--instdir={self.path}",
            f"--admindir={self.path}/var/lib/dpkg",
            "--force-script-chrootless",
        )
        return self.run("dpkg", *place, *argv)

    @property
    def version(self) -> str:
        """The version whose files are there."""
        return (self.path / "usr/lib/svc/python/version").read_text()

    @property
    def recorded(self) -> str:
        """What dpkg says: version and state."""
        form = "-f=${Version} ${db:Status-Status}"
        return self.run("dpkg-query", f"--admindir={self.path}/var/lib/dpkg", "-W", form, "svc")

    @property
    def calls(self) -> list[str]:
        """What was called, in order: programs of the package, its scripts, systemctl's changes."""
        lines = (self.path / "calls").read_text().splitlines()
        return [line for line in lines if not line.startswith("systemctl show")]

    @property
    def is_active(self) -> bool:
        """Whether the service was started last."""
        return (self.path / "unit-state").read_text() == "active\n"

    def health(self, connection: socket.socket) -> None:
        """Answer a question for the health: versions named in the file `sick` are not well."""
        sick = (self.path / "sick").read_text().split() if (self.path / "sick").exists() else []
        state = "failing" if self.version in sick or not self.is_active else "ok"
        body = b'{"status": "%s"}' % state.encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def to(place: Place, version: str, **more: str) -> Switch:
    """A switch to a version."""
    deb = place.debs[version]
    return Switch(str(deb), hashlib.sha256(deb.read_bytes()).hexdigest(), version, "a test", **more)


def sets(recovery: Path, kind: str) -> list[Path]:
    """The sets of a kind, the oldest first."""
    return sorted(recovery.glob(f"{kind}-*"))
