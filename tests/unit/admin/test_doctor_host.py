"""The checks of the ground under Podman, on made-up hosts below a directory."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc.admin import doctor_host
from svc.admin.findings import Enrolled, Finding, Host
from svc.db.owner import Owner
from svc.settings import Settings

ADA, BEN = Enrolled("ada", 4001), Enrolled("ben", 4002)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    root = tmp_path / "root"
    for name in ("etc", "sys/fs/cgroup", "dev/net", "run"):
        (root / name).mkdir(parents=True)
    return Host(Settings(file={}), str(tmp_path / "svc.db"), Owner(0, 0), str(root), str(root), [ADA])


def put(host: Host, path: str, text: str) -> None:
    target = Path(host.at(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def levels(check: Callable[[Host], Iterator[Finding]], host: Host) -> list[tuple[str, str]]:
    found = list(check(host))
    assert all(bool(finding.remedy) == (finding.level != "ok") for finding in found)
    return [(finding.code, finding.level) for finding in found]


def test_the_way_of_podman_is_told(host: Host) -> None:
    assert "cgroupfs" in next(doctor_host.podman_way(host)).found
    os.makedirs(host.at("/run/systemd/system"))
    assert "systemd" in next(doctor_host.podman_way(host)).found


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    created = tmp_path / "bin"
    created.mkdir()
    monkeypatch.setattr(doctor_host, "PATH", str(created))
    for name in doctor_host.PACKAGES:
        (created / name).touch()
        (created / name).chmod(0o4755 if name.startswith("new") else 0o755)
    return created


def test_programs_are_looked_for(host: Host, programs: Path, needs_root: None) -> None:
    assert {level for _, level in levels(doctor_host.programs, host)} == {"ok"}
    (programs / "podman").unlink()
    (programs / "crun").unlink()
    (programs / "newuidmap").chmod(0o755)
    found = {finding.code: finding for finding in doctor_host.programs(host)}
    assert (found["podman"].level, found["podman"].remedy) == ("fail", "sudo apt-get install podman")
    assert found["crun"].level == "warn"
    assert found["newuidmap"].level == "fail"
    assert "set-uid" in found["newuidmap"].found


def test_without_the_unified_hierarchy_nothing_starts(host: Host) -> None:
    assert levels(doctor_host.cgroups, host) == [("cgroup2", "fail")]


@pytest.mark.parametrize(
    ("there", "level"), [("cpuset cpu io memory pids", "ok"), ("cpu", "warn"), ("", "warn")]
)
def test_missing_controllers_are_said(host: Host, there: str, level: str) -> None:
    put(host, "/sys/fs/cgroup/cgroup.controllers", there + "\n")
    assert levels(doctor_host.cgroups, host) == [("cgroup2", "ok"), ("controllers", level)]


@pytest.mark.parametrize(
    ("argument", "systemd", "refused"),
    [("auto", True, True), ("auto", False, False), ("refuse", False, True), ("allow", True, False)],
)
def test_what_missing_controllers_mean(host: Host, argument: str, systemd: bool, refused: bool) -> None:
    host.settings = Settings(file={"SVC_MISSING_LIMITS": argument})
    if systemd:
        os.makedirs(host.at("/run/systemd/system"))
    put(host, "/sys/fs/cgroup/cgroup.controllers", "cpu\n")
    found = list(doctor_host.cgroups(host))[1].found
    assert ("do not start (SVC_MISSING_LIMITS)" in found) is refused
    assert ("have no effect" in found) is not refused


def test_controllers_that_are_not_delegated_are_said(host: Host) -> None:
    os.makedirs(host.at("/run/systemd/system"))
    put(host, "/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n")
    put(
        host,
        "/sys/fs/cgroup/user.slice/user-4001.slice/user@4001.service/cgroup.controllers",
        "memory pids\n",
    )
    (last,) = list(doctor_host.cgroups(host))[2:]
    assert (last.code, last.level) == ("delegation", "warn")
    assert "no delegation of cpu to the manager of ada" in last.found


def test_the_servers_view_counts(host: Host, tmp_path: Path) -> None:
    host.view = str(tmp_path / "view")
    put(host, "/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n")
    assert levels(doctor_host.cgroups, host) == [("cgroup2", "fail")]


def test_devices_must_be_open_to_users(host: Host, needs_root: None) -> None:
    assert levels(doctor_host.devices, host) == [("dev_net_tun", "fail"), ("dev_fuse", "warn")]
    os.mknod(host.at("/dev/net/tun"), 0o020600, os.makedev(10, 200))
    put(host, "/dev/fuse", "a file")
    assert levels(doctor_host.devices, host) == [("dev_net_tun", "fail"), ("dev_fuse", "warn")]
    os.chmod(host.at("/dev/net/tun"), 0o666)
    os.unlink(host.at("/dev/fuse"))
    os.mknod(host.at("/dev/fuse"), 0o020666, os.makedev(10, 229))
    os.chmod(host.at("/dev/fuse"), 0o666)
    assert {level for _, level in levels(doctor_host.devices, host)} == {"ok"}


@pytest.fixture
def no_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose only real account is number 1000 (and group 1000)."""
    person = pwd.struct_passwd(("real", "x", 1000, 1000, "", "/", ""))
    group = grp.struct_group(("real", "x", 1000, []))
    monkeypatch.setattr(pwd, "getpwall", lambda: [person])
    monkeypatch.setattr(grp, "getgrall", lambda: [group])


