"""Switches between two versions of a small package: forward, back by itself, and cut off at every step."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from depths import sample
from unit.admin.conftest import Svc
from unit.admin.packages import PROGRAMS, Place, sets, to
from unit.admin.rows import ask, change, user

from svc.admin.backup import package
from svc.admin.release import switch
from svc.db.lock import hold
from svc.errors import Conflict, DatabaseRefused, FileRefused, HostRefused, StorageFull
from svc.host import notes
from svc.host import switching as note_of
from svc.host.restoring import require_none
from svc.settings import Settings

pytestmark = pytest.mark.allow_commands(*PROGRAMS)


def test_forward_and_back_by_the_set(svc: Svc, place: Place, database: str, recovery: Path) -> None:
    change(database, user(30, "before"))
    outcome = switch.switch(Settings(), to(place, "2"))
    assert outcome == (True, outcome.kept, True, "")
    assert (place.version, place.recorded, place.is_active) == ("2", "2 installed", True)
    assert ask(database, "SELECT count(*) FROM of_version_2") == [(0,)]
    assert [line for line in place.calls if not line.startswith("systemctl")] == [
        "prerm 1 upgrade 2",
        "2 admin migrate",
    ]
    (kept,) = sets(recovery, "upgrade")
    assert sorted(os.listdir(kept)) == [
        "manifest.json",
        "svc.db",
        "svc.db.host.tar",
        "svc.db.json",
        "svc.deb",
    ]
    assert kept.name == outcome.kept
    assert not sets(recovery, "migrate"), "the switch had kept it"
    change(database, user(31, "since"))
    code, out, err = svc("rollback", "apply", kept.name, "--yes")
    assert code == 0, err
    assert "1 user: since" in out
    assert (place.version, place.recorded, place.is_active) == ("1", "1 installed", True)
    assert ask(database, "SELECT name FROM users WHERE id >= 30") == [("before",)]
    assert not note_of.find(os.environ["SVC_STATE_DIR"])
    later = sets(recovery, "upgrade")[-1]
    assert svc("rollback", "apply", later.name, "--yes")[0] == 0, "and forward again, to a newer schema"
    assert place.version == "2"
    assert ask(database, "SELECT name FROM users WHERE id >= 30") == [("before",), ("since",)]


def test_a_package_of_another_system_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is stopped: dpkg would unpack it, and find afterwards that its Python is missing."""
    own = package.system()
    monkeypatch.setattr(package, "system", lambda: "debian-99")
    with pytest.raises(FileRefused, match=f"was built for {own}, and this host is debian-99"):
        switch.switch(Settings(), to(place, "2"))
    assert (place.version, place.is_active, place.calls) == ("1", True, [])


@pytest.mark.parametrize("fault", ["migration", "health", "package"])
def test_goes_back_by_itself(place: Place, database: str, fault: str, tmp_path: Path) -> None:
    change(database, user(30, "before"))
    deb = to(place, "2")
    if fault == "migration":
        change(database, "CREATE TABLE of_version_2 (id INTEGER)")
    elif fault == "health":
        (place.path / "sick").write_text("2")
    else:
        tree = place.path / "tree-2"
        (tree / "DEBIAN/preinst").write_text("#!/bin/sh\necho 'no such thing' >&2\nexit 1\n")
        (tree / "DEBIAN/preinst").chmod(0o755)
        place.run("dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), deb.package)
        deb = to(place, "2")
    said: list[str] = []
    outcome = switch.switch(Settings(), deb, said.append)
    expected = {
        "migration": "a migration of",
        "health": "not healthy within",
        "package": "dpkg failed (1)",
    }
    assert not outcome.switched
    assert expected[fault] in outcome.reason
    assert outcome.started
    assert (place.version, place.recorded) == ("1", "1 installed")
    assert ask(database, "SELECT name FROM users WHERE id = 30") == [("before",)]
    assert not note_of.find(os.environ["SVC_STATE_DIR"])
    touched = [line for line in place.calls if line.startswith("1 ")]
    assert touched == ([] if fault == "package" else ["1 admin restore"]), "an untouched database stays"


def test_neither_the_new_nor_the_old_one_is_healthy(place: Place) -> None:
    (place.path / "sick").write_text("1 2")
    outcome = switch.switch(Settings(), to(place, "2"))
    assert (outcome.switched, outcome.started, place.version) == (False, False, "1")
    assert outcome.reason.count("not healthy within") == 2


def test_a_stopped_service_stays_stopped(place: Place) -> None:
    (place.path / "unit-state").write_text("inactive\n")
    assert switch.switch(Settings(), to(place, "2"))[0::2] == (True, False)
    assert not place.is_active


def test_while_apt_is_at_work(place: Place) -> None:
    lock = place.path / "var/lib/dpkg/lock-frontend"
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        with lock.open("w") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            os.write(writing, b"1")
            signal.pause()
    try:
        os.read(reading, 1)
        with pytest.raises(Conflict, match="another program is installing packages"):
            switch.switch(Settings(), to(place, "2"))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        os.close(writing)
    assert not place.calls
    assert switch.switch(Settings(), to(place, "2")).switched


def test_without_room_for_the_way_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "PROGRAM_ROOM", 2**60)
    with pytest.raises(StorageFull, match="the way there and back needs"):
        switch.switch(Settings(), to(place, "2"))
    assert not place.calls


