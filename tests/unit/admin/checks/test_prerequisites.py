"""The checks of the ground under Podman, on made-up hosts below a directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from unit.admin.checks import made_up
from unit.admin.checks.made_up import levels, put

from svc.admin.checks import prerequisites
from svc.admin.findings import Host
from svc.host.owner import Owner
from svc.settings import Settings

host = made_up.host


def test_the_way_of_podman_is_told(host: Host) -> None:
    assert "cgroupfs" in next(prerequisites.podman_way(host)).found
    os.makedirs(host.at("/run/systemd/system"))
    assert "systemd" in next(prerequisites.podman_way(host)).found


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    created = tmp_path / "bin"
    created.mkdir()
    monkeypatch.setattr(prerequisites, "PATH", str(created))
    of_programs = os.statvfs("/usr/bin")  # the directories of tests may be mounted nosuid
    monkeypatch.setattr(prerequisites.os, "statvfs", lambda _path: of_programs)
    for name in prerequisites.PACKAGES:
        (created / name).touch()
        (created / name).chmod(0o4755 if name.startswith("new") else 0o755)
    return created


def test_programs_are_looked_for(host: Host, programs: Path, needs_root: None) -> None:
    assert {level for _, level in levels(prerequisites.programs, host)} == {"ok"}
    (programs / "podman").unlink()
    (programs / "crun").unlink()
    (programs / "newuidmap").chmod(0o755)
    found = {finding.code: finding for finding in prerequisites.programs(host)}
    assert (found["podman"].level, found["podman"].remedy) == ("fail", "sudo apt-get install podman")
    assert found["crun"].level == "warn"
    assert found["newuidmap"].level == "fail"
    assert "set-uid" in found["newuidmap"].found


@pytest.mark.parametrize(
    "name",
    ["podman", "conmon", "crun", "catatonit", "newuidmap", "newgidmap", "skopeo", "setpriv"],
)
def test_each_program_that_is_missing(host: Host, programs: Path, name: str, needs_root: None) -> None:
    (programs / name).unlink()
    found = {finding.code: finding for finding in prerequisites.programs(host)}
    assert found[name].level == ("warn" if name == "crun" else "fail")
    assert found[name].remedy.startswith("sudo apt-get install ")
    assert {found[other].level for other in found if other != name} == {"ok"}


def use_podman(host: Host, programs: Path, version: str) -> None:
    host.owner = Owner(os.geteuid(), os.getegid())
    (programs / "podman").write_text(f"#!/bin/sh\necho podman version {version}\n")


@pytest.mark.allow_commands("podman")
@pytest.mark.parametrize(
    ("version", "there", "expected"),
    [
        ("4.3.1", ["slirp4netns"], [("slirp4netns", "ok")]),
        ("4.9.3", ["pasta"], [("slirp4netns", "fail")]),
        ("5.4.2", ["pasta", "slirp4netns"], [("pasta", "ok"), ("slirp4netns", "ok")]),
        ("5.4.2", ["pasta"], [("pasta", "ok"), ("slirp4netns", "warn")]),
        ("5.4.2", ["slirp4netns"], [("pasta", "fail"), ("slirp4netns", "ok")]),
        ("", ["slirp4netns"], [("slirp4netns", "ok")]),
    ],
)
def test_what_connects_containers(
    host: Host, programs: Path, version: str, there: list[str], expected: list[tuple[str, str]]
) -> None:
    use_podman(host, programs, version)
    for name in there:
        (programs / name).touch(mode=0o755)
    assert levels(prerequisites.connections, host) == expected


@pytest.mark.allow_commands("podman")
@pytest.mark.parametrize(
    ("version", "there", "expected"),
    [
        ("4.3.1", "iptables", ""),
        ("4.3.1", "nft", "sudo apt-get install iptables"),
        ("5.4.2", "nft", ""),
        ("5.4.2", "iptables", "sudo apt-get install nftables"),
    ],
)
def test_networks_are_filtered_by_what_netavark_runs(
    host: Host, programs: Path, version: str, there: str, expected: str
) -> None:
    use_podman(host, programs, version)
    (programs / there).touch(mode=0o755)
    for name in ("netavark", "aardvark-dns"):
        put(host, f"/usr/lib/podman/{name}", "")
    (found,) = prerequisites.networks(host)
    assert found.remedy == expected


@pytest.mark.allow_commands("podman")
def test_networks_need_programs_of_podmans(host: Host, programs: Path) -> None:
    use_podman(host, programs, "4.3.1")
    (programs / "iptables").touch(mode=0o755)
    for name in ("netavark", "aardvark-dns"):
        (found,) = prerequisites.networks(host)
        assert found.level == "warn" and name in found.remedy
        put(host, f"/usr/lib/podman/{name}", "")
    assert levels(prerequisites.networks, host) == [("networks", "ok")]
    (programs / "iptables").unlink()
    (found,) = prerequisites.networks(host)
    assert found.remedy == "sudo apt-get install iptables"


@pytest.mark.allow_commands("unshare")
def test_user_namespaces_are_made_for_a_trial(host: Host) -> None:
    host.owner = Owner(os.geteuid(), os.getegid())
    assert levels(prerequisites.user_namespaces, host) == [("user_namespaces", "ok")]


@pytest.mark.allow_commands("unshare")
@pytest.mark.parametrize(
    ("setting", "value", "allowing"),
    [
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=65536"),
        ("user/max_user_namespaces", "1000", "unshare --user"),
    ],
)
def test_what_denies_user_namespaces(
    host: Host, programs: Path, setting: str, value: str, allowing: str
) -> None:
    host.owner = Owner(os.geteuid(), os.getegid())
    (programs / "unshare").write_text("#!/bin/sh\nexit 1\n")
    (programs / "unshare").chmod(0o755)
    put(host, f"/proc/sys/{setting}", f"{value}\n")
    (found,) = prerequisites.user_namespaces(host)
    assert found.level == "fail" and allowing in found.remedy


def test_without_the_unified_hierarchy_nothing_starts(host: Host) -> None:
    assert levels(prerequisites.cgroups, host) == [("cgroup2", "fail")]


def test_the_hybrid_hierarchy_is_not_the_unified_one(host: Host) -> None:
    """There the first version has the controllers, and the second one is below."""
    put(host, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    put(host, "/sys/fs/cgroup/unified/cgroup.controllers", "")
    (found,) = prerequisites.cgroups(host)
    assert (found.code, found.level) == ("cgroup2", "fail")
    assert found.remedy == "boot with systemd.unified_cgroup_hierarchy=1"


@pytest.mark.parametrize(
    ("there", "level"), [("cpuset cpu io memory pids", "ok"), ("cpu", "warn"), ("", "warn")]
)
def test_missing_controllers_are_said(host: Host, there: str, level: str) -> None:
    put(host, "/sys/fs/cgroup/cgroup.controllers", there + "\n")
    assert levels(prerequisites.cgroups, host) == [("cgroup2", "ok"), ("controllers", level)]


@pytest.mark.parametrize(
    ("argument", "systemd", "refused"),
    [("auto", True, True), ("auto", False, False), ("refuse", False, True), ("allow", True, False)],
)
def test_what_missing_controllers_mean(host: Host, argument: str, systemd: bool, refused: bool) -> None:
    host.settings = Settings(file={"SVC_MISSING_LIMITS": argument})
    if systemd:
        os.makedirs(host.at("/run/systemd/system"))
    put(host, "/sys/fs/cgroup/cgroup.controllers", "cpu\n")
    found = list(prerequisites.cgroups(host))[1].found
    assert ("do not start (SVC_MISSING_LIMITS)" in found) is refused
    assert ("have no effect" in found) is not refused


def test_the_servers_view_counts(host: Host, tmp_path: Path) -> None:
    host.view = str(tmp_path / "view")
    put(host, "/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n")
    assert levels(prerequisites.cgroups, host) == [("cgroup2", "fail")]


def test_devices_must_be_open_to_users(host: Host, needs_root: None) -> None:
    assert levels(prerequisites.devices, host) == [("dev_net_tun", "fail"), ("dev_fuse", "warn")]
    os.mknod(host.at("/dev/net/tun"), 0o020600, os.makedev(10, 200))
    put(host, "/dev/fuse", "a file")
    assert levels(prerequisites.devices, host) == [("dev_net_tun", "fail"), ("dev_fuse", "warn")]
    os.chmod(host.at("/dev/net/tun"), 0o666)
    os.unlink(host.at("/dev/fuse"))
    os.mknod(host.at("/dev/fuse"), 0o020666, os.makedev(10, 229))
    os.chmod(host.at("/dev/fuse"), 0o666)
    assert {level for _, level in levels(prerequisites.devices, host)} == {"ok"}


@pytest.mark.allow_commands("podman")
@pytest.mark.parametrize(
    ("version", "level"), [("4.3.1", "ok"), ("5.0", "ok"), ("4.2.9", "fail"), ("3.4.4", "fail"), ("", "warn")]
)
def test_the_version_of_podman(host: Host, programs: Path, version: str, level: str) -> None:
    use_podman(host, programs, version)
    assert levels(prerequisites.podman_version, host) == [("podman_version", level)]
    (programs / "podman").unlink()
    assert levels(prerequisites.podman_version, host) == []
