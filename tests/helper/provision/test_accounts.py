"""Provisioning by the root verbs: every step may be repeated, and what is there already is adopted."""

from __future__ import annotations

import errno
import os
import pwd
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helper.stage import RESIDENT, WS, Stage, command_lines, enrolled, ensure, remove_user, user_exists

from svc import errors
from svc_helper.provision import accounts, subids
from svc_helper.root.agents import Host, read_only_roots, resolve_roots
from svc_helper.root.drop import Account

NEW = "tsh-new"


@pytest.fixture
def new_user() -> Iterator[str]:
    """The name of an account that is not there yet."""
    remove_user(NEW)
    yield NEW
    remove_user(NEW)


def counts(kind: str, name: str) -> list[int]:
    """How many subordinate ids each line of the account gives it."""
    return [span.end - span.first for span in subids.read(kind) if span.owner == name]


def test_a_new_account_is_whole(stage: Stage, new_user: str) -> None:
    data = ensure(stage, new_user)
    found = pwd.getpwnam(new_user)
    assert data == {"name": new_user, "uid": found.pw_uid, "home": f"/home/{new_user}", "created": True}
    assert found.pw_shell == "/bin/bash"
    shadow = next(
        line for line in Path("/etc/shadow").read_text().splitlines() if line.startswith(f"{new_user}:")
    )
    assert shadow.split(":")[1].startswith("!")
    for kind in ("uid", "gid"):
        assert counts(kind, new_user) == [65536]
    for path in (found.pw_dir + "/work", found.pw_dir + "/.config/containers/storage.conf"):
        assert os.stat(path).st_uid == found.pw_uid
    assert 'driver = "overlay"' in Path(found.pw_dir, ".config/containers/storage.conf").read_text()
    assert f"{new_user} {found.pw_uid} user" in enrolled(stage)
    assert len(enrolled(stage)) == 4  # nobody else lost
    status = os.stat(stage.directory / "enrolled")
    assert (status.st_uid, status.st_mode & 0o777) == (0, 0o644)
    assert not [name for name in os.listdir(stage.directory) if name.startswith(".")]
    assert stage.client("worker").call("ctr.inspect", new_user, WS, rid="r")
    assert not any(b"podman" in command and new_user.encode() in command for command in command_lines())


def test_once_more_changes_nothing(stage: Stage, new_user: str) -> None:
    ensure(stage, new_user)
    before = [Path(f"/etc/{name}").read_bytes() for name in ("passwd", "subuid", "subgid")]
    again = ensure(stage, new_user)
    assert again["created"] is False
    assert [Path(f"/etc/{name}").read_bytes() for name in ("passwd", "subuid", "subgid")] == before


def test_an_existing_account_is_adopted(stage: Stage, new_user: str) -> None:
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", new_user], check=True)
    for kind in ("uid", "gid"):
        for span in [span for span in subids.read(kind) if span.owner == new_user]:
            ids = f"{span.first}-{span.end - 1}"
            subprocess.run(["usermod", f"--del-sub{kind}s", ids, new_user], check=True)
    home = Path(f"/home/{new_user}")
    conf = home / ".config/containers/storage.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("# mine\n")
    subprocess.run(["chown", "-R", f"{new_user}:{new_user}", str(home)], check=True)
    assert ensure(stage, new_user, administrator=True)["created"] is False
    assert conf.read_text() == "# mine\n"
    assert pwd.getpwnam(new_user).pw_shell == "/bin/sh"
    assert f"{new_user} {pwd.getpwnam(new_user).pw_uid} administrator" in enrolled(stage)
    for kind in ("uid", "gid"):
        assert counts(kind, new_user) == [65536]


def test_a_podman_in_use_keeps_its_storage(stage: Stage, new_user: str) -> None:
    subprocess.run(["useradd", "--create-home", new_user], check=True)
    store = Path(f"/home/{new_user}/.local/share/containers/storage")
    store.mkdir(parents=True)
    subprocess.run(["chown", "-R", new_user, f"/home/{new_user}"], check=True)
    ensure(stage, new_user)
    assert not os.path.exists(f"/home/{new_user}/.config/containers/storage.conf")


@pytest.mark.parametrize("name", ["root", "daemon", "nobody", "svc"])
def test_system_accounts_are_never_provisioned(stage: Stage, name: str) -> None:
    try:
        pwd.getpwnam(name)
    except KeyError:
        pytest.skip(f"no account {name} here")
    admin = stage.client("admin")
    for verb, args in (
        ("ensure", {"administrator": True}),
        ("mark", {"administrator": True}),
        ("forget", {}),
    ):
        with pytest.raises(errors.HostRefused, match="is a system account"):
            admin.call(f"account.{verb}", name, args, rid="r")
    assert not any(line.startswith(name + " ") for line in enrolled(stage))


def test_what_a_former_owner_of_the_uid_left_is_refused(stage: Stage, new_user: str) -> None:
    subprocess.run(["useradd", "--create-home", new_user], check=True)
    uid = pwd.getpwnam(new_user).pw_uid
    left, former = Path(f"/run/user/{uid}"), Path(f"/run/user/{uid}.former")
    left.mkdir()
    os.chown(left, uid, uid)
    try:
        with pytest.raises(errors.Conflict, match=r"^runtime directory: .*former") as refused:
            ensure(stage, new_user)
        assert len(enrolled(stage)) == 3
        subprocess.run(str(refused.value).rpartition("sudo ")[2].split(), check=True)
        ensure(stage, new_user)
        left.mkdir()  # once enrolled, the helper looks at it
        os.chown(left, uid, uid)
        ensure(stage, new_user)
    finally:
        former.rmdir()


