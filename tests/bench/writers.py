"""64 threads that write through HTTP at once: refusals, waiting times, and equal shares.

`tests/run bench -- writers`. Each thread changes a workspace of its own over a kept connection, 16
threads for each of four users; beside them a process of its own writes ten times a second, as the
worker does. A row's `theirs` is one thread alone.
"""

from __future__ import annotations

import json
import pwd
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from bench.pairs import Row
from bench.stage import Stage
from e2e.installation import PREFIX, Service, remove_user, run
from e2e.surroundings import in_database, must
from hostile.attackers.raw import connect, request, whole

PASSWORD = "four dry quills by the lamp\n"
USERS = tuple(f"tsq-writer{number}" for number in range(4))
EACH = 16
SECONDS = 10.0

BESIDE = """
import sys, time
from svc.db.connect import database, open_database, write
from svc.errors import Maintenance
open_database(sys.argv[1])
end, waits, refused = time.monotonic() + float(sys.argv[2]), [], 0
while time.monotonic() < end:
    began = time.monotonic()
    try:
        with write():
            database.execute_sql("INSERT OR REPLACE INTO facts (name, value) VALUES ('beside', '')")
    except Maintenance:
        refused += 1
    waits.append(time.monotonic() - began)
    time.sleep(0.1)
print(refused, *waits)
"""


class Thread(threading.Thread):
    """One writer: how long each of its calls took, and how many were refused."""

    def __init__(self, path: str, user: str, name: str, end: float) -> None:
        super().__init__(daemon=True)
        self.path, self.user, self.name_of_workspace, self.end = path, user, name, end
        self.took: list[float] = []
        self.refused = 0

    def run(self) -> None:
        sock = connect(self.path, self.user)
        number = 0
        while time.monotonic() < self.end:
            number += 1
            body = json.dumps({"display_name": f"round {number}"}).encode()
            message = request("PATCH", f"/api/workspaces/{self.name_of_workspace}", body)
            began = time.monotonic()
            status = _status(sock, message.replace(b"Connection: close\r\n", b""))
            self.took.append(time.monotonic() - began)
            if status != 200:
                self.refused += 1
        sock.close()


class Result(NamedTuple):
    """What a number of threads came to; times in milliseconds."""

    calls: int
    refused: int
    median_ms: float
    p99_ms: float
    fewest: int
    most: int


def _status(sock: socket.socket, message: bytes) -> int:
    sock.sendall(message)
    data = b""
    while not whole(data):
        part = sock.recv(65536)
        if not part:
            raise RuntimeError("the server closed the connection")
        data += part
    return int(data.split(b" ", 2)[1])


def write_for(service: Service, names: list[tuple[str, str]], seconds: float = SECONDS) -> Result:
    """Let a thread for each (user, workspace) write for so many seconds."""
    end = time.monotonic() + seconds
    threads = [Thread(service.env["SVC_SOCKET"], user, name, end) for user, name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = sorted(1000 * one for thread in threads for one in thread.took)
    counts = [len(thread.took) - thread.refused for thread in threads]
    return Result(
        len(took), sum(thread.refused for thread in threads), statistics.median(took),
        took[int(len(took) * 0.99)], min(counts), max(counts),
    )  # fmt: skip


def beside(env: dict[str, str], seconds: float = SECONDS) -> subprocess.Popen[str]:
    """A process that writes by itself; it prints its refusals and its waits in seconds."""
    account = pwd.getpwnam("svc")
    command = [str(PREFIX / "bin/python3"), "-I", "-c", BESIDE, env["SVC_DB"], str(seconds)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd="/", user=account.pw_uid, group=account.pw_gid,
        extra_groups=[],
    )  # fmt: skip


def make_workspaces(env: dict[str, str]) -> list[tuple[str, str]]:
    """A stopped workspace for each thread: (user, name)."""
    made = []
    for user in USERS:
        for number in range(EACH):
            name = f"writer-{number}"
            in_database(
                env,
                "INSERT INTO workspaces (id, owner_id, name, template_id, template_revision, image_ref,"
                " status, status_since, created_at, updated_at) SELECT ?, u.id, ?, t.id, 1, 'r.example/a:1',"
                " 'stopped', t.created_at, t.created_at, t.created_at"
                " FROM users u, (SELECT * FROM templates LIMIT 1) t WHERE u.name = ?",
                f"ws-{user[-1]}{number:07}", name, user,
            )  # fmt: skip
            made.append((user, name))
    return made


def rows(set_up: Stage) -> Iterator[Row]:
    """Refusals, median, 99th percentile, the smallest share beside the largest, the other process's wait."""
    made: list[str] = []
    try:
        for user in USERS:
            remove_user(user)
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", user], check=True)
            made.append(user)
            must(
                run(
                    "root",
                    "admin",
                    "create-user",
                    user,
                    env=set_up.env,
                    stdin=PASSWORD,
                )
            )
        names = make_workspaces(set_up.env)
        alone = write_for(set_up.service, names[:1], 2.0)
        process = beside(set_up.env)
        many = write_for(set_up.service, names)
        refused, *waits = process.communicate(timeout=60)[0].split()
        other = sorted(1000 * float(wait) for wait in waits)
    finally:
        for user in made:
            remove_user(user)
    threads = len(names)
    yield Row(f"{threads} writing threads, refused | calls", many.refused, many.calls,
              many.refused / many.calls, None, "")  # fmt: skip
    yield Row(f"{threads} writing threads, median | one", many.median_ms, alone.median_ms,
              many.median_ms / alone.median_ms, None)  # fmt: skip
    yield Row(f"{threads} writing threads, 99 in 100 | one", many.p99_ms, alone.p99_ms,
              many.p99_ms / alone.p99_ms, None)  # fmt: skip
    yield Row(f"{threads} writing threads, fewest calls of one | most", many.fewest, many.most,
              many.fewest / many.most, None, "")  # fmt: skip
    yield Row(f"another process beside them, 99 in 100 | median ({refused} refused)",
              other[int(len(other) * 0.99)], statistics.median(other),
              other[-1] / statistics.median(other), None)  # fmt: skip
