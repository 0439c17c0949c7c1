"""The host decides, every few seconds anew, whether an enrolled account may be acted for."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helper.conftest import PAM_FILE
from helper.stage import WS, Stage, code_of, remove_user

from svc import errors
from svc_helper import check


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


def test_a_slow_check_holds_up_its_own_user_only(uid: dict[str, int], slow_pam: str) -> None:
    stage = Stage(pam_service=slow_pam)
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    doors = [stage.client("worker"), stage.client("tcp")]  # together more than the helper lets wait
    with ThreadPoolExecutor(20) as pool:
        waiting = [
            pool.submit(doors[n % 2].call, "ctr.inspect", "tsh-ada", WS, rid=f"r-{n}") for n in range(20)
        ]
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