def test_a_home_that_its_owner_cannot_write(stage: Stage, new_user: str) -> None:
    subprocess.run(["useradd", "--create-home", new_user], check=True)
    os.chown(f"/home/{new_user}", 0, 0)
    with pytest.raises(errors.EngineFailed, match=r"^file roots and storage driver: .*cannot write"):
        ensure(stage, new_user)
    assert len(enrolled(stage)) == 3  # the enrolment comes last


def test_a_link_in_a_home_leads_root_nowhere(stage: Stage, new_user: str) -> None:
    subprocess.run(["useradd", "--create-home", new_user], check=True)
    target = stage.directory / "roots-own"
    target.mkdir(mode=0o755)
    for name in ("work", ".config"):
        os.symlink(target, f"/home/{new_user}/{name}")
    with pytest.raises(errors.EngineFailed):
        ensure(stage, new_user)
    assert list(target.iterdir()) == []


def test_roots_by_their_patterns() -> None:
    patterns = {"work": "%h/work", "more": "%h/more/%u", "models": "/srv/models/%u:ro"}
    account = Account("ada", 4242, 4242, "/home/x/ada")
    assert resolve_roots(patterns, account) == {
        "work": "/home/x/ada/work",
        "more": "/home/x/ada/more/ada",
        "models": "/srv/models/ada",
    }
    assert read_only_roots(patterns) == ["models"]


def test_a_read_only_root_is_the_administrators(stage: Stage, new_user: str) -> None:
    """It is not made with the account, which needs no right to it."""
    ensure(stage, new_user)
    there, missing = stage.directory / "models", stage.directory / "none"
    there.mkdir()
    for pattern, refused in ((f"{there}:ro", False), (f"{missing}:ro", False), (f"{missing}", True)):
        host = Host(
            str(stage.directory), {"work": "%h/work", "more": "%h/more", "models": pattern}, False, False, []
        )
        making = accounts.Request(host, new_user, False, {})
        if refused:
            with pytest.raises(accounts.Refusal, match=r"cannot write .*: Permission denied"):
                accounts.create_files(making)
        else:
            accounts.create_files(making)
            assert Path(f"/home/{new_user}/more").is_dir()
    assert not missing.exists()


def test_two_names_of_one_uid(stage: Stage, uid: dict[str, int], new_user: str) -> None:
    subprocess.run(
        ["useradd", "--create-home", "--non-unique", "--uid", str(uid["tsh-ada"]), new_user], check=True
    )
    try:
        with pytest.raises(errors.Conflict, match="is enrolled as tsh-ada"):
            ensure(stage, new_user)
    finally:  # not remove_user(): the uid's processes and directories are ada's
        subprocess.run(["userdel", "--force", "--remove", new_user], check=False, capture_output=True)


def test_a_refusal_names_its_step(stage: Stage, new_user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_making: accounts.Request) -> None:
        raise accounts.Refusal("conflict", "do this")

    def fail(_making: accounts.Request) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    host = Host(str(stage.directory), {}, False, False, [])
    for do, code, arguments in (
        (refuse, "conflict", "do this"),
        (fail, "storage_full", "No space"),
    ):
        monkeypatch.setattr(accounts, "STEPS", (("the third step", do),))
        with pytest.raises(accounts.Refusal, match=rf"^the third step: {arguments}") as caught:
            accounts.ensure(host, new_user, False)
        assert caught.value.code == code
    assert len(enrolled(stage)) == 3


def test_the_protocol_page_has_the_steps_in_their_order() -> None:
    page = (Path(__file__).parents[3] / "docs/helper-protocol.md").read_text()
    rows = re.findall(
        r"^\| ([A-Za-z, ]+) \|.*\|.*\|$", page.partition("## Making an account")[2], re.MULTILINE
    )
    named = [name for row in rows[1:] for name in row.split(", ")]
    assert named[: len(accounts.STEPS)] == [name for name, _ in accounts.STEPS]


def test_marking_and_forgetting(stage: Stage, uid: dict[str, int]) -> None:
    admin = stage.client("admin")
    admin.call("account.mark", "tsh-ada", {"administrator": True}, rid="r")
    assert f"tsh-ada {uid['tsh-ada']} administrator" in enrolled(stage)
    admin.call("account.mark", "tsh-ada", {"administrator": False}, rid="r")
    assert f"tsh-ada {uid['tsh-ada']} user" in enrolled(stage)
    assert admin.call("account.forget", "tsh-ada", {}, rid="r") == {"name": "tsh-ada", "was_enrolled": True}
    assert admin.call("account.forget", "tsh-ada", {}, rid="r") == {"name": "tsh-ada", "was_enrolled": False}
    with pytest.raises(errors.NotFound, match="is not enrolled"):
        admin.call("account.mark", "tsh-ada", {"administrator": True}, rid="r")
    with pytest.raises(errors.NotFound):
        stage.client("worker").call("ctr.inspect", "tsh-ada", WS, rid="r")
    assert pwd.getpwnam("tsh-ada")  # the Linux account stays


def test_the_resident_helper_provisions_nobody(uid: dict[str, int], new_user: str) -> None:
    """It does not even load the code; a pair `admin` alone does not open the verbs."""
    stage = Stage(pairs=("admin", "worker"), program=RESIDENT)
    try:
        with pytest.raises(errors.SvcError, match="for `svc admin` only"):
            ensure(stage, new_user)
        assert not user_exists(new_user)
        maps = Path(f"/proc/{stage.process.pid}/cmdline").read_text()
        assert "svc_helper.root.__main__" in maps
        assert "provision" not in maps
    finally:
        stage.close()
