from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.db.connect import close_database, open_database
from svc.db.owner import Owner, become, owner_of, run_as
from svc.errors import DatabaseRefused, NameTaken, SvcError

NOBODY = Owner(65534, 65534)
ME = Owner(os.geteuid(), os.getegid())


def refuse() -> None:
    raise NameTaken("taken", hint="another")


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
    assert (taken.value.message, taken.value.hint) == ("taken", "another")


@pytest.mark.parametrize(
    "work", [lambda: os._exit(3), lambda: os.kill(os.getpid(), 9), lambda: 1 / 0, lambda: object()]
)
def test_work_that_dies_is_an_error_here(
    work: object, needs_root: None, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SvcError, match="without an answer"):
        run_as(NOBODY, work)  # type: ignore[arg-type]


def test_an_answer_is_bounded(needs_root: None, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SvcError, match="without an answer"):
        run_as(NOBODY, lambda: "x" * (2 * 1024 * 1024))


def test_ones_own_work_needs_no_other_process() -> None:
    assert run_as(ME, os.getpid) == os.getpid()
    become(ME)


def test_the_owner_is_the_files_then_the_directorys(nobodys: Path) -> None:
    assert owner_of(str(nobodys / "svc.db")) == NOBODY
    (nobodys / "svc.db").touch()
    assert owner_of(str(nobodys / "svc.db")).uid == 0
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
