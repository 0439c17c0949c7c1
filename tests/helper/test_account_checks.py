"""The host decides, every few seconds anew, whether an enrolled account may be acted for."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helper.conftest import PAM_FILE
from helper.stage import WS, Stage, call, remove_user

from svc import errors
from svc_helper import check, pam
from svc_helper.children import Children
from svc_helper.enrolment import Enrolment, Entry, read


def code_of(stage: Stage, user: str) -> str:
    """The code of the answer, or ok."""
    answer = stage.ask("worker", call("ctr.inspect", user, WS), wait_s=15)
    assert answer is not None
    return "ok" if answer["ok"] else str(answer["code"])


@pytest.fixture
def slow_pam() -> Iterator[str]:
    """A PAM service that takes its time."""
    path = Path("/etc/pam.d/tsh-slow")
    path.write_text(PAM_FILE.read_text() + "account required pam_exec.so quiet /bin/sleep 1\n")
    yield path.name
    path.unlink()


def test_an_expired_account_is_refused(stage: Stage) -> None:
    assert code_of(stage, "tsh-old") == "account"
    with pytest.raises(errors.AccountDisabled):
        stage.client("tcp").call("ctr.inspect", "tsh-old", WS, rid="r")


def test_an_account_expires_under_a_running_agent(stage: Stage) -> None:
    assert code_of(stage, "tsh-ada") == "ok"
    subprocess.run(["usermod", "--expiredate", "1", "tsh-ada"], check=True)
    try:
        time.sleep(check.FRESH_S + 0.2)
        assert code_of(stage, "tsh-ada") == "account"
    finally:
        subprocess.run(["usermod", "--expiredate", "", "tsh-ada"], check=True)


def test_the_shadow_file_counts_where_pam_does_not_look() -> None:
    assert pam.expired("tsh-old")
    assert not pam.expired("tsh-ada")
    assert not pam.expired("no-such-account")


def test_without_a_pam_service_nobody_is_served(uid: dict[str, int]) -> None:
    stage = Stage(pam_service="tsh-none")
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    assert [code_of(stage, "tsh-ada") for _ in range(3)] == ["account"] * 3
    assert len([line for line in stage.log() if "nobody is served" in line["message"]]) == 1
    stage.close()


@pytest.mark.parametrize("lines", [
    ["root 0 user"],
    ["tsh-ada 0 user"],
    ["daemon 1 user"],
    ["nobody 65534 user"],
    ["tsh-ada 54321 user"],
    ["no-such-account 1001 user"],
    ["tsh-ada user"],
    ["tsh-ada {ada}"],
    ["tsh-ada {ada} root"],
    [" tsh-ada {ada} user"],
    ["tsh-ada  {ada} user"],
    ["TSH-ADA {ada} user"],
    ["tsh-ben {ada} user"],
])  # fmt: skip
def test_an_entry_that_is_no_ordinary_account(stage: Stage, uid: dict[str, int], lines: list[str]) -> None:
    stage.enrol(*(line.format(ada=uid["tsh-ada"]) for line in lines))
    for user in ("tsh-ada", "tsh-ben", "root", "daemon", "nobody", "no-such-account"):
        assert code_of(stage, user) == "refused"


def test_a_uid_given_to_somebody_else(stage: Stage, uid: dict[str, int]) -> None:
    subprocess.run(["useradd", "tsh-gone"], check=True)
    entry = subprocess.run(
        ["id", "-u", "tsh-gone"], check=True, capture_output=True, text=True
    ).stdout.strip()
    try:
        stage.enrol(f"tsh-gone {entry} user")
        assert check.resolve("tsh-gone") is not None
        subprocess.run(["userdel", "tsh-gone"], check=True)
        subprocess.run(["useradd", "--uid", entry, "tsh-new"], check=True)
        assert code_of(stage, "tsh-gone") == "refused"
        assert code_of(stage, "tsh-new") == "refused"
    finally:
        remove_user("tsh-gone")
        remove_user("tsh-new")


@pytest.mark.parametrize(
    "change", ["group may write", "others may write", "not root's", "a link", "a directory"]
)
def test_an_enrolment_list_that_is_not_roots_alone(stage: Stage, change: str) -> None:
    path = stage.directory / "enrolled"
    if change == "not root's":
        os.chown(path, 65534, 0)
    elif change == "a link":
        path.rename(stage.directory / "elsewhere")
        path.symlink_to("elsewhere")
    elif change == "a directory":
        path.unlink()
        path.mkdir()
    else:
        path.chmod(0o664 if change == "group may write" else 0o646)
    os.utime(path, follow_symlinks=False)
    assert code_of(stage, "tsh-ada") == "refused"
    assert any(
        line["level"] == "critical" and "nobody is enrolled" in line["message"] for line in stage.log()
    )


def test_enrolment_counts_from_the_next_call_on(stage: Stage, uid: dict[str, int]) -> None:
    assert code_of(stage, "tsh-ada") == "ok"
    stage.enrol(f"tsh-ben {uid['tsh-ben']} user")
    assert code_of(stage, "tsh-ada") == "refused"
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    assert code_of(stage, "tsh-ada") == "ok"
    (stage.directory / "enrolled").unlink()
    assert code_of(stage, "tsh-ada") == "refused"


def test_reading_the_list(tmp_path: Path) -> None:
    assert read(str(tmp_path / "enrolled")) == []
    (tmp_path / "enrolled").write_text("ada 1001 user\nben 1002 administrator\n\nx\n")
    assert read(str(tmp_path / "enrolled")) == [Entry("ada", 1001, False), Entry("ben", 1002, True)]
    enrolment = Enrolment(str(tmp_path))
    assert enrolment.find_administrator(1002) == Entry("ben", 1002, True)
    assert enrolment.find_administrator(1001) is None


def test_a_slow_check_holds_up_its_own_user_only(uid: dict[str, int], slow_pam: str) -> None:
    stage = Stage(pam_service=slow_pam)
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    helper = stage.client("worker")
    with ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(helper.call, "ctr.inspect", "tsh-ada", WS, rid=f"r-{n}") for n in range(20)]
        time.sleep(0.3)
        started = time.monotonic()
        stage.ping()
        assert code_of(stage, "tsh-ben") == "refused"
        assert time.monotonic() - started < 0.5
        outcomes = [future.exception() for future in waiting]
    refused = [outcome for outcome in outcomes if outcome is not None]
    assert len(refused) == 20 - check.WAITING_PER_ACCOUNT
    assert all(isinstance(outcome, errors.EngineUnavailable) for outcome in refused)
    checks = [line for line in stage.log() if line["message"] == "call" and line["outcome"] == "sent"]
    assert len(checks) == check.WAITING_PER_ACCOUNT
    stage.close()


def test_a_verdict_serves_for_some_seconds(stage: Stage) -> None:
    assert code_of(stage, "tsh-ada") == "ok"
    subprocess.run(["usermod", "--expiredate", "1", "tsh-ada"], check=True)
    try:
        assert code_of(stage, "tsh-ada") == "ok"
    finally:
        subprocess.run(["usermod", "--expiredate", "", "tsh-ada"], check=True)


def test_a_check_that_hangs_is_killed() -> None:
    poll = select.poll()
    children = Children(poll)
    ended: list[int] = []
    children.fork(lambda: time.sleep(30), ended.append, deadline_s=1)
    pid = next(iter(children.running.values())).pid
    deadline = children.next_deadline()
    assert deadline is not None
    time.sleep(max(0, deadline - time.monotonic()))
    children.kill_late()
    (pidfd, _), *_ = poll.poll(2000)
    children.reap(pidfd)
    assert ended and ended[0] < 0
    assert not os.path.exists(f"/proc/{pid}")
    assert children.next_deadline() is None


def test_a_child_holds_none_of_the_helpers_descriptors(tmp_path: Path) -> None:
    poll = select.poll()
    children = Children(poll)
    secret = os.open("/etc/shadow", os.O_RDONLY)
    said, keep = os.pipe()
    children.fork(
        lambda: os.write(keep, " ".join(os.listdir("/proc/self/fd")).encode()) and None, print, keep=[keep]
    )
    (pidfd, _), *_ = poll.poll(2000)
    children.reap(pidfd)
    held = {int(fd) for fd in os.read(said, 4096).split()}
    assert keep in held
    assert secret not in held
    assert len(held - {0, 1, 2, keep}) == 1  # the directory that it looked in
    for fd in (secret, said, keep):
        os.close(fd)
