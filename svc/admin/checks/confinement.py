"""Doctor check of the app's processes: which of their limits are in force, by the kernel's account.

Read from /proc, as root; svc.server sets them. Where the kernel or a container refuses one the server
goes on, so that only this check and one line of the log tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from svc.admin.findings import Finding, Host, fail, ok, warn
from svc.host.accounts import APP, PARENT_CAPABILITIES, find_accounts, role_account

CODE = "confinement"
NAMESPACES = {"mnt": "mount", "net": "network", "ipc": "IPC", "pid": "process"}
LOG = "journalctl -u svc --grep 'cannot be its own'   (or the server's log file)"
OTHERS = ("svc-helper", "svc-agent")  # below the supervisor too, with other privileges
RESTART = "sudo systemctl restart svc"


class AppProcess(NamedTuple):
    """One process below the supervisor with an account of the app."""

    pid: int
    name: str  # svc-app, svc-unix, svc-tls, svc-worker, svc-apps
    status: dict[str, str]  # fields of /proc/PID/status
    has_terminal: bool
    namespaces: dict[str, str]

    @property
    def uid(self) -> int:
        """Its real uid."""
        return int(self.status["Uid"].split()[0])

    def lacks(self) -> Iterator[str]:
        """The limits of every process of the app that this one has not."""
        allowed = PARENT_CAPABILITIES if self.name == f"{APP}-app" else 0
        held = [
            name for name in ("CapPrm", "CapEff", "CapInh", "CapAmb") if int(self.status[name], 16) & ~allowed
        ]
        if held or int(self.status["CapBnd"], 16):
            yield "has capabilities"
        if self.status["NoNewPrivs"] != "1":
            yield "has no no_new_privs"
        if self.status.get("Seccomp") != "2":
            yield "has no seccomp filter"
        if self.has_terminal:
            yield "has a terminal"


def confinement(host: Host) -> Iterator[Finding]:
    """What the processes of the running app may still do."""
    supervisor = host.server
    if supervisor is None or os.geteuid() != 0:
        return
    found = list(app_processes(supervisor))
    accounts = find_accounts()
    uids = {f"{APP}-app": accounts.uid} | {role_account(role): uid for role, uid in accounts.uids.items()}
    faults = [f"{one.name} (pid {one.pid}) {fault}" for one in found for fault in one.lacks()]
    faults += [
        f"{one.name} (pid {one.pid}) runs as uid {one.uid}" for one in found if uids.get(one.name) != one.uid
    ]
    yield from (fail(CODE, fault, RESTART) for fault in faults)
    own = namespaces_of(supervisor)
    shared = {kind for one in found for kind in NAMESPACES if one.namespaces[kind] == own[kind]}
    for kind in sorted(shared):
        yield warn(f"{CODE}.{kind}", f"the app has no {NAMESPACES[kind]} namespace of its own", LOG)
    if found and not faults:
        apart = ", ".join(name for kind, name in NAMESPACES.items() if kind not in shared)
        yield ok(
            CODE,
            f"{len(found)} processes of {len(uids)} accounts: no capabilities, seccomp, no terminal;"
            f" namespaces of their own: {apart or 'none'}",
        )


def app_processes(supervisor: int) -> Iterator[AppProcess]:
    """The processes of the app below the supervisor; those that end meanwhile are left out."""
    everything = {pid: status_of(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
    family = {supervisor}
    for _ in range(3):  # the parent, its roles, gunicorn's workers
        family |= {pid for pid, status in everything.items() if int(status.get("PPid", -1)) in family}
    for pid in sorted(family):
        name = everything[pid].get("Name", "")
        if not name.startswith(f"{APP}-") or name in OTHERS:
            continue
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                has_terminal = file.read().rpartition(")")[2].split()[4] != "0"
            yield AppProcess(pid, name, everything[pid], has_terminal, namespaces_of(pid))
        except (FileNotFoundError, ProcessLookupError):
            continue


def status_of(pid: int) -> dict[str, str]:
    """Fields of /proc/PID/status; none for a process that is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except (FileNotFoundError, ProcessLookupError):
        return {}


def namespaces_of(pid: int) -> dict[str, str]:
    """The namespaces of a process, by kind."""
    return {kind: os.readlink(f"/proc/{pid}/ns/{kind}") for kind in NAMESPACES}
