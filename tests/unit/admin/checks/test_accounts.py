"""The checks of each enrolled account, on made-up hosts."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
from pathlib import Path

import pytest
from unit.admin.checks import made_up
from unit.admin.checks.made_up import levels, put

from svc.admin.checks import accounts
from svc.admin.findings import Host
from svc.errors import SvcError
from svc.host.owner import Owner

host = made_up.host


def test_controllers_that_are_not_delegated_are_said(host: Host) -> None:
    os.makedirs(host.at("/run/systemd/system"))
    put(host, "/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n")
    put(
        host,
        "/sys/fs/cgroup/user.slice/user-4001.slice/user@4001.service/cgroup.controllers",
        "memory pids\n",
    )
    (last,) = accounts.delegation(host)
    assert (last.code, last.level) == ("delegation", "warn")
    assert "no delegation of cpu to the manager of ada" in last.found


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ('[storage]\ndriver = "overlay"\n', "overlay"),
        ('[storage]\ndriver = "vfs"\n', "vfs"),
        ("[storage]\n", "not set"),
        ("storage = 3\n", "not set"),
        ("not toml [", "not set"),
        (None, "not set"),
    ],
)
def test_the_storage_driver_is_read(tmp_path: Path, text: str | None, driver: str) -> None:
    path = tmp_path / ".config/containers/storage.conf"
    path.parent.mkdir(parents=True)
    if text is not None:
        path.write_text(text)
    assert accounts._driver(str(tmp_path)) == driver


def test_a_pipe_in_the_users_home_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".config/containers").mkdir(parents=True)
    os.mkfifo(tmp_path / ".config/containers/storage.conf")
    assert accounts._driver(str(tmp_path)) == "not set"


def test_the_storage_driver_is_read_as_the_user(
    host: Host, monkeypatch: pytest.MonkeyPatch, needs_root: None
) -> None:
    home = pwd.struct_passwd(("ada", "x", 65534, 65534, "", "/nonexistent", ""))
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: home)
    read = []
    monkeypatch.setattr(
        accounts, "run_as", lambda owner, *_: read.append(owner) or ["vfs", True, False, 0, 0]
    )
    assert levels(accounts.storage, host) == [("storage", "warn")]
    assert read == [Owner(65534, 65534)]
    monkeypatch.setattr(accounts, "run_as", lambda *_: ["overlay", True, False, 0, 0])
    assert levels(accounts.storage, host) == [("storage", "ok")]


def test_podmans_records_of_a_former_uid_are_found(tmp_path: Path) -> None:
    """After `usermod -u` Podman looks for the old run directory, which its database in the home names."""
    records = tmp_path / "bolt_state.db"
    assert accounts._former_uid(str(records), 4001) == 0
    records.write_bytes(b"\0\xff/run/user/1028/containersstatic\0/run/user/1028/libpod\0/run/user/7/bus")
    assert accounts._former_uid(str(records), 4001) == 1028
    assert accounts._former_uid(str(records), 1028) == 0
    os.unlink(records)
    os.mkfifo(records)
    assert accounts._former_uid(str(records), 4001) == 0


def test_containers_whose_run_directory_was_removed_are_counted(tmp_path: Path) -> None:
    """The kernel writes //deleted behind what a mount was made from and is no more."""
    source = "/containers/overlay-containers/1f/userdata/.containerenv"
    for pid, name, children, root in (
        (7, "conmon", "8 ", ""), (8, "sh", "", f"{source}//deleted"), (9, "conmon", "10 ", ""),
        (10, "sh", "", source), (11, "bash", "12 ", ""), (12, "sh", "", f"{source}//deleted"),
    ):  # fmt: skip
        process = tmp_path / str(pid)
        (process / f"task/{pid}").mkdir(parents=True)
        (process / "comm").write_text(f"{name}\n")
        (process / f"task/{pid}/children").write_text(children)
        (process / "mountinfo").write_text(f"61 60 0:43 {root} /run/.containerenv rw - tmpfs tmpfs rw\n")
    assert accounts._forgotten(str(tmp_path), os.getuid()) == 1
    assert accounts._forgotten(str(tmp_path), 4001) == 0, "another's"


def test_lingering_matters_with_systemd_only(host: Host) -> None:
    assert levels(accounts.lingering, host) == []
    os.makedirs(host.at("/run/systemd/system"))
    assert levels(accounts.lingering, host) == [("lingering", "fail")]
    put(host, "/var/lib/systemd/linger/ada", "")
    assert levels(accounts.lingering, host) == [("lingering", "ok")]


