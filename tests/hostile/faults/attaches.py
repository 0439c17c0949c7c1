"""Thousands of attaches to one terminal: descriptors, threads and memory of listener and shim stay.

`test_live_clients.py` attaches some hundred times. Many: `tests/run release -- attaches 10000`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from e2e.installation import Service, environment, process, processes_of, run
from e2e.registries import registry_in
from e2e.surroundings import must, served, template_of
from hostile.attackers import live
from ports import free_port
from waiting import until

from svc.websocket import BINARY

WARM_UP = 20  # attaches after which allocators, pools and caches have their size
DESCRIPTORS, THREADS = 4, 2  # for what is under way by chance
GROWTH_KIB = 6 * 1024  # of a process, for its allocator and the database's page cache
STATE, RUN, USER = Path("/var/lib/svc-attaches"), Path("/run/svc-attaches"), "tsz-alice"


class Figures(NamedTuple):
    """A process at one moment."""

    descriptors: int
    threads: int
    kib: int


def resident_kib(pid: int) -> int:
    """The resident memory of a process."""
    found = process(pid)
    assert found is not None
    return int(found.status["VmRSS"].split()[0])


def told(found: Figures) -> str:
    """The figures in words."""
    return f"{found.descriptors} descriptors, {found.threads} threads, {found.kib / 1024:.1f} MiB"


def figures(pid: int) -> Figures:
    """The figures of a process."""
    found = process(pid)
    assert found is not None
    return Figures(len(os.listdir(f"/proc/{pid}/fd")), int(found.status["Threads"]), resident_kib(pid))


def shim_of(user: str) -> int:
    """The pid of the user's shim, not of its small child."""
    found = [one for one in processes_of(user) if "svc_helper.shim" in one.args]
    assert found, [one.args for one in processes_of(user)]
    return max(found, key=lambda one: resident_kib(one.pid)).pid


def attach(
    service: Service, user: str, workspace: str, listener: int, count: int
) -> tuple[list[str], list[str]]:
    """Attach so many times to a terminal that goes on; lines about it, and what was wrong."""
    with live.viewer(service, user, workspace, "", "sh", "-c", "echo ready; exec cat") as first:
        message = first.next()
        assert message is not None
        terminal = json.loads(message[1])["terminal"]["id"]
        first.until(b"ready")
    for number in range(WARM_UP):
        once(service, user, workspace, terminal, number)
    pids = {"listener": listener, "shim": shim_of(user)}
    settle(service, user, workspace, terminal)
    samples = [{name: figures(pid) for name, pid in pids.items()}]
    began = time.monotonic()
    for half in (count // 2, count - count // 2):  # the first fills what has a size, such as page caches
        for number in range(half):
            once(service, user, workspace, terminal, number)
        settle(service, user, workspace, terminal)
        samples.append({name: figures(pid) for name, pid in pids.items()})
    took = time.monotonic() - began
    wrong = []
    lines = [f"{count} attaches in {took:.1f} s, {took / count * 1000:.1f} ms each"]
    for name in pids:
        then, between, now = (sample[name] for sample in samples)
        lines.append(f"{name}: {told(then)} before, {told(between)} half way, {told(now)} after")
        if (
            now.descriptors > then.descriptors + DESCRIPTORS
            or now.threads > then.threads + THREADS
            or now.kib > between.kib + GROWTH_KIB
        ):
            wrong.append(lines[-1])
    with live.viewer(service, user, workspace, terminal) as last:  # the terminal is the same
        last.send(b"still here\n")
        last.until(b"still here\r\nstill here")
    must(run(user, "ws", "shell", workspace, "--close", terminal, env=service.env))
    return lines, wrong


def once(service: Service, user: str, workspace: str, terminal: str, number: int) -> None:
    """Attach, and leave: at once, after a look, or after typing."""
    with live.viewer(service, user, workspace, terminal) as one:
        while one.status == 409:  # the last ones have not been forgotten yet
            one.sock.close()
            time.sleep(0.05)
            again = live.viewer(service, user, workspace, terminal)
            one.sock, one.status, one.messages = again.sock, again.status, again.messages
        assert one.status == 101, one.status
        if number % 3:
            one.until(b"ready")
        if number % 3 == 2:
            one.sock.sendall(live.frame(BINARY, b"", mask=True))


def settle(service: Service, user: str, workspace: str, terminal: str) -> None:
    """Wait until nobody is attached."""

    def viewers() -> list[int]:
        listed = must(run(user, "ws", "shell", workspace, "--list", "--json", env=service.env))
        return [row["viewers"] for row in listed.json()["items"] if row["id"] == terminal]

    until(lambda: viewers() == [0], 30, 0.2)


def main(count: int) -> int:
    """With a service and a workspace of its own; 1 when something has grown."""
    env = environment(free_port(), STATE, RUN)
    with (
        tempfile.TemporaryDirectory() as name,
        registry_in(Path(name)) as registry,
        served(env, registry, Path(name) / "log", [USER]) as service,
    ):
        template = template_of(USER, registry, env)
        must(run(USER, "ws", "setup", "--template", template, "--name", "lab", env=env))
        must(run(USER, "ws", "start", "lab", env=env))
        listener = next(one.pid for one in service.members() if one.status["Name"] == "svc-unix")
        lines, wrong = attach(service, USER, "lab", listener, count)
        must(run(USER, "ws", "delete", "lab", "--yes", env=env))
    print("\n".join(lines))
    print(f"wrong: {wrong or 'nothing'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 10_000))