def test_what_cannot_begin_changes_nothing(place: Place, database: str, tmp_path: Path) -> None:
    change(database, user(30, "before"))
    good = to(place, "2")
    other = place.path / "debs/other.deb"
    other.write_text("no package")
    other.chmod(0o600)
    with pytest.raises(FileRefused, match="its digest is not"):
        switch.switch(Settings(), good._replace(sha256="0" * 64))
    with pytest.raises(FileRefused, match="not a Debian package"):
        switch.switch(
            Settings(), good._replace(package=str(other), sha256=hashlib.sha256(b"no package").hexdigest())
        )
    other.chmod(0o666)
    with pytest.raises(FileRefused, match="not a file that only root can change"):
        switch.switch(Settings(), good._replace(package=str(other)))
    (place.path / "usr/lib/svc/python/version").write_text("1 changed")
    with pytest.raises(
        FileRefused, match=r"/usr/lib/svc/python/version is not as the package svc brought it"
    ):
        switch.switch(Settings(), good)
    assert place.is_active
    (place.path / "usr/lib/svc/python/version").write_text("1")
    with hold(database), pytest.raises(DatabaseRefused, match="is in use by svc server"):
        switch.switch(Settings(), good)
    assert (place.version, place.is_active) == ("1", True), "it had been stopped, and runs again"
    assert not note_of.find(os.environ["SVC_STATE_DIR"])
    with pytest.raises(Conflict, match="no switch was interrupted"):
        switch.finish(Settings())


def test_nothing_of_the_program_is_imported_after_the_exchange(
    svc: Svc, place: Place, recovery: Path
) -> None:
    """By then the files of the running program are another version's: the installed one does it itself."""
    assert switch.switch(Settings(), to(place, "2")).switched
    (kept,) = sets(recovery, "upgrade")
    (place.path / "calls").write_text("")
    for sick in ("1", ""):
        (place.path / "sick").write_text(sick)
        code, out, err = by_the_program(place, "rollback", "apply", kept.name, "--yes")
        assert (code, place.version) == ((1, "2") if sick else (0, "1")), err
        assert ("nothing has changed: the service was not healthy" if sick else "switched; what was") in out
    assert [line for line in place.calls if not line.startswith("systemctl")] == [
        "2 admin rollback",
        "prerm 1 upgrade 1",
        "1 admin restore",
        "prerm 1 upgrade 2",
        "2 admin restore",
        "2 admin rollback",
        "prerm 1 upgrade 1",
        "1 admin restore",
    ]


def by_the_program(place: Place, *argv: str) -> tuple[int, str, str]:
    """`svc admin` by the installed program."""
    command = [f"{place.path}/usr/lib/svc/svc", "admin", *argv]
    reply = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PATH": "/usr/bin:/bin"}
    )
    return reply.returncode, reply.stdout, reply.stderr


STEPS = {"rename", "unlink", "fork_exec"}
WHERE = ("svc/admin/backup/", "svc/admin/release/", "notes.py", "atomic_file.py", "subprocess.py")


def run_until(step: int, work: Callable[[], int]) -> int | None:
    """The exit code of `work` in a process that is killed before its `step`-th call; None when it was."""
    pid = os.fork()
    if pid:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return None if code == -signal.SIGKILL else code
    left = step

    def count(frame: FrameType, event: str, function: Any) -> None:
        nonlocal left
        if (
            event == "c_call"
            and getattr(function, "__name__", "") in STEPS
            and any(part in frame.f_code.co_filename for part in WHERE)
        ):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    code = 99
    try:
        sys.setprofile(count)
        code = work()
    finally:
        sys.setprofile(None)
        os._exit(code)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("sick", sample(["", "2"], 1, "a loop of kills, at each step of the way back too"))
