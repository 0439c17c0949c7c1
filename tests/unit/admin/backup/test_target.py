from __future__ import annotations

import fcntl
import os
import re
import stat
from pathlib import Path

import pytest

from svc.admin.backup.target import Target, alone, opened
from svc.errors import FileRefused, OperationInProgress, StorageFull, SvcError

ANY = re.compile(r".*")


def test_a_draft_is_the_callers_alone_whatever_the_umask(target: Target, folder: Path) -> None:
    for mask in (0o000, 0o777):
        before = os.umask(mask)
        try:
            with target.draft("x.db") as draft:
                assert stat.S_IMODE(os.stat(folder / draft.name).st_mode) == 0o600
        finally:
            os.umask(before)
    assert os.listdir(folder) == []


def test_it_gets_its_name_when_it_is_complete(target: Target, folder: Path) -> None:
    with target.draft("x.db") as draft:
        draft.write(b"content")
        draft.seal()
        assert not (folder / "x.db").exists()
        draft.rename("x.db")
    assert os.listdir(folder) == ["x.db"]
    assert (folder / "x.db").read_bytes() == b"content"


def test_a_file_that_somebody_still_writes_is_not_sealed(target: Target, folder: Path) -> None:
    """A process of the service that got the descriptor could change a snapshot after its check."""
    with target.draft("x.db") as draft:
        kept = os.open(folder / draft.name, os.O_RDWR)
        with pytest.raises(SvcError, match="still has the snapshot open for writing"):
            draft.seal()
        os.close(kept)
    assert os.listdir(folder) == []
    with target.draft("x.db") as draft:
        reader = os.open(folder / draft.name, os.O_RDONLY)  # a virus scanner, another backup program
        draft.seal()
        os.close(reader)


def test_what_an_ended_run_left_is_removed_and_nothing_else(target: Target, folder: Path) -> None:
    (folder / ".x.db.0123abcd.partial").write_bytes(b"left")
    (folder / ".y.txt.0123abcd.partial").write_bytes(b"of another program")
    (folder / ".x.db.partial").write_bytes(b"not ours")
    os.symlink("/etc/passwd", folder / ".x.db.deadbeef.partial")
    (folder / "linked").write_bytes(b"two names")
    os.link(folder / "linked", folder / ".x.db.11111111.partial")
    with target.draft("x.db") as draft:
        target.remove_stale_drafts(re.compile(r"x\.db"))
        assert sorted(os.listdir(folder)) == sorted(
            [".y.txt.0123abcd.partial", ".x.db.partial", ".x.db.deadbeef.partial", "linked",
             ".x.db.11111111.partial", draft.name]
        )  # fmt: skip


def test_a_directory_that_others_can_change(tmp_path: Path, needs_root: None) -> None:
    """Root would write wherever a user leads it: `--out /home/ada/to-etc/passwd --force`."""
    home = tmp_path / "home"
    (home / "own").mkdir(parents=True)
    os.chown(home, 1234, 1234)
    for directory in (home, home / "own"):
        with (
            pytest.raises(FileRefused, match="others can change") as caught,
            opened(str(directory), instead="x y"),
        ):
            pass
        assert caught.value.hint == "x y"
    os.chown(home, 0, 0)
    home.chmod(0o777)
    with pytest.raises(FileRefused, match="others can change"), opened(str(home / "own"), instead=""):
        pass
    home.chmod(0o1777)  # as /tmp: what is root's own in there stays
    with opened(str(home / "own"), instead="") as target:
        assert target.path == str(home / "own")


def test_links_of_root_are_followed(tmp_path: Path, folder: Path) -> None:
    os.symlink(folder, tmp_path / "link")
    with opened(str(tmp_path / "link"), instead="") as target:
        assert target.path == str(folder)


@pytest.mark.parametrize(("name", "why"), [("none", "there is no directory"), ("file", "Not a directory")])
def test_a_directory_that_is_none(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileRefused, match=why), opened(str(tmp_path / name), instead=""):
        pass


def test_a_missing_directory_is_created_by_root_where_only_root_can_write(tmp_path: Path) -> None:
    with pytest.raises(FileRefused) as refused, opened("/srv/no such/backups", instead="choose another"):
        pass
    assert refused.value.message == "there is no directory /srv/no such/backups"
    command = "sudo install -d -m 0700 '/srv/no such/backups'"
    assert refused.value.hint == f"{command}   (or mount the disk that belongs there)"
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)  # somebody could put a link there before the command is pasted
    with pytest.raises(FileRefused) as refused, opened(f"{shared}/backups", instead="choose another"):
        pass
    assert refused.value.hint == "choose another"


def test_it_is_made_for_the_caller_alone_when_it_is_the_default(tmp_path: Path) -> None:
    with opened(str(tmp_path / "new"), instead="", create=True):
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    umask = os.umask(0o077)
    try:
        with opened(str(tmp_path / "state" / "recovery"), instead="", create=True):
            pass
    finally:
        os.umask(umask)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("state", "state/recovery")]
    assert modes == [0o755, 0o700]


def test_room_is_told_in_numbers(target: Target) -> None:
    target.require_room(1, 1)
    with pytest.raises(StorageFull, match=r"needs 8\.0 EiB|needs [\d.]+ TiB and 1\.0 MiB must stay free"):
        target.require_room(2**60, 2**20)


def test_one_backup_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "state" / "backup.lock")
    with (
        alone(path),
        pytest.raises(OperationInProgress, match=rf"running \(pid {os.getpid()}\)"),
        alone(path),
    ):
        pass
    with alone(path):
        pass
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, "who can open it could hold it"


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    os.symlink("/etc/passwd", tmp_path / "backup.lock")
    with pytest.raises(FileRefused, match="cannot be opened"), alone(str(tmp_path / "backup.lock")):
        pass


def test_a_full_or_failing_disk_is_an_error_of_ours(folder: Path) -> None:
    for number, kind in ((28, StorageFull), (122, StorageFull), (5, FileRefused)):
        with pytest.raises(kind), opened(str(folder), instead=""):
            raise OSError(number, os.strerror(number))


def test_a_draft_of_a_living_run_is_locked(target: Target, folder: Path) -> None:
    with target.draft("x.db") as draft:
        other = os.open(folder / draft.name, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
        draft.seal()
        other = os.open(folder / draft.name, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
