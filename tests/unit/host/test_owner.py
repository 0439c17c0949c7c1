from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from svc.db import faults
from svc.db.connect import close_database, open_database
from svc.errors import DatabaseRefused, NameTaken, SvcError
from svc.host.owner import Owner, become, owner_of, run_as

NOBODY = Owner(65534, 65534)
ME = Owner(os.geteuid(), os.getegid())


def refuse() -> None:
    raise NameTaken("taken", hint="svc admin list-users")


def try_to_regain() -> list[object]:
    regained = []
    for regain in (
        lambda: os.setuid(0),
        lambda: os.seteuid(0),
        lambda: os.setgid(0),
        lambda: os.setgroups([0]),
    ):
        try:
            regain()
            regained.append(True)
        except PermissionError:
            regained.append(False)
    return [regained, os.getresuid(), os.getresgid(), os.getgroups(), open("/proc/self/status").read()]


def test_the_work_of_the_owner_cannot_regain_root(needs_root: None) -> None:
    regained, uids, gids, groups, status = run_as(NOBODY, try_to_regain)
    assert regained == [False] * 4
    assert (set(uids), set(gids), groups) == ({65534}, {65534}, [])
    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(lines["CapPrm"], 16) == int(lines["CapEff"], 16) == 0
    assert os.geteuid() == 0


@pytest.mark.parametrize("owner", [ME, NOBODY])
def test_an_error_there_is_the_same_error_here(owner: Owner, needs_root: None) -> None:
    with pytest.raises(NameTaken) as taken:
        run_as(owner, refuse)
    assert (taken.value.message, taken.value.hint) == ("taken", "svc admin list-users")


@pytest.mark.parametrize(
    ("hint", "harmless"),
    [
        ("", True),
        ("sudo svc admin doctor --repair --db /var/lib/svc/data/svc.db", True),
        ("svc admin doctor --repair, then: sudo svc admin migrate   (all passwords must be set again)", True),
        ("stop the service first: sudo systemctl stop svc", True),
        ("stop that process first", True),
        ("install the newer release of svc, or restore a backup of this release", True),
        ("svc env --all", True),
        (faults.RESTORE, True),
        ("use --global instead of root", True),
        ("run it again when that has ended", True),
        ("use the browser, as a superuser", True),
        ("sudo svc admin update check   (again, when the source is there)", True),
        ("sudo svc admin restore /var/lib/svc/data/theirs.db", False),
        ("sudo svc admin migrate --new-secret", False),
        ("sudo chown svc /etc/shadow", False),
        ("sudo svc admin migrate; chmod 4755 /bin/sh", False),
        ("sudo svc admin migrate --db $(reboot)", False),
        ("sudo svc admin migrate\nreboot", False),
        ("sudo svc admin create-user mallory --superuser", False),
        ("svc api PATCH /api/users/mallory --body '{\"superuser\": true}'", False),
        ("install -m 4755 /bin/sh /tmp/sh", False),
        ("restore a backup: svc admin migrate (`reboot`)", False),
    ],
)
def test_a_hint_from_there_is_no_command_of_the_owners_choice(
    hint: str, harmless: bool, needs_root: None
) -> None:
    def refuse_so() -> None:
        raise NameTaken("taken", hint=hint)

    with pytest.raises(NameTaken) as taken:
        run_as(NOBODY, refuse_so)
    assert taken.value.hint == (hint if harmless else "")


@pytest.mark.parametrize(
    "work", [lambda: os._exit(3), lambda: os.kill(os.getpid(), 9), lambda: 1 / 0, lambda: object()]
)
def test_work_that_dies_is_an_error_here(
    work: object, needs_root: None, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SvcError, match="without a result"):
        run_as(NOBODY, work)  # type: ignore[arg-type]


def test_an_answer_is_bounded(needs_root: None, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SvcError, match="without a result"):
        run_as(NOBODY, lambda: "x" * (17 * 1024 * 1024))


def test_ones_own_work_needs_no_other_process() -> None:
    assert run_as(ME, os.getpid) == os.getpid()
    become(ME)


def test_the_owner_is_the_files_then_the_directorys(nobodys: Path) -> None:
    assert owner_of(str(nobodys / "svc.db")) == NOBODY
    (nobodys / "svc.db").touch()
    os.chown(nobodys / "svc.db", 65534, 65534)
    os.chown(nobodys, 0, 0)
    assert owner_of(str(nobodys / "svc.db")) == NOBODY
    assert NOBODY.name == "nobody"
    assert Owner(3999999999, 1).name == "uid 3999999999"


def test_a_stranger_is_told_to_use_sudo(nobodys: Path) -> None:
    def work() -> str:
        try:
            become(Owner(1, 1))
        except DatabaseRefused as error:
            return error.hint
        return "became daemon"

    assert run_as(NOBODY, work) == "sudo svc admin ..."


def test_root_leaves_nothing_of_its_own_behind(nobodys: Path) -> None:
    path = str(nobodys / "svc.db")

    def work() -> list[str]:
        open_database(path, create=True)
        names = os.listdir(nobodys)
        close_database()
        return names

    assert sorted(run_as(NOBODY, work)) == ["svc.db", "svc.db-shm", "svc.db-wal"]
    assert {os.stat(nobodys / name).st_uid for name in os.listdir(nobodys)} == {65534}


def test_a_file_in_somebody_elses_directory_is_refused(tmp_path: Path, needs_root: None) -> None:
    """What SQLite finds beside it (a hot journal names files to delete) would be that somebody's word."""
    path = tmp_path / "theirs" / "svc.db"
    path.parent.mkdir()
    path.touch()
    os.chown(path.parent, 65534, 65534)
    with pytest.raises(DatabaseRefused, match="but its directory to nobody") as refused:
        owner_of(str(path))
    assert refused.value.hint == f"sudo svc admin doctor --repair --db {path}"
    os.chown(path, 65534, 65534)
    assert owner_of(str(path)) == NOBODY


def stop_here() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def answer_and_stop() -> None:
    os.closerange(3, 64)
    os.kill(os.getpid(), signal.SIGSTOP)


@pytest.mark.parametrize("work", [stop_here, answer_and_stop])
def test_who_is_stopped_by_the_owner_is_ended(work: Callable[[], None], needs_root: None) -> None:
    began = time.monotonic()
    with pytest.raises(SvcError, match="ended without a result"):
        run_as(NOBODY, work, 0.3)
    assert time.monotonic() - began < 10


def shout() -> None:
    raise ValueError("\x1b]0;obeyed\x07")


def test_a_trace_obeys_no_terminal(needs_root: None, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SvcError, match="ended without a result"):
        run_as(NOBODY, shout)
    said = capfd.readouterr().err
    assert "obeyed" in said
    assert "\x1b" not in said and "\x07" not in said
