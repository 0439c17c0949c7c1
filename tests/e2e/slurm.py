"""A cluster of Slurm's of one node, which is this host: munge, a controller, a daemon. Debian's packages."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ports import free_port
from waiting import until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
SETTINGS = """\
ClusterName=one
SlurmctldHost={host}({address})
SlurmUser=root
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName={host} NodeAddr={address} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP
"""


def missing() -> str:
    """Why there is no Slurm here; empty where it can run."""
    if absent := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"{', '.join(absent)} not installed"
    return "" if _address() else "Slurm resolves no address on a host that has loopback alone"


def _address() -> str:
    """The first address that is not loopback's."""
    listed = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=True).stdout
    return next((one for one in re.findall(r"inet ([0-9.]+)/", listed) if not one.startswith("127.")), "")


@contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Slurm with its files in this folder, which everybody can enter; the variables for its commands."""
    folder.chmod(0o755)
    for name in ("state", "spool", "key"):
        (folder / name).mkdir(mode=0o700 if name == "key" else 0o755)
    (folder / "key/munge.key").write_bytes(os.urandom(128))
    (folder / "key/munge.key").chmod(0o600)
    host = socket.gethostname().partition(".")[0]
    settings = SETTINGS.format(
        host=host, folder=folder, controller=free_port(), daemon=free_port(), cpus=os.cpu_count(),
        address=_address(),
    )  # fmt: skip
    (folder / "slurm.conf").write_text(settings)
    if len(Path("/proc/self/cgroup").read_text().splitlines()) > 1:  # hybrid: slurmd refuses to choose
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    env = {"SLURM_CONF": f"{folder}/slurm.conf"}
    munge = ["munged", "--foreground", "--force", f"--key-file={folder}/key/munge.key"]
    munge += [f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge.pid", f"--log-file={folder}/log"]
    munge += [f"--seed-file={folder}/key/seed"]
    with ExitStack() as held:
        for argv in (munge, ["slurmctld", "-D", "-c"], ["slurmd", "-D", "-c"]):
            held.enter_context(_running(argv, env, folder / f"{argv[0]}.log"))
            until((folder / "munge.socket").exists, 20)
        until(lambda: "idle" in _state(env), 40, 0.2)
        yield env


def _state(env: dict[str, str]) -> str:
    done = subprocess.run(
        ["sinfo", "--noheader", "-o", "%t"], env=os.environ | env, capture_output=True, text=True, check=False
    )
    return done.stdout


@contextmanager
def _running(argv: list[str], env: dict[str, str], log: Path) -> Iterator[None]:
    with open(log, "ab") as file:
        process = subprocess.Popen(
            argv, env=os.environ | env, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
