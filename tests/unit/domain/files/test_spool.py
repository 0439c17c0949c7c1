"""Staged bytes have no name, lie beside the database and are gone afterwards."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from svc.domain.files import spool
from svc.domain.files.spool import ended, unnamed_file
from svc.errors import StorageFull
from svc.limits import DISK_RESERVE


def test_it_has_no_name_and_is_gone(db: str) -> None:
    before = set(os.listdir(Path(db).parent))
    with unnamed_file(1) as file:
        file.write(b"x")
        file.flush()
        status = os.fstat(file.fileno())
        assert (status.st_nlink, stat.S_IMODE(status.st_mode), status.st_size) == (0, 0o600, 1)
        assert status.st_dev == os.stat(db).st_dev
        assert set(os.listdir(Path(db).parent)) == before
    assert file.closed


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_said(db: str, number: int) -> None:
    with pytest.raises(StorageFull), unnamed_file(1):
        raise OSError(number, "full")


def test_any_other_failure_goes_on_as_it_is(db: str) -> None:
    with pytest.raises(PermissionError), unnamed_file(1):
        raise PermissionError(errno.EACCES, "no")


def test_files_at_the_same_time_do_not_count_on_the_same_room(
    db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes its room before a byte comes: else eight that fit one by one fill the disk together."""
    size = 8 * 1024 * 1024
    status = os.statvfs(Path(db).parent)
    monkeypatch.setattr(
        spool, "DISK_RESERVE", status.f_bavail * status.f_frsize - size - size // 2
    )  # one fits, two do not
    with unnamed_file(size) as file:
        with pytest.raises(StorageFull), unnamed_file(size):
            pass
        file.write(b"much less")
        ended(file)
        assert os.fstat(file.fileno()).st_size == len(b"much less")
        with unnamed_file(size):
            pass


def test_the_database_keeps_room_for_itself(db: str) -> None:
    """A passing file never takes the last of the disk that everybody's writes need."""
    status = os.statvfs(Path(db).parent)
    free = status.f_bavail * status.f_frsize
    with pytest.raises(StorageFull) as caught, unnamed_file(free):
        pass
    assert caught.value.details["needed_bytes"] == free + DISK_RESERVE
