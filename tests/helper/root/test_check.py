"""The host decides, every few seconds anew, whether an enrolled account may be acted for."""

from __future__ import annotations

import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helper.conftest import PAM_FILE
from helper.stage import WS, Stage, call, code_of, remove_user
from uids import highest_uid

from svc import errors
from svc_helper.root import check


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
        stage.client("tls").call("ctr.inspect", "tsh-old", WS, rid="r")


@pytest.mark.parametrize("pair", ["tls", "worker"])
@pytest.mark.parametrize(("verb", "more"), [("ctr.stop", {"grace_s": 0}), ("ctr.remove", {})])
def test_what_an_expired_account_left_running_can_be_ended(
    shared: Stage, pair: str, verb: str, more: dict[str, int]
) -> None:
    answer = shared.ask(pair, call(verb, "tsh-old", {**WS, **more}), wait_s=15)
    assert answer is not None and answer["ok"], answer
    started = shared.ask(pair, call("ctr.start", "tsh-old", {**WS, "network": None}), wait_s=15)
    assert started is not None
    assert started["code"] == "account", "nothing else, nor with the same agent"


def test_an_administrator_ends_what_an_expired_account_left_running(
    shared: Stage, uid: dict[str, int]
) -> None:
    with shared.connection(uid["tsh-ben"]) as (_, accepted):
        message = call("ctr.stop", "tsh-old", {**WS, "grace_s": 0})
        answer = shared.ask("unix", message, accepted.fileno(), wait_s=15)
    assert answer is not None and answer["ok"], answer
    with shared.connection(uid["tsh-ada"]) as (_, accepted):
        answer = shared.ask("unix", message, accepted.fileno(), wait_s=15)
    assert answer is not None
    assert answer["code"] == "refused"


