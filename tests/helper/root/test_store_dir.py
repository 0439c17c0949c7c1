"""The directory that root creates for a user's images: whose it is, and what is refused on the way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helper.stage import WS, Stage

from svc_helper.provision import leaving
from svc_helper.provision.verbs import Refusal
from svc_helper.root import store_dir
from svc_helper.root.check import resolve
from svc_helper.root.drop import Account

PARENT = Path("/var/tsh-stores")


@pytest.fixture
def account(uid: dict[str, int]) -> Iterator[Account]:
    found = resolve("tsh-ada")
    assert found is not None
    shutil.rmtree(PARENT, ignore_errors=True)
    yield found
    shutil.rmtree(PARENT, ignore_errors=True)


def ensure(account: Account) -> None:
    """In a child, as root does it; what it raises is raised here."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            store_dir.ensure(f"{PARENT}/deep/%u", account)
        except OSError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with open(reading, encoding="utf-8") as file:
        why = file.read()
    if why:
        raise OSError(why)


def test_it_is_made_for_the_user_and_kept(account: Account) -> None:
    ensure(account)
    path = PARENT / "deep" / account.name
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (account.uid, account.gid, 0o700)
    assert [one.stat().st_uid for one in (PARENT, PARENT / "deep")] == [0, 0]
    assert (PARENT / "deep").stat().st_mode & 0o7777 == 0o755
    (path / "kept").touch()
    ensure(account)
    assert (path / "kept").exists()


def test_an_interrupted_run_is_completed(account: Account) -> None:
    path = PARENT / "deep" / account.name
    path.mkdir(parents=True, mode=0o700)
    ensure(account)
    assert path.stat().st_uid == account.uid


@pytest.mark.parametrize("owner", [0, 1])
def test_another_owners_directory_is_refused_with_the_remedy(account: Account, owner: int) -> None:
    path = PARENT / "deep" / account.name
    path.mkdir(parents=True, mode=0o700)
    (path / "content").touch()
    os.chown(path, owner, owner)
    with pytest.raises(OSError, match=f"{path} belongs to uid {owner}; the remedy: sudo svc admin doctor"):
        ensure(account)
    assert path.stat().st_uid == owner


@pytest.mark.parametrize("place", ["deep", "deep/tsh-ada"])
def test_links_are_not_followed(account: Account, tmp_path: Path, place: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    path = PARENT / place
    path.parent.mkdir(parents=True)
    path.symlink_to(victim)
    with pytest.raises(OSError, match="Not a directory"):
        ensure(account)
    assert (victim.stat().st_uid, os.listdir(victim)) == (0, [])


def test_a_file_in_its_place_is_not_given_away(account: Account) -> None:
    """A second name of a file of root's: the file keeps its owner."""
    path = PARENT / "deep" / account.name
    path.parent.mkdir(parents=True)
    secret = PARENT / "secret"
    secret.write_text("x")
    os.link(secret, path)
    with pytest.raises(OSError, match="Not a directory"):
        ensure(account)
    assert secret.stat().st_uid == 0


@pytest.mark.parametrize("change", [lambda p: os.chmod(p, 0o1777), lambda p: os.chown(p, 1, 0)])
def test_a_parent_that_others_can_write_is_refused(account: Account, change: Callable[[Path], None]) -> None:
    PARENT.mkdir()
    change(PARENT)
    with pytest.raises(OSError, match="others than root can write the directory of"):
        ensure(account)
    assert os.listdir(PARENT) == []


@pytest.fixture
def with_stores(account: Account) -> Iterator[Stage]:
    """A helper with the setting, and tsh-ada's account in its list."""
    created = Stage(store_dir=f"{PARENT}/%u")
    created.enrol(f"{account.name} {account.uid} user")
    yield created
    created.close()


def test_the_agent_is_started_with_it(account: Account, with_stores: Stage) -> None:
    assert with_stores.client("worker").call("ctr.inspect", account.name, WS, rid="r")
    assert (PARENT / account.name).stat().st_uid == account.uid


def test_a_refused_one_stays_as_it_is(account: Account, with_stores: Stage) -> None:
    """The agent is started all the same: it serves what needs no Podman, and says the rest."""
    path = PARENT / account.name
    path.mkdir(parents=True)
    os.chown(path, 1, 1)
    assert with_stores.client("worker").call("ctr.inspect", account.name, WS, rid="r")
    assert path.stat().st_uid == 1


def test_a_removed_account_leaves_no_directory(account: Account) -> None:
    path = PARENT / account.name
    (path / "foreign").mkdir(parents=True)
    with pytest.raises(Refusal, match="remove what is in it, as root"):
        leaving.remove_store(str(path))
    (path / "foreign").rmdir()
    leaving.remove_store(str(path))
    leaving.remove_store(str(path))
    assert not path.exists()
