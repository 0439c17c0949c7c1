"""/run/user/UID without logind: made for one name, replaced when its uid has another."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from helper.stage import WS, Stage

from svc_helper.root import runtime_dir
from svc_helper.root.check import resolve
from svc_helper.root.drop import Account

Directory = tuple[Account, Path, Path]


@pytest.fixture
def directory(uid: dict[str, int]) -> Iterator[Directory]:
    """ada's account, her directory, which is not there yet, and its record."""
    account = resolve("tsh-ada")
    assert account is not None
    path, record = Path(account.runtime_dir), Path(f"/run/user/.svc-{account.uid}")
    shutil.rmtree(path, ignore_errors=True)
    yield account, path, record
    for left in (path, *aside(account)):
        shutil.rmtree(left, ignore_errors=True)
    record.unlink(missing_ok=True)


def aside(account: Account) -> list[Path]:
    """What was put out of reach."""
    return list(Path("/run/user").glob(f".svc-{account.uid}-*"))


def leave(path: Path, owner: int) -> Path:
    """A hook that somebody left there."""
    hook = path / "svc" / "hooks" / "evil.json"
    hook.parent.mkdir(parents=True)
    hook.write_text("{}")
    for one in (path, path / "svc", path / "svc/hooks", hook):
        os.chown(one, owner, owner)
    return hook


def test_one_is_made_for_a_name_and_kept(directory: Directory) -> None:
    account, path, record = directory
    runtime_dir.ensure(account)
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (account.uid, account.gid, 0o700)
    assert record.read_text() == f"{account.name} {found.st_ino}\n"
    assert (record.stat().st_uid, record.stat().st_mode & 0o7777) == (0, 0o600)
    hook = leave(path, account.uid)
    runtime_dir.ensure(account)
    assert hook.exists()
    assert aside(account) == []


@pytest.mark.parametrize("former", ["recorded", "unknown", "of another uid", "recorded and exchanged"])
def test_the_next_owner_of_a_uid_gets_a_new_one(directory: Directory, former: str) -> None:
    account, path, record = directory
    runtime_dir.ensure(account._replace(name="tsh-former"))
    leave(path, 12345 if former == "of another uid" else account.uid)
    if former in ("unknown", "of another uid"):
        record.unlink()
    if former == "recorded and exchanged":  # the record is of the account, but of a directory before
        record.write_text(f"{account.name} {path.stat().st_ino + 1}\n")
    runtime_dir.ensure(account)
    assert os.listdir(path) == []
    (left,) = aside(account)
    assert (left.stat().st_uid, left.stat().st_mode & 0o7777) == (0, 0o700)
    assert (left / "svc/hooks/evil.json").exists()
    assert runtime_dir.belongs_to(account)


def test_a_link_in_its_place_is_not_followed(directory: Directory) -> None:
    account, path, _ = directory
    path.symlink_to("/root")
    before = os.stat("/root")
    try:
        with pytest.raises(OSError, match=r"Not a directory|Too many"):
            runtime_dir.ensure(account)
        assert os.stat("/root") == before
    finally:
        path.unlink()


def test_logind_says_whose_it_is(
    directory: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, path, record = directory
    monkeypatch.setattr(runtime_dir, "LOGIND", str(tmp_path))
    runtime_dir.ensure(account)
    record.unlink()
    said = tmp_path / str(account.uid)
    for name, theirs in (("tsh-ad", False), ("tsh-former", False), (account.name, True)):
        said.write_text(f"# This is private data. Do not parse.\nNAME={name}\nSTATE=active\n")
        assert runtime_dir.belongs_to(account) is theirs, name
    path.rmdir()


def test_an_agent_starts_in_one_of_its_own(stage: Stage, directory: Directory) -> None:
    account, path, _ = directory
    runtime_dir.ensure(account._replace(name="tsh-former"))
    hook = leave(path, account.uid)
    stage.client("worker").call("ctr.inspect", account.name, WS, rid="r")
    assert not hook.exists()
    assert any("set aside" in line["message"] for line in stage.log())
