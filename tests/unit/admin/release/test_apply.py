"""`svc admin update apply`: releases of small packages, which dpkg installs into a root of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from unit.admin.conftest import Svc
from unit.admin.packages import MORE, PROGRAMS, Place
from unit.admin.rows import ask, change, user
from unit.releasing import NEXT_SCHEMA, ReleaseVendor

from svc.__main__ import main
from svc.admin.release.installation import installed

pytestmark = pytest.mark.allow_commands(*PROGRAMS, "setpriv", os.path.basename(sys.executable))
OWN = 'os.path.dirname(os.path.realpath(__file__)) + "/python'
MIGRATIONS = "usr/lib/svc/python/svc/schema/migrations"


class Releases:
    """Releases of version 2 in a folder, each made from what a test changes in the package's tree."""

    def __init__(self, vendor: ReleaseVendor, place: Place, folder: Path) -> None:
        self.vendor = vendor
        self.place = place
        self.folder = folder

    def offer(
        self, version: str = "2", *, migration: str = MORE, launcher: str = "", min_from: str = "1"
    ) -> None:
        """Sign a package and put it where SVC_UPDATE_SOURCE leads."""
        tree = self.place.path / f"tree-{version}"
        if version != "2":
            self.place.build(version)
        program = tree / "usr/lib/svc/svc"
        text = program.read_text().replace('ROOT + "/usr/lib/svc/python/migrations"', f'{OWN}/migrations"')
        commit = f"import svc.version\nsvc.version.commit = lambda: {version!r} * 40\n{launcher}\n"
        text = text.replace("import sys\n", "import os, sys\n", 1)
        text = text.replace("from svc.__main__", f"{commit}from svc.__main__")
        program.write_text(text)
        folder = tree / "usr/lib/svc/python/migrations"
        next(folder.glob("*_more.sql")).write_text(migration)
        (tree / MIGRATIONS).mkdir(parents=True)
        (tree / MIGRATIONS / f"{NEXT_SCHEMA:04d}_more.sql").write_text("")
        (tree / "usr/lib/svc/python/svc/_build.py").write_text(f"COMMIT = {version * 40!r}\n")
        deb = self.place.path / f"debs/svc_{version}_release.deb"
        self.place.run("dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(deb))
        self.vendor.sign(self.folder, f"{installed().os}={deb}", min_from=min_from)


@pytest.fixture
def releases(
    vendor: ReleaseVendor, built: None, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Releases:
    monkeypatch.setenv("SVC_UPDATE_SOURCE", f"{tmp_path}/release")
    return Releases(vendor, place, tmp_path / "release")


def applied(svc: Svc) -> dict[str, Any]:
    code, out, err = svc("update", "status", "--json")
    assert code == 0, err
    return dict(json.loads(out)["applied"])


def left(tmp_path: Path) -> list[str]:
    return sorted(os.listdir(tmp_path / "state/update"))


def test_a_release_is_installed(
    svc: Svc, releases: Releases, place: Place, database: str, tmp_path: Path
) -> None:
    """ "Applies the latest release"; with a recovery set of what was before."""
    change(database, user(30, "before"))
    releases.offer()
    code, out, err = svc("update", "apply")
    assert (code, "Replace svc 1 by 2?" in err, "needs --yes" in err) == (1, True, True)
    assert place.version == "1"
    code, out, err = svc("update", "apply", "--yes")
    assert code == 0, err
    assert (place.version, place.recorded, place.is_active) == ("2", "2 installed", True)
    assert ask(database, "SELECT count(*) FROM of_version_2") == [(0,)]
    assert ask(database, "SELECT target, outcome FROM audit WHERE action = 'admin.update_apply'") == [
        ("2", "begun")
    ]
    record = applied(svc)
    assert (record["from"], record["to"], record["outcome"], record["reason"]) == ("1", "2", "ok", "")
    assert f"to go back: sudo svc admin rollback apply {record['recovery_set']} --db {database}\n" in out
    assert out.startswith("svc 2 is installed in place of 1; the service runs\n")
    assert left(tmp_path) == []
    code, out, _ = svc("update", "apply", "--yes")
    assert (code, out) == (0, "svc 2 is up to date\n")


RUN = """\
import runpy, sys, types

sys.modules["svc._build"] = types.SimpleNamespace(COMMIT="1" * 40, LICENSE_KEYS=[], RELEASE_KEYS=[{key!r}])
sys.argv = ["svc", "admin", "update", "apply", "--yes"]
runpy.run_path({launcher!r}, run_name="__main__")
"""


def test_nothing_is_imported_once_the_files_are_the_new_ones(
    releases: Releases, vendor: ReleaseVendor, place: Place
) -> None:
    """The small package's launcher notes each import by a program that is not the installed version."""
    releases.offer()
    program = RUN.format(key=vendor.public.hex(), launcher=f"{place.path}/usr/lib/svc/svc")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("svc 2 is installed in place of 1; the service runs\n")
    calls = place.calls
    since = calls[calls.index("prerm 1 upgrade 2") :]
    assert not [line for line in since if line.startswith("import ")]


def test_a_failed_rehearsal_touches_nothing(
    svc: Svc, releases: Releases, place: Place, database: str, tmp_path: Path
) -> None:
    releases.offer(migration="CREATE TABLE users (id);\n")
    code, out, err = svc("update", "apply", "--yes")
    assert (code, out) == (1, "")
    assert "svc: 2 failed in its rehearsal, and nothing was changed: exit code 1:" in err
    assert "table users already exists" in err
    assert (place.version, place.is_active) == ("1", True)
    assert not [line for line in place.calls if line.startswith("systemctl")], (
        "the service was not even stopped"
    )
    record = applied(svc)
    assert (record["outcome"], "already exists" in record["reason"]) == ("rehearsal_failed", True)
    assert [name for name in left(tmp_path) if not name.endswith(".deb")] == []
    assert os.listdir(tmp_path / "recovery") == []


@pytest.mark.parametrize("fault", ["migration", "health"])
def test_what_fails_later_goes_back(
    svc: Svc, releases: Releases, place: Place, database: str, fault: str
) -> None:
    """Both work in the rehearsal: the migration fails on the database itself, or the service is sick."""
    change(database, user(30, "before"))
    live = "if 'migrate' in sys.argv and 'rehearsal' not in sys.argv[-1]: sys.exit('only there')"
    releases.offer(launcher=live if fault == "migration" else "")
    if fault == "health":
        (place.path / "sick").write_text("2")
    code, _, err = svc("update", "apply", "--yes")
    assert code == 1
    assert "svc: 2 did not work, and 1 is in place again: " in err
    assert ("only there" if fault == "migration" else "not healthy") in err
    assert "hint: sudo svc admin rollback list\n" in err
    assert (place.version, place.recorded, place.is_active) == ("1", "1 installed", True)
    assert ask(database, "SELECT name FROM users WHERE id = 30") == [("before",)]
    record = applied(svc)
    assert (record["outcome"], record["recovery_set"] in svc("rollback", "list")[1]) == ("went_back", True)


def kill_apply(when: str) -> None:
    """Run an apply in a process of its own, and kill that soon after it said this."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        sys.stderr = os.fdopen(writing, "w")
        sys.argv = ["svc", "admin", "update", "apply", "--yes"]
        os._exit(main(sys.argv[1:]))
    os.close(writing)
    said = b""
    while when.encode() not in said and (part := os.read(reading, 1000)):
        said += part
    time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    os.close(reading)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL, said


@pytest.mark.parametrize("when", ["fetching", "rehearsing"])
def test_what_is_killed_before_the_switch_changes_nothing(
    svc: Svc, releases: Releases, place: Place, tmp_path: Path, when: str
) -> None:
    releases.offer(launcher="import time; time.sleep(0.3)")
    kill_apply(when)
    assert (place.version, place.is_active) == ("1", True)
    assert left(tmp_path)
    code, _, err = svc("update", "apply", "--yes")
    assert code == 0, err
    assert (place.version, left(tmp_path)) == ("2", [])


def test_what_is_refused_before(svc: Svc, releases: Releases, place: Place) -> None:
    releases.offer("3", min_from="2")
    code, _, err = svc("update", "apply", "--yes")
    assert (code, "install a release between them first" in err) == (1, True)
    releases.vendor.resign(releases.folder, version="0.9")
    code, _, err = svc("update", "apply", "--yes")
    assert (code, "an update never goes back" in err) == (1, True)
    releases.vendor.resign(releases.folder, version="3", min_from="1")
    (deb,) = releases.folder.glob("*.deb")
    deb.write_bytes(deb.read_bytes()[:-1] + b"x")
    code, _, err = svc("update", "apply", "--yes")
    assert (code, "has another content than the one that was signed" in err) == (1, True)
    assert place.version == "1"


def test_a_checkout_is_told_its_own_way(svc: Svc, built: None, needs_root: None) -> None:
    code, _, err = svc("update", "apply", "--yes")
    assert (code, "was not installed by the package" in err) == (1, True)
    assert "hint: in a checkout of the new release: sudo packaging/install\n" in err
