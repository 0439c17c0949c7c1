"""The rehearsal: a package of this tree's program migrates a copy of a real database."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from unit.admin.conftest import Svc
from unit.releasing import NEXT_SCHEMA, make_program

from svc.admin.backup.snapshot import source_of
from svc.admin.release.rehearsal import rehearse
from svc.admin.release.signed import Release
from svc.errors import StorageFull, UpdateFailed
from svc.host.owner import Owner, owner_of
from svc.settings import Settings

pytestmark = pytest.mark.allow_commands("dpkg-deb", "setpriv")
COMMIT = "d" * 40
GOOD = "CREATE TABLE novelties (id INTEGER PRIMARY KEY);\n"
Rehearse = Callable[..., None]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "update"
    path.mkdir(mode=0o711)
    path.chmod(0o711)
    return path


@pytest.fixture
def rehearsed(svc: Svc, database: str, tmp_path: Path, place: Path) -> Rehearse:
    """rehearsed(migration, version=..., commit=..., schema=..., **files): as `update apply` does it."""

    def run(
        migration: str = GOOD,
        *,
        commit: str = COMMIT,
        schema: int = NEXT_SCHEMA,
        version: str = "1.2.0",
        built: str = "1.2.0",
        **files: str,
    ) -> None:
        package = make_program(tmp_path, built, COMMIT, migration, **files)
        release = Release(version, commit, schema, "2026-01-02T00:00:00Z", "1.0", (), "")
        source = source_of(Settings(environ=dict(os.environ), file={}))
        rehearse(str(package), release, source, str(place))

    return run


def content(database: str) -> tuple[str, list[str]]:
    files = sorted(name for name in os.listdir(os.path.dirname(database)) if not name.endswith("-shm"))
    return hashlib.sha256(Path(database).read_bytes()).hexdigest(), files


def test_a_migration_that_works_changes_nothing_here(rehearsed: Rehearse, database: str, place: Path) -> None:
    before = content(database)
    rehearsed()
    assert content(database) == before
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("migration", "why"),
    [
        ("CREATE TABLE users (id);\n", "exit code 1: .*table users already exists"),
        ("INSERT INTO no_such_table VALUES (1);\n", "exit code 1: .*no such table: no_such_table"),
        ("this is no SQL;\n", "exit code 1: .*syntax error"),
    ],
)
def test_a_migration_that_fails_is_said(
    rehearsed: Rehearse, database: str, place: Path, migration: str, why: str
) -> None:
    before = content(database)
    with pytest.raises(UpdateFailed, match=f"1.2.0 failed in its rehearsal, and nothing was changed: {why}"):
        rehearsed(migration)
    assert content(database) == before
    assert list(place.iterdir()) == []


def test_a_program_that_does_not_start(rehearsed: Rehearse, place: Path) -> None:
    with pytest.raises(UpdateFailed, match=r"exit code 1: .*ZeroDivisionError"):
        rehearsed(svc__version="1 / 0\n")
    assert list(place.iterdir()) == []


def test_what_was_signed_is_what_is_in_the_package(rehearsed: Rehearse) -> None:
    with pytest.raises(UpdateFailed, match=r"says that it is commit d+, and e+ was signed"):
        rehearsed(commit="e" * 40)
    with pytest.raises(UpdateFailed, match=r"the package is svc 1\.2\.0, and 1\.3\.0 of svc was signed"):
        rehearsed(version="1.3.0")
    with pytest.raises(UpdateFailed, match=f"the schema is {NEXT_SCHEMA}, and 98 was signed"):
        rehearsed(schema=98)


def test_the_packages_version_may_name_its_system_too(rehearsed: Rehearse) -> None:
    rehearsed(built="1.2.0+deb12", release="1.2.0")
    with pytest.raises(
        UpdateFailed, match=r"the package is svc 1\.3\.0\+deb12, and 1\.2\.0 of svc was signed"
    ):
        rehearsed(built="1.3.0+deb12", release="1.3.0")


def test_it_runs_as_the_databases_owner_without_privileges(
    rehearsed: Rehearse, database: str, public_tmp_path: Path
) -> None:
    """Who cannot write what is root's, though root has started it."""
    owner = Owner(65534, 65534)
    for path in (Path(database).parent, *Path(database).parent.iterdir()):
        os.chown(path, *owner)
    assert owner_of(database) == owner
    text = (
        "import os\nAPI_VERSION = '1'\n\ndef commit() -> str:\n"
        f"    assert os.getresuid() == (65534,) * 3 and not os.access({str(public_tmp_path)!r}, os.W_OK)\n"
        "    assert 'CapBnd:\\t' + '0' * 16 + '\\n' in open('/proc/self/status').read()\n"
        f"    return {COMMIT!r}\n"
    )
    rehearsed(svc__version=text)
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM users").fetchone()[0] == 1


def test_a_full_disk_is_known_before(
    rehearsed: Rehearse, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc.admin.release.rehearsal.GROWTH", 2**40)
    with pytest.raises(StorageFull):
        rehearsed()
    assert list(place.iterdir()) == []
