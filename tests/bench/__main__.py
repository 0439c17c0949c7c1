"""`tests/run bench`: ratios measured pairwise in one run, against the Podman command line as the same user.

`tests/run bench -- images` measures one part of it, and `tests/run bench -- --busy 4 images` with four
processes beside that only compute. Prints one table; never fails for a figure, because a shared
machine's figures are no test. docs/performance.md keeps the last ones with their machine.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import (
    apps,
    backups,
    busy,
    crowd,
    custody,
    growth,
    load,
    ports,
    stores,
    strangers,
    streams,
    tabs,
    terminals,
    tls,
    transfers,
    trees,
    usage,
    writers,
)
from bench.pairs import Row, Shell, pair, show
from bench.stage import IMAGE, USER, Stage, stage
from e2e.installation import SVC, Process, processes_of
from e2e.installation import run as run_as
from waiting import until


def commands(shell: Shell) -> Iterator[Row]:
    """What costs nothing but the start of a program and one question."""
    svc = str(SVC)
    yield pair(
        "--version | podman --version", shell.side(svc, "--version"), shell.side("podman", "--version")
    )
    listing, ps = shell.side(svc, "ws", "list"), shell.side("podman", "ps")
    yield pair("ws list | podman ps", listing, ps, bar=1.0)
    if shutil.which("docker"):
        yield pair("ws list | docker --version", listing, shell.side("docker", "--version"), reach=1.0)


def lifecycle(shell: Shell, set_up: Stage) -> Iterator[Row]:
    """Start, stop, exec and logs of one workspace against a container made alike."""
    svc, other, image = str(SVC), "bench-other", f"{set_up.registry}/{IMAGE}"
    create = ["podman", "create", "--name", other, "--init", "--interactive", "--pull=never", image]
    shell(*create)
    start, stop = (svc, "ws", "start", "bench"), (svc, "ws", "stop", "bench")
    p_start, p_stop = ("podman", "start", other), ("podman", "stop", other)
    ours_up, theirs_up = lambda: shell(*start), lambda: shell(*p_start)
    ours_down, theirs_down = lambda: shell(*stop), lambda: shell(*p_stop)
    cold = lambda: end_agent()  # noqa: E731  named for the table's word

    def cold_stopped() -> None:
        ours_down()
        cold()

    def cold_looked() -> None:  # a new listener has not brought this user's agent up yet
        cold_stopped()
        os.kill(set_up.service.named("svc-unix").pid, signal.SIGKILL)
        until(set_up.service.answers, 15)
        run_as("root", "ws", "start", "none", env=set_up.env)  # the listener has loaded what a start needs
        shell(svc, "ws", "list")

    def new_agent() -> None:  # warm, and has not looked at the workspace yet
        cold()
        shell(*run)

    yield pair("ws start, warm | podman start", shell.side(*start, before=ours_down),
               shell.side(*p_start, before=theirs_down), bar=1.0, reach=0.6)  # fmt: skip
    yield pair("ws start, cold | podman start", shell.side(*start, before=cold_stopped),
               shell.side(*p_start, before=theirs_down), bar=1.3, reach=1.0, rounds=8)  # fmt: skip
    yield pair("ws start, cold, after ws list | podman start", shell.side(*start, before=cold_looked),
               shell.side(*p_start, before=theirs_down), bar=1.0, rounds=8)  # fmt: skip
    yield pair("ws stop, warm | podman stop", shell.side(*stop, before=ours_up),
               shell.side(*p_stop, before=theirs_up), bar=1.0)  # fmt: skip
    ours_up(), theirs_up()
    run, p_run = (svc, "ws", "exec", "bench", "--", "true"), ("podman", "exec", other, "true")
    yield pair(
        "ws exec -- true, warm | podman exec", shell.side(*run), shell.side(*p_run), bar=0.8, reach=0.2
    )
    yield pair("ws exec -- true, cold | podman exec", shell.side(*run, before=cold), shell.side(*p_run),
               bar=0.8, reach=0.6, rounds=8)  # fmt: skip
    monitor, p_stats = (svc, "ws", "monitor", "bench"), ("podman", "stats", "--no-stream", other)
    yield pair("ws monitor | podman stats --no-stream", shell.side(*monitor), shell.side(*p_stats),
               bar=1.0, reach=0.5)  # fmt: skip
    yield pair("ws monitor, the first | podman stats", shell.side(*monitor, before=new_agent),
               shell.side(*p_stats), rounds=6)  # fmt: skip
    logs, p_logs = (svc, "ws", "logs", "bench"), ("podman", "logs", other)
    yield pair("ws logs | podman logs", shell.side(*logs), shell.side(*p_logs))
    shell("podman", "rm", "-f", "-t", "0", other)


SLACK_MS = 200.0  # "overhead <= 5 % or 0.2 s"


def images(shell: Shell, set_up: Stage) -> Iterator[Row]:
    """Pull and build against Podman's own, the image removed before each; and a look at an image."""
    svc, reference = str(SVC), set_up.image()

    def without(name: str) -> Callable[[], None]:
        return lambda: shell("podman", "rmi", "--force", "--ignore", name)

    yield pair("image pull | podman pull",
               shell.side(svc, "image", "pull", "big", "--wait", before=without(reference)),
               shell.side("podman", "pull", "-q", "--tls-verify=false", reference, before=without(reference)),
               bar=1.05, slack=SLACK_MS, rounds=7)  # fmt: skip
    built, file = set_up.recipe()
    other = "localhost/bench-other:1"
    build = ("podman", "build", "-q", "--pull=never", "-t", other, "-f", str(file), str(file.parent))

    def unbuilt() -> None:  # both have the same layers, and would find the other's
        shell("podman", "rmi", "--force", "--ignore", built, other)

    yield pair("image build | podman build",
               shell.side(svc, "image", "build", "recipe", "--wait", before=unbuilt),
               shell.side(*build, before=unbuilt), bar=1.05, slack=SLACK_MS, reach=1.0, rounds=7)  # fmt: skip
    yield pair("image status | podman image exists", shell.side(svc, "image", "status", "big"),
               shell.side("podman", "image", "exists", reference), bar=1.0)  # fmt: skip


