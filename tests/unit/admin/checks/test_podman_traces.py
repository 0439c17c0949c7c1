"""The checks of what users' Podman has on the host, on made-up hosts."""

from __future__ import annotations

import os
import pwd
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from unit.admin.checks import made_up
from unit.admin.checks.made_up import ADA, BEN, levels, put

from svc.admin.checks import podman_traces
from svc.admin.findings import Enrolled, Host
from svc.errors import SvcError
from svc.host.owner import Owner

host = made_up.host
OWN = "/user.slice/user-4001.slice/user@4001.service/user.slice/libpod-conmon-1.scope"
DAY = 24 * 3600


def process(host: Host, pid: int, name: str, uid: int, group: str) -> None:
    put(host, f"/proc/{pid}/status", f"Name:\t{name}\nUmask:\t0077\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
    put(host, f"/proc/{pid}/cgroup", f"0::{group}\n")


def test_a_container_in_the_services_own_group(host: Host) -> None:
    os.makedirs(host.at("/run/systemd/system"))
    process(host, 71, "conmon", ADA.uid, OWN)
    process(host, 72, "conmon", 0, "/machine.slice/libpod-conmon-2.scope")  # root's
    process(host, 73, "conmon", BEN.uid, "/system.slice/other.service")  # not enrolled
    process(host, 74, "bash", ADA.uid, "/system.slice/ssh.service")
    (found,) = podman_traces.container_cgroups(host)
    assert (found.level, found.found) == ("ok", "1 running, each in its user's own slice")
    process(host, 75, "conmon", ADA.uid, "/system.slice/svc.service/libpod-1")
    (found,) = podman_traces.container_cgroups(host)
    assert (found.code, found.level) == ("container_cgroups", "warn")
    assert "of ada (conmon, pid 75) is in /system.slice/svc.service/libpod-1 and ends with it" in found.found
    assert found.remedy.startswith("sudo -iu ada svc ws list ")


def test_another_users_slice_is_not_the_own_one(host: Host) -> None:
    os.makedirs(host.at("/run/systemd/system"))
    process(host, 71, "conmon", ADA.uid, "/user.slice/user-40011.slice/session-1.scope")
    assert levels(podman_traces.container_cgroups, host) == [("container_cgroups", "warn")]


def test_processes_that_end_meanwhile_and_no_systemd(host: Host) -> None:
    process(host, 71, "conmon", ADA.uid, "/svc")
    assert levels(podman_traces.container_cgroups, host) == []
    os.makedirs(host.at("/run/systemd/system"))
    os.unlink(host.at("/proc/71/cgroup"))
    os.makedirs(host.at("/proc/72"))
    assert levels(podman_traces.container_cgroups, host) == [("container_cgroups", "ok")]


def test_this_machines_own_processes_are_read(host: Host) -> None:
    host.root = "/"
    assert dict(podman_traces._processes(host, Path("/proc/self/comm").read_text().strip()))[os.getpid()] == (
        os.getuid()
    )


def download(host: Host, name: str, uid: int, age_s: float) -> Path:
    path = Path(host.at("/var/tmp")) / name
    path.mkdir(parents=True)
    layer = path / "1"
    layer.touch()
    for one in (layer, path):
        os.chown(one, uid, uid)
        os.utime(one, (time.time() - age_s,) * 2)
    return path


def test_what_killed_pulls_left(host: Host, needs_root: None) -> None:
    assert levels(podman_traces.stale_downloads, host) == [("stale_downloads", "ok")]
    download(host, "storage1", ADA.uid, DAY - 60)  # of one that may run
    download(host, "storage-of-ada", ADA.uid, 3 * DAY)
    download(host, "storage2", BEN.uid, 3 * DAY)  # not enrolled
    Path(host.at("/var/tmp/storage3")).symlink_to("/etc")
    assert levels(podman_traces.stale_downloads, host) == [("stale_downloads", "ok")]
    download(host, "storage4", ADA.uid, DAY + 60)
    download(host, "storage5", ADA.uid, 30 * DAY)
    (found,) = podman_traces.stale_downloads(host)
    assert (found.code, found.level) == ("stale_downloads", "warn")
    assert found.found == "killed pulls of ada left layers in /var/tmp long ago; directories: 2"


@pytest.mark.allow_commands("sh")
def test_the_remedy_removes_just_these(host: Host, needs_root: None) -> None:
    """As printed, but for the account that runs it, and below the made-up host."""
    name = pwd.getpwuid(0).pw_name
    host.enrolled = [Enrolled(name, 0)]
    stays = [download(host, "storage1", 0, 60), download(host, "store7", 0, 3 * DAY)]
    stays.append(download(host, "storage2", BEN.uid, 3 * DAY))
    download(host, "storage3", 0, 3 * DAY)
    (found,) = podman_traces.stale_downloads(host)
    command = found.remedy.removeprefix(f"sudo -iu {name} ")
    assert command != found.remedy
    here = shlex.quote(host.at("/var/tmp"))
    subprocess.run(["sh", "-c", command.replace("/var/tmp", here)], check=True)
    assert levels(podman_traces.stale_downloads, host) == [("stale_downloads", "ok")]
    assert sorted(Path(host.at("/var/tmp")).iterdir()) == sorted(stays)


def test_the_owners_word_is_checked(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.owner = Owner(4003, 4003)
    for lie in (None, 7, [7], [["x", 1]], [[1, None]]):
        monkeypatch.setattr(podman_traces, "run_as", lambda *_, lie=lie: lie)
        with pytest.raises(SvcError):
            list(podman_traces.stale_downloads(host))