def test_an_account_expires_under_a_running_agent(stage: Stage) -> None:
    assert code_of(stage, "tsh-ada") == "ok"
    subprocess.run(["usermod", "--expiredate", "1", "tsh-ada"], check=True)
    try:
        time.sleep(check.ACCOUNT_CHECK_S + 0.2)
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
        with highest_uid("tsh-above"):
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
    pairs = [stage.client("worker"), stage.client("tls")]  # together more than the helper lets wait
    with ThreadPoolExecutor(20) as pool:
        waiting = [
            pool.submit(pairs[n % 2].call, "ctr.inspect", "tsh-ada", WS, rid=f"r-{n}") for n in range(20)
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


# --- account.check: what the app asks before it serves anybody --------------------------


@pytest.fixture
def guests() -> Iterator[list[str]]:
    """Ordinary accounts that the test may spoil."""
    names = ["tsh-guest1", "tsh-guest2"]
    for name in names:
        remove_user(name)
        subprocess.run(["useradd", "--create-home", name], check=True)
    yield names
    for name in names:
        remove_user(name)


@pytest.fixture
def own_pam() -> Iterator[tuple[str, Path, Path]]:
    """The packaged PAM service with a nologin file of its own, and a line in a file for each check."""
    directory = Path(tempfile.mkdtemp(prefix="tsh-", dir="/run"))
    nologin, count, script = (directory / name for name in ("nologin", "count", "count.sh"))
    script.write_text(f"#!/bin/sh\necho >> {count}\n")
    script.chmod(0o755)
    count.touch()
    path = Path("/etc/pam.d/tsh-own")
    text = PAM_FILE.read_text().replace("pam_nologin.so", f"pam_nologin.so file={nologin}")
    path.write_text(f"{text}account required pam_exec.so quiet {script}\n")
    yield path.name, nologin, count
    path.unlink()
    shutil.rmtree(directory)


def account_status(stage: Stage, user: str, pair: str = "tls") -> tuple[str, float]:
    """The code of account.check's answer, and for how many seconds it says that this holds."""
    answer = stage.ask(pair, call("account.check", user, {}), wait_s=15)
    assert answer is not None
    if not answer["ok"]:
        return str(answer["code"]), 0.0
    assert set(answer["data"]) == {"good_for_ms"}
    assert type(answer["data"]["good_for_ms"]) is int
    return "ok", answer["data"]["good_for_ms"] / 1000


def require_refused_in_time(stage: Stage, *users: str) -> None:
    """Ask without end: each user is refused for good from five seconds on, and was promised no more."""
    begun, refused = time.monotonic(), set()
    while len(refused) < len(users):
        for user in users:
            created = time.monotonic() - begun
            code, good_for_s = account_status(stage, user)
            if code == "account":
                refused.add(user)
                continue
            assert user not in refused and created <= check.ACCOUNT_CHECK_S
            assert created + good_for_s <= check.ACCOUNT_CHECK_S + 0.01, (
                "an answer promised what was over already"
            )
        time.sleep(0.02)


def test_an_expired_account_is_out_within_five_seconds(stage: Stage, guests: list[str]) -> None:
    """Also through the pair of sessions and tokens, whose calls carry no proof."""
    stage.enrol(*(f"{name} {pwd.getpwnam(name).pw_uid} user" for name in guests))
    assert [account_status(stage, name)[0] for name in guests] == ["ok", "ok"]
    today = time.strftime("%Y-%m-%d", time.gmtime())
    subprocess.run(["chage", "--expiredate", "1", guests[0]], check=True)
    subprocess.run(["usermod", "--expiredate", today, guests[1]], check=True)
    require_refused_in_time(stage, *guests)


def test_nologin_shuts_everybody_out_within_five_seconds(
    uid: dict[str, int], own_pam: tuple[str, Path, Path]
) -> None:
    service, nologin, _ = own_pam
    stage = Stage(pam_service=service)
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    assert account_status(stage, "tsh-ada")[0] == "ok"
    nologin.write_text("the host is going down\n")
    require_refused_in_time(stage, "tsh-ada")
    stage.close()


def test_many_calls_ask_the_host_once_in_five_seconds(
    uid: dict[str, int], own_pam: tuple[str, Path, Path]
) -> None:
    service, _, count = own_pam
    stage = Stage(pam_service=service)
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    begun = time.monotonic()
    for number in range(1100):  # 200 a second
        assert account_status(stage, "tsh-ada")[0] == "ok"
        time.sleep(max(0.0, begun + number / 200 - time.monotonic()))
    took = time.monotonic() - begun
    assert took >= check.ACCOUNT_CHECK_S
    assert 2 <= count.stat().st_size <= 1 + took / check.ACCOUNT_CHECK_S
    stage.close()


def test_a_slow_answer_is_good_for_what_is_left_of_it(uid: dict[str, int], slow_pam: str) -> None:
    """PAM may have looked long before it answered."""
    stage = Stage(pam_service=slow_pam)
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    code, good_for_s = account_status(stage, "tsh-ada")
    assert code == "ok"
    assert good_for_s <= check.ACCOUNT_CHECK_S - 1
    stage.close()


def test_who_is_not_enrolled_or_no_person_is_refused(shared: Stage, uid: dict[str, int]) -> None:
    assert account_status(shared, "tsh-ada")[0] == "ok"
    assert account_status(shared, "tsh-old")[0] == "account"
    for user in ("root", "nobody", "svc", "daemon", "no-such-account"):
        assert account_status(shared, user) == ("refused", 0.0)


def test_root_is_never_checked_even_when_it_is_on_the_list(stage: Stage, uid: dict[str, int]) -> None:
    stage.enrol("root 0 user", f"root {uid['tsh-ada']} administrator", "daemon 1 user")
    with stage.connection(0) as (_, accepted):
        for user in ("root", "daemon", "tsh-ada"):
            answer = stage.ask("unix", call("account.check", user, {}), accepted.fileno())
            assert answer is not None
            assert answer["code"] == "refused"
            assert account_status(stage, user)[0] == "refused"


@pytest.mark.parametrize("pair", ["worker", "admin"])
def test_the_pairs_that_serve_nobody_have_no_check(shared: Stage, pair: str) -> None:
    assert account_status(shared, "tsh-ada", pair)[0] == "protocol"


def test_proof_belongs_to_the_unix_pair_alone(shared: Stage, uid: dict[str, int]) -> None:
    assert account_status(shared, "tsh-ada", "unix")[0] == "protocol"  # none came along
    with shared.connection(uid["tsh-ada"]) as (client, accepted):
        for pair, fd, code in (("tls", accepted, "protocol"), ("unix", client, "refused")):
            answer = shared.ask(pair, call("account.check", "tsh-ada", {}), fd.fileno())
            assert answer is not None
            assert answer["code"] == code
        assert shared.client("unix").call("account.check", "tsh-ada", {}, rid="r", peer=accepted)


def test_what_the_app_makes_of_it(shared: Stage) -> None:
    tcp = shared.client("tls")
    assert 0 < tcp.call("account.check", "tsh-ada", {}, rid="r")["good_for_ms"] <= 5000
    with pytest.raises(errors.AccountDisabled):
        tcp.call("account.check", "tsh-old", {}, rid="r")
    with pytest.raises(errors.AccountIncomplete):
        tcp.call("account.check", "tsh-none", {}, rid="r")
