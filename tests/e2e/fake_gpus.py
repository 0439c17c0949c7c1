"""A host of four fake GPUs: their description, their CDI specification, device nodes that are really there.

Everything lies in a file system of its own laid over /etc/cdi. The nodes are as
harmless as /dev/null, and each is another one, so that a container's GPUs are
known by their numbers in the kernel. `Observer` watches who has what, all the time.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from e2e.installation import PREFIX, Service, processes_of
from e2e.surroundings import podman
from waiting import until

from svc.domain.gpus.hardware import ACTIVITY_S

PLACE = Path("/etc/cdi")
DESCRIPTION = PLACE / "gpus"  # not .json: it is no specification
NODES = ((1, 3), (1, 5), (1, 7), (1, 8))  # null, zero, full, random
UUIDS = tuple(f"GPU-00000000-0000-4000-8000-{number:012}" for number in range(4))
_CONTAINER = re.compile(r" /\S*-containers/([0-9a-f]{64})/userdata/\S+ /etc/hosts ")  # of mountinfo


class Gpus:
    """What the host has now; a test takes a GPU away or has it used."""

    def __init__(self) -> None:
        self.fakes: dict[int, dict[str, Any]] = {
            number: {
                "uuid": uuid, "model": "NVIDIA H100 80GB HBM3", "vram_bytes": 80 << 30,
                "compute_capability": "9.0", "mig": False, "minor": number,
            }
            for number, uuid in enumerate(UUIDS)
        }  # fmt: skip
        devices = [
            {"name": str(number), "containerEdits": {
                "env": [f"FAKE_GPU_{number}=1"],
                "deviceNodes": [{"path": f"/dev/nvidia{number}", "hostPath": str(PLACE / f"node{number}")}],
            }} for number in range(4)
        ]  # fmt: skip
        document = {
            "cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices,
            "containerEdits": {"env": ["NVIDIA_VISIBLE_DEVICES=void"]},
        }  # fmt: skip
        for number, (major, minor) in enumerate(NODES):
            node = PLACE / f"node{number}"
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
            node.chmod(0o666)
        (PLACE / "nvidia.json").write_text(json.dumps(document))
        self.write()

    def write(self) -> None:
        """Have the description say what is here now, whole at once."""
        described = {"driver": "550.54.15", "max_cuda": "12.4", "gpus": list(self.fakes.values())}
        draft = DESCRIPTION.with_suffix(".new")
        draft.write_text(json.dumps(described))
        draft.rename(DESCRIPTION)

    def used(self, number: int, *pids: int) -> None:
        """Have one used by these processes of the host, until every process of svc sees it so."""
        processes = [{"pid": pid, "used_bytes": 1 << 30} for pid in pids]
        if processes != self.fakes[number].get("processes", []):
            self.fakes[number]["processes"] = processes
            self.write()
            time.sleep(ACTIVITY_S)


@contextmanager
def installed(service: Service, users: Sequence[str]) -> Iterator[Gpus]:
    """The host has these GPUs, and the server and these users see them."""
    PLACE.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755,dev", "none", PLACE], check=True)
    before = service.env["SVC_GPU_PROVIDER"]
    try:
        gpus = Gpus()
        with service.stopped():
            service.env["SVC_GPU_PROVIDER"] = str(DESCRIPTION)
            for user in users:  # whose Podman keeps a namespace of mounts that is older than the GPUs
                _end_podman(user)
                if Path(f"/run/user/{pwd.getpwnam(user).pw_uid}").exists():  # it ran already
                    podman(user, "system", "migrate")
        yield gpus
    finally:
        with service.stopped():
            service.env["SVC_GPU_PROVIDER"] = before
        subprocess.run(["umount", "--lazy", PLACE], check=True)


def _end_podman(user: str) -> None:
    """End the user's Podman services; one whose agent was killed is there for five minutes more."""

    def services() -> list[int]:
        return [one.pid for one in processes_of(user) if "system service" in one.args]

    for pid in services():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    until(lambda: not services())


# --- who has what -----------------------------------------------------------------------------


class Held(NamedTuple):
    """A GPU in a running container: its number, the container's id, one process of it and when that began."""

    gpu: int
    container: str
    pid: int
    began: str


def held() -> list[Held]:
    """The GPUs that any container has now, one row for each container and GPU."""
    found: dict[tuple[int, str], Held] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with suppress(OSError):
            container = _CONTAINER.search(Path(f"/proc/{name}/mountinfo").read_text())
            if container is None:
                continue
            began = _began(int(name))
            for number, (major, minor) in enumerate(NODES):
                if (number, container[1]) in found:
                    continue
                with suppress(OSError):
                    if os.stat(f"/proc/{name}/root/dev/nvidia{number}").st_rdev == os.makedev(major, minor):
                        found[number, container[1]] = Held(number, container[1], int(name), began)
    return list(found.values())


def _began(pid: int) -> str:
    """What tells a process from a later one of its number; raises OSError when it has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if fields[0] in "ZX":
        raise ProcessLookupError(pid)
    return fields[19]


def _lives(one: Held) -> bool:
    with suppress(OSError):
        return _began(one.pid) == one.began
    return False


def doubles() -> list[tuple[Held, Held]]:
    """Two containers that have one GPU at one moment: one lives before and after the other is seen to."""
    pairs = combinations(held(), 2)
    return [
        (one, other)
        for one, other in pairs
        if one.gpu == other.gpu and one.container != other.container
        if _lives(one) and _lives(other) and _lives(one)
    ]


_LEASES = """
import json, os, sqlite3, sys, time
found, looks, most = [], 0, 0
database = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, timeout=10, isolation_level=None)
os.set_blocking(0, False)
while True:
    rows = database.execute("SELECT gpu, count(*), sum(mode = 'exclusive') FROM gpu_leases GROUP BY gpu")
    rows = rows.fetchall()
    looks, most = looks + 1, max(most, len(rows))
    found += [row for row in rows if row[1] > 1 and row[2]]
    try:
        if os.read(0, 1) == b"":
            break
    except BlockingIOError:
        time.sleep(0.005)
print(json.dumps([looks, most, found]))
"""


class Observer:
    """Looks at the leases and at the containers' devices again and again, from its start to end()."""

    def __init__(self, service: Service) -> None:
        account = pwd.getpwnam("svc")
        self.ending = threading.Event()
        self.inspections = 0
        self.most = 0
        self.doubles: list[tuple[Held, Held]] = []
        self.leases = subprocess.Popen(
            [PREFIX / "bin/python3", "-I", "-c", _LEASES, service.env["SVC_DB"]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
            user=account.pw_uid, group=account.pw_gid, extra_groups=[],
        )  # fmt: skip
        self.thread = threading.Thread(target=self._inspect, daemon=True)
        self.thread.start()

    def _inspect(self) -> None:
        while not self.ending.is_set():
            self.doubles += doubles()
            self.most = max(self.most, len({one.gpu for one in held()}))
            self.inspections += 1
            time.sleep(0.01)

    def end(self) -> dict[str, Any]:
        """What was seen: {looks, most, doubles} of containers and of leases."""
        self.ending.set()
        self.thread.join(30)
        out, _ = self.leases.communicate(timeout=30)
        inspections, most, doubles_of_leases = json.loads(out)
        return {
            "looks": self.inspections, "most": self.most, "doubles": self.doubles,
            "lease_looks": inspections, "most_leases": most, "lease_doubles": doubles_of_leases,
        }  # fmt: skip
