"""Whole snapshots, and runs that end in the middle of one."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from unit.admin.killing import STRIDE

from svc.admin.backup import snapshot, snapshots
from svc.admin.backup.target import opened
from svc.errors import DatabaseDamaged, FileRefused, StorageFull, SvcError
from svc.host import owner as owners
from svc.host.owner import Owner, run_as
from svc.settings import Settings

NOBODY = Owner(65534, 65534)


@pytest.fixture
def source(database: str) -> snapshot.Source:
    """The migrated database of `svc admin`."""
    return snapshot.Source(database, owners.owner_of(database), f"{database}.lock-of-backups", Settings())


def test_a_snapshot_has_its_side_file_and_the_small_files(source: snapshot.Source, folder: Path) -> None:
    with opened(str(folder), instead="") as target:
        record = snapshot.write(source, target, "x.db", number=4)
    assert sorted(os.listdir(folder)) == ["x.db", "x.db.host.tar", "x.db.json"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    side = json.loads((folder / "x.db.json").read_text())
    assert side["size_bytes"] == (folder / "x.db").stat().st_size == record["size_bytes"]
    assert (side["number"], side["rows"]["users"], side["refused"]) == (4, 1, "")
    secret = Path(source.database).with_name("secret.key").read_bytes().strip()
    assert not [path.name for path in folder.iterdir() if secret in path.read_bytes()]


def test_the_owner_does_it_for_root(
    source: snapshot.Source, folder: Path, tmp_path: Path, needs_root: None
) -> None:
    """Root's directory is closed to the account that reads the database, and its files are root's."""
    for part in (tmp_path, *tmp_path.parents):
        if part.stat().st_mode & 0o001 == 0:
            part.chmod(0o711)
    data = Path(source.database).parent
    for path in (data, *data.iterdir()):
        os.chown(path, *NOBODY)
    with opened(str(folder), instead="") as target:
        snapshot.write(source._replace(owner=NOBODY), target, "x.db")
    assert {(path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) for path in folder.iterdir()} == {
        (0, 0o600)
    }
    assert {path.stat().st_uid for path in data.iterdir()} == {65534}, (
        "root has left no files beside the database"
    )


@pytest.mark.parametrize("damage", ["garbage", "halved", "index", "reference"])
def test_a_damaged_database_leaves_nothing_and_names_the_way_out(
    source: snapshot.Source, folder: Path, damage: str
) -> None:
    spoil(Path(source.database), damage)
    with opened(str(folder), instead="") as target, pytest.raises(DatabaseDamaged) as caught:
        snapshot.write(source, target, "x.db")
    assert "the database is damaged, and no snapshot was made" in caught.value.message
    assert f"svc admin backup --raw --out {folder}/damaged-" in caught.value.hint
    assert caught.value.hint.startswith("stop the service, then: ")
    assert os.listdir(folder) == []
    with opened(str(folder), instead="") as target:
        record = snapshot.write_raw(source, target, "raw.db")
    assert record["raw"]
    assert (folder / "raw.db").read_bytes() == Path(source.database).read_bytes()


def spoil(path: Path, how: str) -> None:
    for log in path.parent.glob(f"{path.name}-*"):
        log.unlink()
    if how == "garbage":
        path.write_bytes(os.urandom(50_000))
    elif how == "halved":
        os.truncate(path, path.stat().st_size // 2)
    else:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = OFF")
        if how == "reference":
            connection.execute("INSERT INTO operation_log VALUES ('op-none', 1, 'now', 'x')")
        else:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(
                "UPDATE sqlite_schema SET sql = 'CREATE UNIQUE INDEX templates_name ON templates (name, id)',"
                " rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'audit')"
                " WHERE name = 'templates_name'"
            )
        connection.close()


@pytest.mark.parametrize("version", [3, 999])
def test_a_database_of_another_release_is_backed_up_too(
    source: snapshot.Source, folder: Path, version: int
) -> None:
    """Before `migrate`, and after a downgrade: who needs a backup then most must get one."""
    connection = sqlite3.connect(source.database, isolation_level=None)
    if version == 999:
        connection.execute("INSERT INTO schema_migrations VALUES (999, 'later', 'x', 'now')")
    else:
        connection.execute("DELETE FROM schema_migrations WHERE number > 3")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with opened(str(folder), instead="") as target:
        record = snapshot.write(source, target, "x.db")
    assert record["schema"] == version
    assert ("newer release" in record["refused"]) is (version == 999)


def test_another_programs_database_is_refused(source: snapshot.Source, plain: str, folder: Path) -> None:
    with opened(str(folder), instead="") as target, pytest.raises(FileRefused, match="another program"):
        snapshot.write(source._replace(database=plain), target, "x.db")
    assert os.listdir(folder) == []


def test_too_little_room_is_found_before_anything_is_written(
    source: snapshot.Source, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fstatvfs(0)
    small = os.statvfs_result((real.f_bsize, real.f_frsize, 9, 9, 9, *tuple(real)[5:]))
    monkeypatch.setattr(os, "fstatvfs", lambda descriptor: small)
    with opened(str(folder), instead="") as target, pytest.raises(StorageFull) as caught:
        snapshot.write(source, target, "x.db")
    assert "must stay free" in caught.value.message
    assert os.listdir(folder) == []


def test_a_disk_that_becomes_full(source: snapshot.Source, folder: Path, needs_root: None) -> None:
    """A limit on the size of files stops the copy, the archive and the side file in the middle."""
    import resource

    def work(most: int) -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        try:
            with opened(str(folder), instead="") as target:
                snapshot.write(source._replace(owner=NOBODY), target, "x.db")
        except SvcError as error:
            return error.code
        return ""

    folder.chmod(0o777)
    os.chown(folder, *NOBODY)
    for part in (folder.parent, *folder.parent.parents):
        part.chmod(part.stat().st_mode | 0o011)
    for path in (data := Path(source.database).parent, *data.iterdir()):
        os.chown(path, *NOBODY)
    folder.chmod(0o700)
    for most in (5_000, 50_000, 100_000):
        assert run_as(NOBODY, lambda most=most: work(most)) in ("storage_failed", "storage_full")  # type: ignore[misc]
        assert os.listdir(folder) == []


def test_on_another_file_system(source: snapshot.Source) -> None:
    """A share or a second disk: the draft is made there, and nothing is moved between the two."""
    own = os.stat(source.database).st_dev
    places = [place for place in ("/dev/shm", "/var/tmp") if os.stat(place).st_dev != own]
    if not places:
        pytest.skip("/dev/shm and /var/tmp are in the file system of the test's own directory")
    with tempfile.TemporaryDirectory(dir=places[0]) as other, opened(other, instead="") as target:
        snapshot.write(source, target, "x.db")
        assert sorted(os.listdir(other)) == ["x.db", "x.db.host.tar", "x.db.json"]


def test_names_that_are_taken(source: snapshot.Source, folder: Path) -> None:
    (folder / "x.db-wal").touch()
    (folder / "y.db").touch()
    (folder / "z.db").symlink_to("/etc/passwd")
    with opened(str(folder), instead="") as target:
        with pytest.raises(FileRefused, match=r"x\.db-wal already exists: SQLite would apply it"):
            snapshot.require_free(source, target, "x.db", force=False, again="svc again --force")
        with pytest.raises(FileRefused, match="already exists") as caught:
            snapshot.require_free(source, target, "y.db", force=False, again="svc again --force")
        assert caught.value.hint == "svc again --force"
        with pytest.raises(FileRefused, match="is a symbolic link"):
            snapshot.require_free(source, target, "z.db", force=True, again="")
        snapshot.require_free(source, target, "x.db", force=True, again="")
        snapshot.write(source, target, "x.db")
    assert not (folder / "x.db-wal").exists(), "SQLite would apply it to the snapshot"


def test_the_database_itself_is_never_the_target(source: snapshot.Source) -> None:
    directory, name = os.path.split(source.database)
    with opened(directory, instead="") as target:
        for each in (name, f"{name}-wal", f"{name}.lock"):
            with pytest.raises(FileRefused, match="not written over the database"):
                snapshot.require_free(source, target, each, force=True, again="")


STEPS = {
    "fsync",
    "rename",
    "open",
    "unlink",
    "pwrite",
    "close",
    "flock",
    "fcntl",
    "ftruncate",
    "backup",
    "connect",
}


def run_until(step: int, source: snapshot.Source, folder: Path, name: str) -> bool:
    """Write a snapshot in a process that is killed before its `step`-th call; True when it ended."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    left = step

    def count(frame: FrameType, event: str, function: Any) -> None:
        nonlocal left
        if (
            event == "c_call"
            and getattr(function, "__name__", "") in STEPS
            and "svc/admin/backup/" in frame.f_code.co_filename
        ):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.setprofile(count)
        with opened(str(folder), instead="") as target:
            snapshots.remove_stale(target)
            snapshot.write(source, target, name, number=step + 1)
            snapshots.prune(target, source.database, 1, name)
    finally:
        sys.setprofile(None)
        os._exit(0)


def test_killed_at_every_step(source: snapshot.Source, folder: Path) -> None:
    """What has a snapshot's name is whole, the one before stays until then, the next run cleans up."""
    names = [f"svc-20260101T0000{n // 60:02}.{n:03}Z.db" for n in range(400)]
    assert run_until(0, source, folder, names[0])
    for step in range(1, 400, STRIDE):
        ended = run_until(step, source, folder, names[step])
        present = sorted(name for name in os.listdir(folder) if snapshots.NAME.fullmatch(name))
        assert present, f"no snapshot is left after step {step}"
        for name in present:
            connection = sqlite3.connect(folder / name)
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            connection.close()
        with opened(str(folder), instead="") as target:
            whole = [one.name for one in snapshots.complete(target, source.database)]
        assert whole == present, f"after step {step}"
        if ended:
            break
    assert step > 20, step
    assert sorted(os.listdir(folder)) == [names[step], f"{names[step]}.host.tar", f"{names[step]}.json"]
