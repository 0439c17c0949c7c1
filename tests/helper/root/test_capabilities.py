"""What the helper may do: its own work, and in a child that becomes a user only that."""

from __future__ import annotations

import os
from pathlib import Path

from helper.stage import RESIDENT, WS, Stage

from svc_helper.root import capabilities
from svc_helper.root.capabilities import HELPER, IDENTITY


def sets(pid: int | str) -> dict[str, int]:
    """The capability sets of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {line[3:6]: int(line.split()[1], 16) for line in lines if line.startswith("Cap")}


def test_the_resident_helper_keeps_those_of_its_work(uid: dict[str, int]) -> None:
    ours = sets("self")
    stage = Stage(program=RESIDENT, pair_names=("worker",))
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    try:
        agent = stage.client("worker").call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"]
        found = sets(stage.process.pid)
        assert found["Prm"] == found["Eff"] == ours["Prm"] & sum(1 << number for number in HELPER)
        assert found["Inh"] == found["Amb"] == 0
        assert found["Bnd"] == ours["Bnd"]
        of_agent = sets(agent)  # a login's: newuidmap starts from the bounding set
        assert of_agent == {"Inh": 0, "Prm": 0, "Eff": 0, "Bnd": ours["Bnd"], "Amb": 0}
    finally:
        stage.close()


def test_only_what_is_kept_is_left() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        capabilities.keep(IDENTITY)
        try:
            os.chown("/etc/hostname", 0, 0)
            os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) - 1)
        except PermissionError:
            os.write(writing, str(sets("self")["Eff"]).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writing)
    with open(reading, encoding="ascii") as file:
        assert int(file.read()) == sum(1 << number for number in IDENTITY)
