"""Event streams: from a commit to its clients, and what two hundred of them cost the others."""

from __future__ import annotations

import http.client
import json
import os
import pwd
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

from bench.pairs import Row, Shell, Side, timed
from bench.ports import pss_kib
from bench.stage import NEIGHBOUR, USER, Stage
from e2e import files
from e2e.files import Endpoint
from e2e.installation import PASSWORD, SVC

CHANGES = 200
STREAMS, FEW = 200, 48
MEMORY_MB, HEALTH, LATENCY_MS = 30.0, 2.0, 50.0
ROUNDS, EACH = 5, 6

# As any process of the service does: a transaction, then the touch; prints when each commit was done.
WRITER = """
import os, sqlite3, sys, time
path, owner, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connection = sqlite3.connect(path, isolation_level=None, timeout=10)
connection.execute("PRAGMA synchronous = FULL")
for number in range(count):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO events (type, owner_id, subject_type, subject_id)"
                       " VALUES ('workspace.updated', ?, 'bench', ?)", (owner, str(number)))
    connection.execute("COMMIT")
    print(number, time.monotonic_ns(), flush=True)
    os.utime(path + ".events")
    time.sleep(0.02)
"""


def rows(shell: Shell, set_up: Stage) -> Iterator[Row]:
    """Latency over both listeners; memory, health and the list beside many streams."""
    here = files.socket_of(USER, set_up.env)
    files.session_of(USER, set_up.env, PASSWORD)  # a first login loads its libraries
    _health(here)
    before = _memory(set_up)
    with held(STREAMS, set_up):  # the first ones of this service
        time.sleep(1)
        more = _memory(set_up) - before
    yield Row(f"memory of {STREAMS} streams | bar", more, MEMORY_MB, more / MEMORY_MB, 1.0, "MB")
    yield from latency("the socket", here, set_up)
    yield from latency("TLS", files.session_of(USER, set_up.env, PASSWORD), set_up)
    listing = shell.side(str(SVC), "ws", "list")
    yield _beside(f"ws list beside {FEW} streams | alone", listing, FEW, set_up)
    yield _beside(f"health beside {STREAMS} streams | alone", Side(lambda: _health(here)), STREAMS, set_up)


def latency(name: str, listener: Endpoint, set_up: Stage, user: str = USER) -> Iterator[Row]:
    """From the end of a commit in another process until the client, who is that user, has the event."""
    database, svc = set_up.env["SVC_DB"], pwd.getpwnam("svc")
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        [owner] = connection.execute("SELECT id FROM users WHERE name = ?", (user,)).fetchone()
    got: dict[int, int] = {}
    with listener.begun("/api/events?type=workspace.updated") as answer:
        while not answer.readline().startswith(b"id: "):
            pass
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, database, str(owner), str(CHANGES)],
            user=svc.pw_uid, group=svc.pw_gid, cwd="/", stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        while len(got) < CHANGES:
            line = answer.readline()
            if line.startswith(b"data: "):
                got[int(json.loads(line[6:])["subject"]["id"])] = time.monotonic_ns()
        printed, _ = writer.communicate()
    sent = {int(number): int(at) for number, at in (line.split() for line in printed.splitlines())}
    took = sorted((got[number] - sent[number]) / 1e6 for number in sent)
    for part, place in (("p50", CHANGES // 2), ("p99", CHANGES * 99 // 100)):
        value = took[place]
        yield Row(
            f"event, {part}, commit to client over {name} | bar", value, LATENCY_MS, value / LATENCY_MS, 1.0
        )


def held(count: int, set_up: Stage) -> ExitStack:
    """So many open streams of two users, shared out between the listeners."""
    users = (USER, NEIGHBOUR)
    listeners = [files.socket_of(user, set_up.env) for user in users]
    listeners += [files.session_of(user, set_up.env, PASSWORD) for user in users]
    with ExitStack() as opened:
        for number in range(count):
            answer = opened.enter_context(listeners[number % len(listeners)].begun("/api/events"))
            if answer.status != 200:
                raise RuntimeError(answer.read().decode())
        return opened.pop_all()


def _beside(name: str, side: Side, count: int, set_up: Stage) -> Row:
    timed(side)
    pairs = []
    for _ in range(ROUNDS):
        alone = statistics.median(timed(side) for _ in range(EACH))
        with held(count, set_up):
            pairs.append((statistics.median(timed(side) for _ in range(EACH)), alone))
    return Row(
        name,
        statistics.median(beside for beside, _ in pairs),
        statistics.median(alone for _, alone in pairs),
        statistics.median(beside / alone for beside, alone in pairs),
        HEALTH,
    )


def _health(listener: Endpoint) -> None:
    with listener.line() as line:
        line.request("GET", "/api/health")
        if line.getresponse().status != http.client.OK:
            raise RuntimeError("health is not well")


def _memory(set_up: Stage) -> float:
    """PSS of everything of svc, in megabytes."""
    return (
        sum(pss_kib(one.pid) for one in set_up.service.members() if os.path.exists(f"/proc/{one.pid}")) / 1024
    )
