"""Whose process a GPU's is: by the word of the kernel, and by control groups named as Podman names them."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from unit.domain.gpu_rows import Gpus, uuid
from unit.serving import CONTAINER, make_workspace

from svc.db.connect import database, write
from svc.domain.gpus import use as gpu_use
from svc.domain.gpus.use import Use
from svc.domain.principal import Caller

ME = pwd.getpwuid(os.getuid()).pw_name
CGROUPS = "0::/libpod_parent/libpod-{}/container\n"


@pytest.fixture
def proc(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What /proc has, by path; who the uids are is the host's."""
    files: dict[str, str] = {}

    def read(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    monkeypatch.setattr(gpu_use, "_read", read)
    monkeypatch.setattr(gpu_use, "_exists", lambda pid: f"/proc/{pid}" in files)
    monkeypatch.setattr(gpu_use, "user_of", lambda uid: {2001: "ada", 2002: "bob"}.get(uid, f"uid {uid}"))
    return files


def runs(proc: dict[str, str], pid: int, uid: int, cgroup: str, mounts: str = "") -> None:
    proc[f"/proc/{pid}/mountinfo"] = mounts
    proc[f"/proc/{pid}/cgroup"] = cgroup
    proc[f"/proc/{pid}/status"] = f"Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t0\n"


@pytest.fixture
def leased(ada: Caller, template: str) -> str:
    """A running workspace of ada's with the first GPU; its id."""
    workspace_id = make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)
    with write():
        database.execute_sql(
            "INSERT INTO gpu_leases VALUES (?, ?, 'exclusive', '2026-01-01T00:00:00.000Z')",
            (uuid(0), workspace_id),
        )
    return workspace_id


def test_nobody(gpus: Gpus, ada: Caller) -> None:
    assert gpu_use.outside() == {}
    assert gpu_use.of_container(CONTAINER) == []


def test_a_process_of_this_host(gpus: Gpus, ada: Caller) -> None:
    gpus.used(1, os.getpid())
    assert gpu_use.outside() == {uuid(1): [Use(os.getpid(), ME, 1000, uuid(1))]}


def test_a_process_that_is_gone_uses_nothing(gpus: Gpus, ada: Caller) -> None:
    gpus.used(1, 2**22 + 1)  # above what the kernel gives
    assert gpu_use.outside() == {}


def test_the_workspace_that_holds_it(gpus: Gpus, leased: str, proc: dict[str, str]) -> None:
    runs(proc, 7, 2001, CGROUPS.format(CONTAINER))
    gpus.used(0, 7)
    assert gpu_use.outside() == {}
    assert gpu_use.of_container(CONTAINER) == [Use(7, "ada", 1000, uuid(0))]
    runs(
        proc,
        7,
        2001,
        f"0::/user.slice/user-2001.slice/user@2001.service/libpod-{CONTAINER}.scope/container\n",
    )
    assert gpu_use.outside() == {}
    runs(proc, 7, 2001, f"3:cpu:/\n0::/libpod-{CONTAINER}\n")
    assert gpu_use.outside() == {}


def test_a_container_without_a_control_group_of_its_own(
    gpus: Gpus, leased: str, proc: dict[str, str]
) -> None:
    """As rootless Podman makes it without systemd: what is mounted for it tells."""
    root = "26 25 0:43 / / rw,relatime - overlay overlay rw\n"
    mounts = (
        root
        + f"31 26 0:57 /containers/overlay-containers/{CONTAINER}/userdata/hosts /etc/hosts rw - tmpfs x rw\n"
    )
    gpus.used(0, 7)
    runs(proc, 7, 2001, "0::/user-2001/agent\n", mounts)
    assert gpu_use.outside() == {}
    runs(proc, 7, 2002, "0::/user-2001/agent\n", mounts)
    assert list(gpu_use.outside()) == [uuid(0)]
    # As the user's own programs see it beside the container, in the namespace of all of them.
    place = f"/home/ada/overlay-containers/{CONTAINER}/userdata/shm"
    runs(proc, 7, 2001, "0::/\n", root + f"31 26 0:57 / {place} rw - tmpfs shm rw\n")
    assert list(gpu_use.outside()) == [uuid(0)]


def test_on_a_gpu_that_it_does_not_hold(gpus: Gpus, leased: str, proc: dict[str, str]) -> None:
    """Started by the user's own hand with `--device`, say."""
    runs(proc, 7, 2001, CGROUPS.format(CONTAINER))
    gpus.used(2, 7)
    assert gpu_use.outside() == {uuid(2): [Use(7, "ada", 1000, uuid(2))]}


@pytest.mark.parametrize(
    "cgroup",
    [
        CGROUPS.format("e" * 64), f"0::/libpod-conmon-{CONTAINER}\n", f"0::/my-libpod-{CONTAINER}\n",
        f"0::/libpod-{CONTAINER}x\n", "0::/\n", "",
    ],
)  # fmt: skip
def test_in_another_container_or_in_none(gpus: Gpus, leased: str, proc: dict[str, str], cgroup: str) -> None:
    runs(proc, 7, 2001, cgroup)
    gpus.used(0, 7)
    assert gpu_use.outside() == {uuid(0): [Use(7, "ada", 1000, uuid(0))]}
    assert gpu_use.of_container(CONTAINER) == []


def test_in_a_group_that_another_user_has_called_so(gpus: Gpus, leased: str, proc: dict[str, str]) -> None:
    """Anybody can give a control group of their own any name."""
    runs(proc, 7, 2002, CGROUPS.format(CONTAINER))
    gpus.used(0, 7)
    assert gpu_use.outside() == {uuid(0): [Use(7, "bob", 1000, uuid(0))]}
    assert gpu_use.of_container(CONTAINER) == []


def test_a_process_that_proc_hides_is_somebodys(gpus: Gpus, leased: str, proc: dict[str, str]) -> None:
    proc["/proc/7"] = ""
    gpus.used(0, 7, 8)
    assert gpu_use.outside() == {uuid(0): [Use(7, "?", 1000, uuid(0))]}


def test_subordinate_uids_are_their_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = tmp_path / "subuid"
    ranges.write_text(
        f"# words\nada:3000000000:65536\n{os.getuid()}:3000100000:10\n4000000001:3000200000:1\n"
    )
    monkeypatch.setattr(gpu_use, "SUBUID", str(ranges))
    assert gpu_use.user_of(os.getuid()) == ME
    assert gpu_use.user_of(3000065535) == "ada"
    assert gpu_use.user_of(3000065536) == "uid 3000065536"
    assert gpu_use.user_of(3000100009) == ME
    assert gpu_use.user_of(3000200000) == "uid 4000000001"
    ranges.unlink()
    assert gpu_use.user_of(3000000000) == "uid 3000000000"
