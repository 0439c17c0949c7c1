"""Sets that there are: which can be applied, why others cannot, which are removed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unit.admin.conftest import Svc
from unit.admin.packages import PROGRAMS, Place, sets

from svc.admin.backup import recovery_sets
from svc.admin.backup.target import Target, opened
from svc.errors import FileRefused

pytestmark = pytest.mark.allow_commands(*PROGRAMS)


@pytest.fixture
def kept(svc: Svc, place: Place, recovery: Path) -> Path:
    """A set with a program."""
    assert svc("rollback", "keep", "--why", "before 2", "--for-version", "2")[0] == 0
    return sets(recovery, "upgrade")[0]


def the_record(database: str, recovery: Path) -> dict[str, Any]:
    with opened(str(recovery), instead="") as top:
        (record,) = recovery_sets.every(top, recovery_sets.here(database))
    return record


def edit(kept: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = kept / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_the_record_of_a_set(kept: Path, place: Place, database: str, recovery: Path) -> None:
    record = the_record(database, recovery)
    assert (record["id"], record["kind"], record["version"]) == (kept.name, "upgrade", "1")
    assert (record["why"], record["next_version"], record["problem"]) == ("before 2", "2", "")
    assert record["applicable"]
    assert record["size_bytes"] == sum(path.stat().st_size for path in kept.iterdir())
    assert record["database"] == str(kept / "svc.db")


FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no manifest": (lambda kept: (kept / "manifest.json").unlink(), "it is not complete"),
    "cut manifest": (lambda kept: os.truncate(kept / "manifest.json", 50), "it is not complete"),
    "missing file": (lambda kept: (kept / "svc.deb").unlink(), "svc.deb is missing"),
    "cut file": (lambda kept: os.truncate(kept / "svc.db", 50), "svc.db has 50 bytes and not"),
    "link": (
        lambda kept: ((kept / "svc.db.json").unlink(), (kept / "svc.db.json").symlink_to("svc.db")),
        "svc.db.json is not a file that only root can change",
    ),
    "others' directory": (lambda kept: kept.chmod(0o777), "others can change it"),
    "of another name": (
        lambda kept: kept.rename(kept.with_name("upgrade-20260101T000000.000Z")),
        "not complete",
    ),
    "architecture": (
        lambda kept: edit(kept, lambda manifest: manifest["program"].update(architecture="s390x")),
        "its program is for s390x, this host is",
    ),
    "newer schema": (
        lambda kept: edit(kept, lambda manifest: manifest.update(schema=9999)),
        "its database has schema 9999, newer than its program supports",
    ),
    "no program": (
        lambda kept: edit(kept, lambda manifest: manifest.pop("program")),
        "it holds the database and no program",
    ),
    "another database": (
        lambda kept: edit(kept, lambda manifest: manifest.update(database="/srv/other.db")),
        "it is of the database /srv/other.db",
    ),
    "strange files": (
        lambda kept: edit(kept, lambda manifest: manifest.update(files=[{"name": "../x"}])),
        "does not list its files",
    ),
    "a name that is none": (
        lambda kept: edit(kept, lambda manifest: manifest["files"][0].update(name="svc\0.db")),
        "does not list its files",
    ),
    "a name that is no text": (
        lambda kept: edit(kept, lambda manifest: manifest["files"][0].update(name="svc\ud800.db")),
        "does not list its files",
    ),
    "no name of a database": (
        lambda kept: edit(kept, lambda manifest: manifest.update(holds=["svc.db"])),
        "its manifest.json does not list ['svc.db']",
    ),
    "a path that is no text": (
        lambda kept: edit(kept, lambda manifest: manifest.update(database="/srv/\ud800.db", why="\ud800")),
        "it is of the database /srv/?.db",
    ),
    "a list without the program": (
        lambda kept: edit(kept, lambda manifest: manifest["files"].pop()),
        "its manifest.json does not list svc.deb",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_why_a_set_cannot_be_applied(
    svc: Svc, kept: Path, place: Place, database: str, recovery: Path, fault: str
) -> None:
    damage, problem = FAULTS[fault]
    damage(kept)
    record = the_record(database, recovery)
    assert not record["applicable"]
    assert problem in record["problem"]
    code, _, err = svc("rollback", "apply", record["id"], "--yes")
    assert code == 1
    assert problem in err
    assert place.version == "1"
    assert not place.calls, "nothing was stopped"


def test_without_a_package(
    kept: Path, place: Place, database: str, recovery: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc.admin.backup.package.__file__", "/opt/svc/package.py")
    record = the_record(database, recovery)
    assert record["problem"].startswith("svc is not installed as a package here")
    assert record["remedy"] == f"sudo svc admin restore {kept}/svc.db --db {database}"


@pytest.mark.parametrize("name", ["svc.deb", "svc.db", "svc.db.host.tar"])
def test_a_changed_byte_is_found_when_it_is_applied(
    svc: Svc, kept: Path, place: Place, recovery: Path, database: str, name: str
) -> None:
    path = kept / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert the_record(database, recovery)["applicable"], "a list compares sizes"
    with opened(str(recovery), instead="") as top, pytest.raises(FileRefused, match="was changed since"):
        recovery_sets.require_whole(top, kept.name)
    assert svc("rollback", "apply", kept.name, "--yes")[0] == 1
    assert not place.calls


def made(top: Target, database: str, name: str, **more: Any) -> None:
    """A set as far as the pruning looks at it."""
    path = Path(top.path, name)
    path.mkdir(mode=0o700)
    for file in ("svc.db", "svc.deb"):
        (path / file).write_text("x")
    files = [{"name": file, "size_bytes": 1, "sha256": ""} for file in ("svc.db", "svc.deb")]
    program = {"version": "1", "architecture": "all", "schema": 9, "system": more.pop("system", "")}
    manifest = {"format": 1, "id": name, "database": database, "schema": 9, "holds": "svc.db", "files": files}
    (path / "manifest.json").write_text(json.dumps(manifest | {"program": program} | more))


HERE = recovery_sets.Here("/x.db", recovery_sets.package.Installed("1", "all", "", "1"), "all", "debian-13")


def names(kind: str, numbers: range) -> list[str]:
    return [f"{kind}-20260101T00000{number}.000Z" for number in numbers]


@pytest.mark.parametrize("tight", [False, True])
def test_old_sets_go_and_the_newest_applicable_one_never(
    target: Target, monkeypatch: pytest.MonkeyPatch, needs_root: None, tight: bool
) -> None:
    monkeypatch.setattr(recovery_sets, "_is_tight", lambda _: tight)
    for name in names("upgrade", range(6)):
        made(target, "/x.db", name, **({} if name < "upgrade-20260101T000002" else {"schema": 10}))
    for name in names("restore", range(5)):
        made(target, "/x.db", name)
    foreign = Path(target.path, "upgrade-mine")
    foreign.mkdir()
    damaged = Path(target.path, "upgrade-20250101T000000.000Z")
    damaged.mkdir()
    recovery_sets.prune(target, HERE, ["restore-20260101T000000.000Z"])
    left = set(os.listdir(target.path)) - {"upgrade-mine", damaged.name}
    never = {"upgrade-20260101T000005.000Z", "restore-20260101T000004.000Z", "restore-20260101T000000.000Z"}
    if tight:
        assert left == never
    else:
        assert left == {
            *names("upgrade", range(3, 6)),
            *names("restore", range(2, 5)),
            "restore-20260101T000000.000Z",
        }
    assert foreign.exists()
    assert damaged.exists()


def test_the_newest_applicable_one_stays_though_it_is_old(target: Target, needs_root: None) -> None:
    for name in names("upgrade", range(6)):
        made(target, "/x.db", name, schema=9 if name.endswith("0.000Z") else 10)
    assert recovery_sets.prune(target, HERE) == names("upgrade", range(1, 3))


def test_a_program_of_another_system_is_not_put_in_place(target: Target, needs_root: None) -> None:
    """After an upgrade of Debian: its Python is another one. The database can be restored all the same."""
    old, new, unknown = names("upgrade", range(3))
    for name, system in ((old, "debian-12"), (new, "debian-13"), (unknown, "")):
        made(target, "/x.db", name, system=system)
    records = {record["id"]: record for record in recovery_sets.every(target, HERE)}
    assert [records[name]["applicable"] for name in (old, new, unknown)] == [False, True, True]
    assert records[old]["problem"] == "its program was built for debian-12, this host is debian-13"
    assert records[old]["remedy"].startswith("sudo svc admin restore ")