def test_killed_at_every_step(svc: Svc, place: Place, database: str, recovery: Path, sick: str) -> None:
    """The old version with the old data or the new one with the new; or the server is told to wait."""
    state = os.environ["SVC_STATE_DIR"]
    (place.path / "sick").write_text(sick)
    change(database, user(30, "before"))
    outcomes = set()
    step = 0
    while True:
        step += 1
        code = run_until(step, lambda: 0 if switch.switch(Settings(), to(place, "2")).switched else 1)
        settled(place)
        note = note_of.find(state)
        if note is None:
            outcomes.add("whole")
        else:
            outcomes.add(f"{note['step']}{' back' if note['back'] else ''}")
            if note["step"] in note_of.UNUSABLE:
                with pytest.raises(DatabaseRefused, match="was interrupted") as raised:
                    require_none(state, database)
                assert raised.value.hint == f"sudo svc admin rollback apply --finish --db {database}"
            assert svc("rollback", "apply", "--finish")[0] in (0, 1)
        assert note_of.find(state) is None
        is_new = place.version == "2"
        assert place.recorded == ("2 installed" if is_new else "1 installed")
        tables = ask(database, "SELECT count(*) FROM sqlite_schema WHERE name = 'of_version_2'")
        assert tables == [(1 if is_new else 0,)], (step, outcomes)
        assert ask(database, "SELECT name FROM users WHERE id = 30") == [("before",)]
        assert place.is_active
        if code is not None:
            assert (code, is_new) == ((1, False) if sick else (0, True))
            break
        if is_new:  # and so on from the old one
            newest = max(sets(recovery, "upgrade"))
            code, out, err = svc("rollback", "apply", newest.name, "--yes")
            assert code == 0, (step, out, err)
    assert step > 20, step
    backs = {"package back", "database back", "start back"} if sick else set()
    assert {"prepared", "package", "database", "start"} | backs <= outcomes, outcomes


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sick", ["", "2", "1 2"])
def test_what_was_written_after_an_interruption_stays(
    svc: Svc, place: Place, database: str, recovery: Path, sick: str
) -> None:
    """Cut off before the start, used for days, then finished: no older database takes its place."""
    state = os.environ["SVC_STATE_DIR"]
    went_back = "1" in sick
    (place.path / "sick").write_text("2" if went_back else "")
    change(database, user(30, "before"))
    switch_until(note_of.START, place, state, back=went_back)
    change(database, user(31, "since"))
    (place.path / "sick").write_text(sick)
    code, out, err = svc("rollback", "apply", "--finish")
    assert ask(database, "SELECT name FROM users WHERE id >= 30") == [("before",), ("since",)]
    assert place.version == ("1" if went_back else "2")
    assert note_of.find(state) is None
    assert code == (1 if sick else 0), (out, err)
    if sick == "2":
        (kept,) = sets(recovery, "upgrade")
        assert f"sudo svc admin rollback apply {kept.name} --db {database})" in err


def test_the_way_out_of_a_failed_way_back_names_the_database(
    place: Place, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings may name another one by the time the command is pasted."""
    (place.path / "sick").write_text("2")
    with monkeypatch.context() as patch:
        patch.setattr(switch.recovery_sets, "require_whole", unreadable)
        with pytest.raises(HostRefused, match="going back failed too") as raised:
            switch.switch(Settings(), to(place, "2"))
    assert raised.value.hint == f"sudo svc admin rollback apply --finish --db {database}"
    assert not switch.finish(Settings()).switched


def unreadable(*_: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def switch_until(step: str, place: Place, state: str, *, back: bool) -> None:
    """Have a switch killed once its note has this step."""
    before = notes.put

    def killed(path: str, note: dict[str, Any]) -> None:
        before(path, note)
        if (note["step"], note["back"]) == (step, back):
            os.kill(os.getpid(), signal.SIGKILL)

    pid = os.fork()
    if pid == 0:
        try:
            notes.put = killed  # type: ignore[assignment]
            switch.switch(Settings(), to(place, "2"))
        finally:
            os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    settled(place)
    note = note_of.find(state)
    assert note is not None
    assert (note["step"], note["back"]) == (step, back)


def settled(place: Place) -> None:
    """Wait for programs that the killed one has left: dpkg completes its work."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        running = [
            pid
            for pid in filter(str.isdecimal, os.listdir("/proc"))
            if str(place.path).encode() in line_of(pid)
        ]
        if not running:
            return
        time.sleep(0.02)


def line_of(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
