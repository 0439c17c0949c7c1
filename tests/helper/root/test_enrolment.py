"""The enrolment list: root's alone, name and uid together, in force from the next call on."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from helper.stage import WS, Stage, call, code_of, enrolled, ensure, remove_user
from uids import highest_uid

from svc import errors
from svc_helper.root.enrolment import Enrolment, Entry, read
from svc_helper.wire.protocol import close_all


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


def test_a_list_that_cannot_be_trusted_is_not_built_upon(stage: Stage) -> None:
    (stage.directory / "enrolled").chmod(0o666)
    before = enrolled(stage)
    with pytest.raises(errors.EngineFailed, match="only root may write"):
        stage.client("admin").call("account.mark", "tsh-ada", {"administrator": True}, rid="r")
    assert enrolled(stage) == before


def test_changes_at_once_lose_nobody(stage: Stage) -> None:

    admin = stage.client("admin")
    with ThreadPoolExecutor(6) as pool:
        list(
            pool.map(
                lambda n: admin.call("account.mark", "tsh-ada", {"administrator": n % 2 == 0}, rid="r"),
                range(6),
            )
        )
    assert len(enrolled(stage)) == 3


def test_no_user_can_hold_the_lock(stage: Stage, uid: dict[str, int]) -> None:
    admin = stage.client("admin")
    admin.call("account.mark", "tsh-ada", {"administrator": True}, rid="r")
    held = []
    os.seteuid(uid["tsh-ben"])
    try:
        for path in (stage.directory, *stage.directory.iterdir()):
            with contextlib.suppress(OSError):
                held.append(os.open(path, os.O_RDONLY))
                fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.seteuid(0)
    try:
        assert held
        admin.call("account.mark", "tsh-ada", {"administrator": False}, rid="r", timeout_s=1)
    finally:
        close_all(held)


def test_what_a_killed_writer_left_is_no_obstacle(stage: Stage) -> None:
    """The next process may have its number."""
    for pid in range(stage.process.pid, stage.process.pid + 200):
        (stage.directory / f".enrolled.{pid}").write_text("tsh-mallory 0 administrator\n")
    stage.client("admin").call("account.mark", "tsh-ada", {"administrator": True}, rid="r")
    assert any(line.startswith("tsh-ada ") and line.endswith(" administrator") for line in enrolled(stage))
    assert len(enrolled(stage)) == 3


# --- a uid or a name that was somebody else's ----------------------------------------


@pytest.fixture
def heir() -> Iterator[str]:
    """The name of an account that gets the uid of another, tsh-gone."""
    for name in ("tsh-gone", "tsh-heir"):
        remove_user(name)
    yield "tsh-heir"
    for name in ("tsh-gone", "tsh-heir"):
        remove_user(name)


def bequeath(stage: Stage, name: str, *, used: bool = False) -> int:
    """tsh-gone, an administrator, is removed; an account of this name gets its uid."""
    ensure(stage, "tsh-gone", administrator=True)
    uid = pwd.getpwnam("tsh-gone").pw_uid
    if used:
        result = stage.client("worker").call("ctr.inspect", "tsh-gone", {"id": "ws-self0000"}, rid="r")
        assert result["environment"]["USER"] == "tsh-gone"
    with highest_uid("tsh-above"):
        subprocess.run(["userdel", "--force", "--remove", "tsh-gone"], check=True, capture_output=True)
        subprocess.run(["useradd", "--create-home", "--uid", str(uid), name], check=True)
    return uid


def test_an_heir_of_a_uid_inherits_nothing(stage: Stage, heir: str) -> None:
    uid = bequeath(stage, heir)
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("account.check", heir, {}),
        ("account.check", "tsh-gone", {}),
        ("ctr.inspect", heir, WS),
        ("ctr.inspect", "tsh-gone", WS),
        ("ctr.stop", "tsh-ada", {**WS, "grace_s": 1}),
    ]
    with stage.connection(uid) as (_, accepted):
        for verb, user, args in asked:
            answer = stage.ask("unix", call(verb, user, args), accepted.fileno())
            assert answer is not None
            assert (answer["ok"], answer["code"]) == (False, "refused"), verb


def test_an_entry_of_an_account_that_is_gone_does_not_block_its_heir(stage: Stage, heir: str) -> None:
    uid = bequeath(stage, heir, used=True)
    with pytest.raises(errors.Conflict, match="former account's") as refused:
        ensure(stage, heir)
    subprocess.run(str(refused.value).rpartition("sudo ")[2].split(), check=True)
    ensure(stage, heir)
    subprocess.run(["rm", "-rf", f"/run/user/{uid}.former"], check=True)
    assert [line for line in enrolled(stage) if f" {uid} " in line] == [f"{heir} {uid} user"]
    assert len(enrolled(stage)) == 4
    (line,) = [line for line in stage.log() if "is dropped" in line["message"]]
    assert (line["user"], line["uid"]) == ("tsh-gone", uid)
    result = stage.client("worker").call("ctr.inspect", heir, {"id": "ws-self0000"}, rid="r")
    assert result["environment"]["HOME"] == f"/home/{heir}"  # not the agent that served the one before
    with stage.connection(uid) as (_, accepted):
        answer = stage.ask("unix", call("ctr.stop", "tsh-ada", {**WS, "grace_s": 1}), accepted.fileno())
    assert answer is not None
    assert answer["code"] == "refused"


def is_free(uid: int) -> bool:
    """Whether there is no account of this uid, and nothing of a former one."""
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid) is None
    return not Path(f"/run/user/{uid}").exists()


def test_a_name_made_again_is_enrolled_anew_by_ensure_alone(stage: Stage, heir: str) -> None:
    ensure(stage, heir)
    before = pwd.getpwnam(heir).pw_uid
    uid = next(uid for uid in range(before + 7, 60000) if is_free(uid))
    subprocess.run(["userdel", "--force", "--remove", heir], check=True, capture_output=True)
    subprocess.run(["useradd", "--create-home", "--uid", str(uid), heir], check=True)
    assert code_of(stage, heir) == "refused"
    stage.client("admin").call("account.mark", heir, {"administrator": True}, rid="r")
    assert f"{heir} {before} administrator" in enrolled(stage)
    assert code_of(stage, heir) == "refused"
    ensure(stage, heir)
    assert [line for line in enrolled(stage) if line.startswith(heir)] == [f"{heir} {uid} user"]
    assert code_of(stage, heir) == "ok"