def test_members_of_docker_are_named(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grp, "getgrnam", lambda _name: grp.struct_group(("docker", "x", 7, ["ada", "zoe"])))
    (found,) = accounts.docker_group(host)
    assert (found.level, found.remedy) == ("warn", "sudo gpasswd -d ada docker")


def test_members_by_their_first_group(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grp, "getgrnam", lambda _name: grp.struct_group(("docker", "x", 7, [])))
    entry = pwd.struct_passwd(("ada", "x", 4001, 7, "", "/home/ada", ""))
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: entry)
    (found,) = accounts.docker_group(host)
    assert (found.code, found.remedy) == ("docker_group", "sudo usermod --gid users ada")


def test_a_manager_that_does_not_run(host: Host) -> None:
    assert levels(accounts.managers, host) == []
    os.makedirs(host.at("/run/systemd/system"))
    assert levels(accounts.managers, host) == [("user_manager", "warn")]
    os.makedirs(host.at("/sys/fs/cgroup/user.slice/user-4001.slice/user@4001.service"))
    assert levels(accounts.managers, host) == [("user_manager", "ok")]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (["overlay", True, False, 0, 0], [("storage", "ok")]),
        (["vfs", True, False, 0, 0], [("storage", "warn")]),
        (["overlay", True, False, 1001, 0], [("storage", "fail")]),
        (["overlay", False, False, 0, 0], [("user_bus", "warn"), ("storage", "ok")]),
        (["overlay", True, True, 0, 0], [("pause_process", "fail"), ("storage", "ok")]),
        (["overlay", True, False, 0, 2], [("forgotten_containers", "fail"), ("storage", "ok")]),
    ],
)
def test_what_the_users_process_finds(
    host: Host, monkeypatch: pytest.MonkeyPatch, facts: list[object], expected: object, needs_root: None
) -> None:
    os.makedirs(host.at("/run/systemd/system"))
    os.makedirs(host.at("/sys/fs/cgroup/user.slice/user-4001.slice/user@4001.service"))
    entry = pwd.struct_passwd(("ada", "x", 4001, 4001, "", "/nonexistent", ""))
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: entry)
    monkeypatch.setattr(accounts, "run_as", lambda *_: facts)
    assert levels(accounts.storage, host) == expected


@pytest.mark.parametrize("lie", [None, [], ["overlay", 1, False], ["overlay", True], [b"x", True, True]])
def test_the_users_word_is_checked(lie: object) -> None:
    with pytest.raises(SvcError):
        accounts._checked(lie)


@pytest.mark.allow_commands("unshare")
def test_a_pause_process_with_a_services_private_tmp(tmp_path: Path, needs_root: None) -> None:
    """Its mount namespace is its own anyway; what counts is what such a service has for /tmp in it."""
    assert not accounts._private_mounts(str(tmp_path))
    (tmp_path / "libpod/tmp").mkdir(parents=True)
    for name, found in (("pause", False), ("systemd-private-0-some.service-x", True)):
        (tmp_path / name / "tmp").mkdir(parents=True)
        begin = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /mnt && echo && read -r line']
        with subprocess.Popen(
            [*begin, str(tmp_path / name / "tmp")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None and process.stdout.readline() == b"\n"
            (tmp_path / "libpod/tmp/pause.pid").write_text(f"{process.pid}\n")
            assert accounts._private_mounts(str(tmp_path)) is found
            process.communicate(b"\n")
    assert not accounts._private_mounts(str(tmp_path)), "a process that is gone has no mounts"


def test_podmans_locks_of_another_owner_are_said(host: Host, needs_root: None) -> None:
    (user,) = host.present[:1]
    path = f"/dev/shm/libpod_rootless_lock_{user.uid}"
    put(host, path, "")
    os.chown(host.seen(path), user.uid, user.uid)
    assert list(accounts.podman_locks(host)) == []
    os.chown(host.seen(path), 65534, 65534)
    (finding,) = accounts.podman_locks(host)
    assert (finding.code, finding.level, finding.remedy) == ("podman_locks", "fail", f"sudo rm -r {path}")
    assert f"belongs to uid 65534: no Podman of {user.name} starts" in finding.found
