"""Where users' images and containers are, on made-up hosts."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from unit.admin.checks import made_up
from unit.admin.checks.made_up import levels, put

from svc.admin.checks import stores
from svc.admin.findings import Host
from svc.settings import Settings

host = made_up.host


@pytest.mark.parametrize(
    ("mount", "level", "said"),
    [
        ("ext4 rw,nosuid", "ok", ""),
        ("ext4 rw,noexec", "fail", "sudo mount -o remount,exec /home   (and in /etc/fstab)"),
        ("ext4 rw,nodev", "warn", "sudo mount -o remount,dev /home   (and in /etc/fstab)"),
        ("nfs4 rw", "warn", "SVC_STORE_DIR=/var/lib/svc-stores/%u"),
    ],
)
def test_where_homes_are(
    host: Host, monkeypatch: pytest.MonkeyPatch, mount: str, level: str, said: str
) -> None:
    entry = pwd.struct_passwd(("ada", "x", 4001, 4001, "", "/home/ada", ""))
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: entry)
    put(host, "/proc/self/mounts", f"/dev/a / ext4 rw 0 0\nx /home {mount} 0 0\n")
    (found,) = stores.homes(host)
    assert (found.code, found.level, said in found.remedy) == ("home", level, True)


def test_what_a_user_may_have_mounted_is_not_remounted(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """With devices, a file system of the user's own would give any of the host's."""
    entry = pwd.struct_passwd(("ada", "x", 4001, 4001, "", "/home/ada/", ""))
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: entry)
    for options in ("rw,nosuid,nodev", "rw,noexec"):
        put(host, "/proc/self/mounts", f"/dev/a / ext4 rw 0 0\nmine /home/ada fuse.mine {options} 0 0\n")
        (found,) = stores.homes(host)
        assert found.remedy.startswith("sudo editor /etc/fstab")


@pytest.fixture
def ada(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = pwd.struct_passwd(("ada", "x", 4001, 4001, "", "/home/ada", ""))
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: entry)


def trial_of(monkeypatch: pytest.MonkeyPatch, *facts: object) -> None:
    monkeypatch.setattr(stores, "run_as", lambda *_: list(facts))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ((False, True, False, False), "fuse, which keeps no extended attributes"),
        ((True, False, False, False), "fuse, which keeps no ids of containers"),
        ((True, True, False, False), ""),
        (("no", True, False, False), ""),
    ],
)
def test_other_kinds_are_tried(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    ada: None,
    needs_root: None,
    facts: tuple[object, ...],
    said: str,
) -> None:
    put(host, "/proc/self/mounts", "/dev/a / ext4 rw 0 0\nx /home fuse rw,nosuid 0 0\n")
    trial_of(monkeypatch, *facts)
    (found,) = stores.homes(host)
    assert (found.level, said in found.found) == ("warn" if said else "ok", True)


@pytest.mark.allow_commands("unshare")
def test_a_trial_tells_a_fit_directory(tmp_path: Path) -> None:
    attributes, ids, in_use, workspaces = stores._try(str(tmp_path), "")
    assert (attributes, ids, in_use, workspaces) == (True, True, False, False)
    assert os.listdir(tmp_path) == []
    (tmp_path / ".local/state/svc/workspaces/ws-1").mkdir(parents=True)
    assert stores._try(str(tmp_path), str(tmp_path / "store")) == (True, True, False, False)
    (tmp_path / ".local/state/svc/workspaces/ws-1/created.json").touch()
    (tmp_path / "store/storage").mkdir(parents=True)
    assert stores._try(str(tmp_path), str(tmp_path / "store")) == (True, True, True, True)


@pytest.fixture
def set_host(host: Host) -> Host:
    host.settings = Settings(file={"SVC_STORE_DIR": "/stores/%u"}, environ={})
    put(host, "/proc/self/mounts", "/dev/a / ext4 rw 0 0\nx /home nfs4 rw 0 0\n")
    os.makedirs(host.at("/stores"))
    return host


def test_with_the_setting_homes_may_be_anywhere(set_host: Host, ada: None) -> None:
    assert levels(stores.homes, set_host) == [("home", "ok")]
    assert levels(stores.stores, set_host) == [("store_dir", "ok")]


def test_without_the_setting_there_is_no_store_to_check(host: Host) -> None:
    assert levels(stores.stores, host) == []


def test_another_owner_is_told_with_the_remedy(
    set_host: Host, monkeypatch: pytest.MonkeyPatch, ada: None, needs_root: None
) -> None:
    os.makedirs(set_host.at("/stores/ada"))
    os.chown(set_host.at("/stores/ada"), 4002, 4002)
    (found,) = stores.stores(set_host)
    assert (found.level, found.remedy) == ("fail", "sudo mv -T /stores/ada /stores/ada.former")
    os.chmod(set_host.at("/stores"), 0o777)
    (found,) = stores.stores(set_host)
    assert found.remedy == "ls -ld /stores   (only root may own and write it)"


def test_a_store_that_was_not_moved_is_told(
    set_host: Host, monkeypatch: pytest.MonkeyPatch, ada: None, needs_root: None
) -> None:
    trial_of(monkeypatch, True, True, False, True)
    (found,) = stores.stores(set_host)
    assert (found.level, found.remedy) == ("warn", "sudo svc admin move-store ada")
    trial_of(monkeypatch, True, True, True, True)
    assert levels(stores.stores, set_host) == [("store_dir", "ok")]


def test_a_store_on_a_file_server_fails(set_host: Host, ada: None) -> None:
    put(set_host, "/proc/self/mounts", "/dev/a / ext4 rw 0 0\nx /stores nfs4 rw 0 0\n")
    assert ("store_dir", "fail") in levels(stores.stores, set_host)