def subids(host: Host, text: str) -> list[Finding]:
    put(host, "/etc/subuid", text)
    put(host, "/etc/subgid", "ada:100000:65536\nben:165536:65536\n")
    return [finding for finding in doctor_host.subids(host) if finding.code.startswith("subuid")]


def test_a_range_of_65536_is_enough(host: Host, no_accounts: None) -> None:
    host.enrolled = [ADA, BEN]
    for text in (
        "ada:100000:65536\n4002:165536:65536\n",
        "ada:100000:30000\nada:130000:35536\nben:200000:65536\n",
    ):
        assert [finding.level for finding in subids(host, text)] == ["ok"]


def test_a_missing_range_has_a_remedy_that_takes_nobodys(host: Host, no_accounts: None) -> None:
    host.enrolled = [ADA, BEN]
    found = subids(host, "carl:100000:65536\nada:165536:1000\nnonsense\n:::\n")
    assert [finding.level for finding in found] == ["fail", "fail"]
    assert found[0].remedy == "sudo usermod --add-subuids 166536-232071 ada"
    assert found[1].remedy == "sudo usermod --add-subuids 232072-297607 ben"


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("ada:100000:65536\nben:150000:65536\n", "ada and ben"),
        ("ben:150000:10\nada:100000:65536\n", "ada and ben"),
        ("ada:100000:65536\nx:100000:65536\n", "ada and x"),
        ("ada:100000:65536\nx:300000:5\nwide:200000:900000\n", "wide and x"),
    ],
)
def test_overlaps_between_any_two_are_found(host: Host, no_accounts: None, text: str, pair: str) -> None:
    (overlap,) = [finding for finding in subids(host, text) if finding.code == "subuid_overlap"]
    assert overlap.level == "fail"
    assert overlap.found.startswith(pair)


def test_a_range_over_a_real_account_is_found(host: Host, no_accounts: None) -> None:
    found = [finding for finding in subids(host, "ada:500:65536\n") if finding.code == "subuid_overlap"]
    assert [finding.level for finding in found] == ["fail"]
    assert "uid 1000 of a real account" in found[0].found


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
    assert doctor_host._driver(str(tmp_path)) == driver


def test_a_pipe_in_the_users_home_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".config/containers").mkdir(parents=True)
    os.mkfifo(tmp_path / ".config/containers/storage.conf")
    assert doctor_host._driver(str(tmp_path)) == "not set"


def test_the_storage_driver_is_read_as_the_user(
    host: Host, monkeypatch: pytest.MonkeyPatch, needs_root: None
) -> None:
    home = pwd.struct_passwd(("ada", "x", 65534, 65534, "", "/nonexistent", ""))
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: home)
    read = []
    monkeypatch.setattr(doctor_host, "run_as", lambda owner, *_: read.append(owner) or "vfs")
    assert levels(doctor_host.storage, host) == [("storage", "warn")]
    assert read == [Owner(65534, 65534)]
    monkeypatch.setattr(doctor_host, "run_as", lambda *_: "overlay")
    assert levels(doctor_host.storage, host) == [("storage", "ok")]


def test_lingering_matters_with_systemd_only(host: Host) -> None:
    assert levels(doctor_host.lingering, host) == []
    os.makedirs(host.at("/run/systemd/system"))
    assert levels(doctor_host.lingering, host) == [("lingering", "fail")]
    put(host, "/var/lib/systemd/linger/ada", "")
    assert levels(doctor_host.lingering, host) == [("lingering", "ok")]


def test_members_of_docker_are_named(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grp, "getgrnam", lambda _name: grp.struct_group(("docker", "x", 7, ["ada", "zoe"])))
    (found,) = doctor_host.docker_group(host)
    assert (found.level, found.remedy) == ("warn", "sudo gpasswd -d ada docker")
