"""What the service keeps in memory after mixed and hostile use, and which of its processes keeps it."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

from bench import strangers, streams
from bench.pairs import Row, Shell
from bench.ports import pss_kib
from bench.stage import USER, Stage
from e2e import files
from e2e.files import Endpoint
from e2e.installation import PASSWORD, SVC

ROUNDS = int(os.environ.get("SVC_BENCH_ROUNDS", "8"))
THREADS, EACH = 24, 30
WORKSPACES, ENTRIES, BODY = 200, 10_000, 24 << 20
SETTLED_S = 30
REPLACED_S = 90  # longer than a listener that has grown waits until it is replaced
MEMORY_MB, REACH_MB = 130.0, 90.0


def rows(shell: Shell, set_up: Stage) -> Iterator[Row]:
    """PSS of everything of svc but agents after ROUNDS of use: when threads have ended, and for good."""
    set_up.fill(WORKSPACES)
    for number in range(ENTRIES):
        path = files.work(USER) / "many" / str(number)
        files.put(USER, f"many/{number}") if not number else path.touch()
    shell(str(SVC), "ws", "start", "bench")
    before = kept(set_up)
    for _ in range(ROUNDS):
        use(shell, set_up)
    for name, pause_s, bar, reach in (
        ("half a minute after mixed and hostile use | bar", SETTLED_S, None, None),
        ("memory after mixed and hostile use | bar", REPLACED_S, 1.0, REACH_MB / MEMORY_MB),
    ):
        time.sleep(pause_s)
        after = kept(set_up)
        for process, megabytes in after.items():
            print(f"  {process}: {before.get(process, 0.0):.1f} to {megabytes:.1f} MB", flush=True)
        total = sum(after.values())
        yield Row(name, total, MEMORY_MB, total / MEMORY_MB, bar, "MB", reach=reach)


def kept(set_up: Stage) -> dict[str, float]:
    """The PSS of each process of svc, in megabytes, by name."""
    found: dict[str, float] = {}
    for one in set_up.service.members():
        with suppress(FileNotFoundError, ProcessLookupError):
            name = one.status["Name"]
            found[name] = found.get(name, 0.0) + pss_kib(one.pid) / 1024
    return found


def use(shell: Shell, set_up: Stage) -> None:
    """One round: crowds of requests at both listeners, transfers, streams, strangers, an exec."""
    here, there = files.socket_of(USER, set_up.env), files.session_of(USER, set_up.env, PASSWORD)
    beside(lambda: asked(here), THREADS)
    beside(lambda: asked(there), THREADS)
    beside(lambda: moved(here), 6)
    beside(lambda: moved(there), 4)
    with streams.held(120, set_up):
        beside(lambda: asked(here), 4)
    with ExitStack() as stack:
        strangers.gather(stack, set_up)
        beside(lambda: asked(here), 4)
    for _ in range(3):
        shell(str(SVC), "ws", "exec", "bench", "--", "true")


def beside(work: Callable[[], None], count: int) -> None:
    """The same work in so many threads."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def asked(listener: Endpoint) -> None:
    """Lists, long lists, what is not there, and what nobody should send."""
    bad = json.dumps({"name": "x" * 200_000, "env": [{"name": "A", "value": "y" * 1000}] * 100}).encode()
    for number in range(EACH):
        with suppress(OSError):
            listener.ask("GET", "/api/workspaces?limit=200")
            listener.ask("GET", "/api/operations?limit=200" if number % 2 else "/api/templates?limit=200")
            listener.ask("GET", f"/api/workspaces/none-{number}")
        if number % 10 == 0:
            with suppress(OSError):
                listener.ask("POST", "/api/workspaces", bad)
                listener.ask("POST", "/api/workspaces", {"name": "[" * 5000})
                listener.ask("GET", files.at("many", "list"))


def moved(listener: Endpoint) -> None:
    """A file up, in chunks too, and down again."""
    name = f"moved-{threading.get_ident()}"
    with suppress(OSError):
        for chunked in (False, True):
            listener.ask("PUT", files.at(name, "file", force="true"), os.urandom(BODY), chunked=chunked)
        listener.ask("GET", files.at(name, "download"))
