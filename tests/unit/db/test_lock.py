from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from unit.db.disks import failing_writes

from svc.db.lock import hold, lock_path
from svc.errors import DatabaseRefused


def test_one_holder_at_a_time_and_the_other_is_told_who(path: str) -> None:
    with (
        hold(path, holder="svc server"),
        pytest.raises(DatabaseRefused, match=rf"in use by svc server \(pid {os.getpid()}\)"),
        hold(path, holder="svc admin restore"),
    ):
        pytest.fail("two holders")
    with hold(path):
        pass


@pytest.mark.parametrize(
    ("holder", "hint"),
    [
        ("svc server", "stop that process first"),
        ("svc admin restore", "run it again when that has ended"),
    ],
)
def test_the_service_is_stopped_and_a_command_waited_for(
    path: str, holder: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.path.isdir", lambda _path: False)  # without systemd
    with hold(path, holder=holder), pytest.raises(DatabaseRefused) as refused, hold(path):
        pass
    assert refused.value.hint == hint


def test_systemd_stops_the_service_for_root(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.isdir", lambda path: path == "/run/systemd/system")
    with hold(path), pytest.raises(DatabaseRefused) as refused, hold(path):
        pass
    assert refused.value.hint == "stop the service first: sudo systemctl stop svc"


def test_readers_share_and_exclude_the_writer(path: str) -> None:
    with (
        hold(path, exclusive=False),
        hold(path, exclusive=False),
        pytest.raises(DatabaseRefused),
        hold(path),
    ):
        pytest.fail("a writer among readers")


def test_the_lock_ends_with_its_process(path: str) -> None:
    pid = os.fork()
    if pid == 0:
        with hold(path):
            os._exit(0)
    os.waitpid(pid, 0)
    with hold(path):
        pass


def test_the_lock_is_not_handed_to_programs(path: str) -> None:
    with hold(path):
        opened = [int(name) for name in os.listdir("/proc/self/fd")]
        mine = [
            fd
            for fd in opened
            if os.path.exists(f"/proc/self/fd/{fd}") and os.readlink(f"/proc/self/fd/{fd}") == lock_path(path)
        ]
        assert [os.get_inheritable(fd) for fd in mine] == [False]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/passwd", path)])
def test_a_planted_lock_is_refused(path: str, make: object) -> None:
    make(lock_path(path))  # type: ignore[operator]
    with pytest.raises(DatabaseRefused), hold(path):
        pytest.fail("held")


def test_on_a_full_disk_the_lock_holds_without_its_text(path: str) -> None:
    """It was "File too large", and the service did not start."""
    with failing_writes(), hold(path), pytest.raises(DatabaseRefused, match=r"is in use$"), hold(path):
        pytest.fail("two holders")


def test_a_holder_that_lies_is_not_quoted(path: str) -> None:
    Path(lock_path(path)).write_text("\x1b[31mgotcha (pid 1)")
    with hold(path, exclusive=False):
        Path(lock_path(path)).write_text("\x1b[31mgotcha (pid 1)")
        with pytest.raises(DatabaseRefused) as refused, hold(path):
            pytest.fail("held")
    assert "gotcha" not in refused.value.message


def test_roots_lock_belongs_to_the_directorys_owner(nobodys: Path) -> None:
    path = str(nobodys / "svc.db")
    with hold(path):
        status = os.stat(lock_path(path))
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (65534, 0o600)