QUIET_S = 0.5  # in which a call that follows a stop comes


def end_agent() -> None:
    """Take the user's agent and Podman service away, until nobody starts others; the containers stay.

    The worker does, to ask about a container that has just been stopped.
    """
    while found := [one.pid for one in processes_of(USER) if _is_agent(one)]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(QUIET_S)


def _is_agent(one: Process) -> bool:
    return "svc_helper.agent" in one.args or "system service" in one.args


def served(set_up: Stage) -> Iterator[Row]:
    """The list endpoint under load, and whether its cost grows with what it does not show."""
    socket_path = set_up.env["SVC_SOCKET"]
    target = "/api/workspaces?limit=50"
    set_up.fill(60)
    yield load.against_hello("GET workspaces, 50 rows | raw WSGI hello", USER, socket_path, target)
    few = load.rate(USER, socket_path, target)
    set_up.fill(10_000)
    many = load.rate(USER, socket_path, target)
    yield Row(
        "GET workspaces, 10,000 rows | 60 rows", many, few, many / few, 0.8, "req/s", higher_is_better=True
    )


IDLE_S = 15.0  # threads of a listener end when they were idle for ten seconds


def memory(set_up: Stage) -> Iterator[Row]:
    """PSS of everything of svc, idle, without agents; the bar is in megabytes."""
    time.sleep(IDLE_S)
    total = sum(ports.pss_kib(one.pid) for one in set_up.service.members()) / 1024
    yield Row("idle memory of the whole service | bar", total, 100, total / 100, 1.0, "MB", reach=0.72)
    for argument, limit in (("svc_helper.root.__main__", 10),):
        each = ports.pss_kib(set_up.service.member(argument).pid) / 1024
        yield Row(f"memory of {argument.split('.')[0]} | bar", each, limit, each / limit, 1.0, "MB")
    agents = [one for one in processes_of(USER) if "svc_helper.agent" in one.args]
    for agent in agents[:1]:
        each = ports.pss_kib(agent.pid) / 1024
        yield Row("memory of an agent | bar", each, 10, each / 10, 1.0, "MB")


def pages(set_up: Stage) -> Iterator[Row]:
    """What the browser does; nothing without one, which `tests/run bench -- pages` installs."""
    if importlib.util.find_spec("selenium") is None or not os.path.exists("/usr/bin/chromedriver"):
        print("pages: no Chromium here; tests/run bench -- pages installs it")
        return
    from bench import pages as in_chromium

    yield from in_chromium.rows(set_up)


def parts_of(shell: Shell, set_up: Stage) -> dict[str, Callable[[], Iterator[Row]]]:
    """The parts of the benchmark, by name."""
    return {
        "commands": lambda: commands(shell),
        "tabs": lambda: tabs.rows(shell),
        "lifecycle": lambda: lifecycle(shell, set_up),
        "images": lambda: images(shell, set_up),
        "ports": lambda: ports.rows(shell, set_up),
        "apps": lambda: apps.rows(set_up),
        "terminals": lambda: terminals.rows(shell, set_up, end_agent),
        "files": lambda: transfers.rows(shell, set_up),
        "tls": lambda: tls.rows(shell, set_up),
        "trees": lambda: trees.rows(shell),
        "crowd": lambda: crowd.rows(shell, set_up),
        "writers": lambda: writers.rows(set_up),
        "backups": lambda: backups.rows(set_up),
        "custody": lambda: custody.rows(shell, set_up),
        "strangers": lambda: strangers.rows(shell, set_up),
        "streams": lambda: streams.rows(shell, set_up),
        "growth": lambda: growth.rows(shell, set_up),
        "stores": lambda: stores.rows(shell, set_up),
        "usage": lambda: usage.rows(shell, set_up),
        "pages": lambda: pages(set_up),
        "memory": lambda: memory(set_up),
        "served": lambda: served(set_up),
    }


def main() -> int:
    """Print the table as it grows, then whole; 0 when every row was measured."""
    parser = argparse.ArgumentParser(prog="tests/run bench --", description="Ratios in pairs, in one run.")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="processes that compute beside")
    parser.add_argument("parts", nargs="*", metavar="PART", help="by default all")
    args = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as set_up, busy.beside(args.busy):
        parts = parts_of(Shell(USER, set_up.env), set_up)
        for name in args.parts or parts:
            for row in parts[name]():
                rows.append(row)
                print(show([row]).splitlines()[1], flush=True)
    versions = subprocess.run(
        ["podman", "--version"], capture_output=True, text=True, check=False
    ).stdout.strip()
    load = f"{args.busy} processes beside, load {os.getloadavg()[0]:.1f}"
    print(f"\n{versions}, Python {sys.version.split()[0]}, {os.cpu_count()} cores, {load}\n{show(rows)}")
    for word, names in (
        ("bars", [row.name for row in rows if not row.met]),
        ("reach", [row.name for row in rows if not row.reached]),
    ):
        print(f"{word} missed: {', '.join(names) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
