"""The table of what each process may still do is what the kernel says of the installed program."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from e2e.installation import ROOT, Call, Process, Service, below, processes_of

from svc_helper.root.capabilities import HELPER

KINDS = ("mnt", "net", "ipc", "pid")
ALL = 1 << 21  # CAP_SYS_ADMIN stands for all of root's
IDENTITIES = 1 << 6 | 1 << 7
with open("/proc/self/status", encoding="ascii") as status:  # a container's root may have fewer than root
    ROOTS = next(int(line.split()[1], 16) for line in status if line.startswith("CapPrm:"))
HELPERS = sum(1 << number for number in HELPER) & ROOTS
NAMES = {0: "none", IDENTITIES: "setuid, setgid", HELPERS: "nine"}
OWN = ("/tmp", "/var/tmp", "/dev/shm")


def table() -> dict[str, dict[str, str]]:
    """The documented rows by process."""
    lines = (ROOT / "docs/architecture.md").read_text().split("### What each process may still do")[1]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines.splitlines()
        if line[:1] == "|"
    ]
    header, _, *body = rows[: 2 + next(n for n, row in enumerate(rows[2:]) if row[0] == "svc-agent") + 1]
    return {row[0]: dict(zip(header, row, strict=True)) for row in body}


def seen(one: Process, service: Service, users: dict[str, str]) -> dict[str, str]:
    """The row of a process, from /proc."""
    permitted, bounding = (int(one.status[name], 16) for name in ("CapPrm", "CapBnd"))
    capabilities = "all" if permitted & ALL else NAMES.get(permitted, hex(permitted))
    spaces = [
        kind
        for kind in KINDS
        if os.readlink(f"/proc/{one.pid}/ns/{kind}") != os.readlink(f"/proc/{service.pid}/ns/{kind}")
    ]
    name = pwd.getpwuid(one.uid).pw_name
    return {
        "uid": users.get(name, name),
        "capabilities": capabilities,
        "can gain more": "no" if one.status["NoNewPrivs"] == "1" and not bounding else "yes",
        "seccomp": "yes" if one.status["Seccomp"] == "2" else "no",
        "namespaces of its own": ", ".join(spaces) or "none",
        "writes": writes(one.pid, os.path.dirname(service.env["SVC_DB"])),
    }


def writes(pid: int, data: str) -> str:
    """The writable mounts; of mounts over each other the last counts."""
    last = {}
    for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
        last[line.split()[4]] = line.split()[5].split(",")
    writable = {path for path, options in last.items() if "rw" in options}
    if "/" in writable:
        return "the host"
    assert writable <= {data, *OWN}, writable
    return ", ".join(["data"] * (data in writable) + [path for path in OWN if path in writable])


def test_the_table_is_true(service: Service, alice: Call, workspace: str) -> None:
    documented = table()
    others = documented.keys() - {"svc-agent"}  # agents of several users run
    family = [one for one in below(service.pid) if one.status["Name"] in others or one.pid == service.pid]
    agents = [one for one in processes_of("tse-alice") if one.status["Name"] == "svc-agent"]
    names = set()
    for one in (*family, *agents):
        name = "supervisor" if one.pid == service.pid else one.status["Name"]
        names.add(name)
        found = {"process": name} | seen(one, service, {"tse-alice": "the user"})
        assert found == documented[name], one.args
    assert names == set(documented)


def test_doctor_says_so(service: Service, svc: Call) -> None:
    findings = svc("root", "admin", "doctor", "--json").json()["items"]
    [found] = [one for one in findings if one["code"].startswith("confinement")]
    assert found["level"] == "ok", found
    assert "5 processes of 5 accounts" in found["found"]
    assert found["found"].endswith("mount, network, IPC, process")


@pytest.mark.parametrize("name", ["svc-unix", "svc-tls", "svc-worker", "svc-apps"])
def test_an_account_has_no_process_elsewhere(service: Service, name: str) -> None:
    mine = {one.pid for one in below(service.pid)}
    assert {one.pid for one in processes_of(name)} <= mine
