"""What grows with the installation and what does not: two services in turn, one with 200 users and 2 GB.

`tests/run bench -- growth`. The large one has 200 accounts with 10 workspaces each, one user with
10,000, and a database of SVC_BENCH_GB, mostly audit rows and events; the small one has one user with
10. Most of the 200 are rows alone; AGENTS of them are Linux users, whose agents the worker starts.
"""

from __future__ import annotations

import os
import pwd
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import busy, streams, writers
from bench.pairs import Row, Shell, pair
from bench.ports import pss_kib
from bench.stage import USER, Stage
from e2e import files
from e2e.installation import PREFIX, SVC, Service, environment, processes, run
from e2e.surroundings import make_accounts, must, served, template_of
from ports import free_port

LARGE, HEAVY = "tsq-large", "tsq-heavy"
STATE, RUN = Path("/var/lib/svc-bench-large"), Path("/run/svc-bench-large")
GIGABYTES = float(os.environ.get("SVC_BENCH_GB", "2"))
ROUNDS = int(os.environ.get("SVC_BENCH_ROUNDS", "9"))
USERS, EACH, MANY, AGENTS = 200, 10, 10_000, 10
IDLE_S, CHECKED_S = 60, 45.0  # a checkpoint comes every 30 s
WAIT_MS = 1000.0
BAR, REACH = 1.5, 1.1
BURST = 100  # requests of one measurement

# argv: database, gigabytes, users, workspaces of each, of HEAVY, names of LARGE and HEAVY
FILL = """
import sqlite3, sys
path, gigabytes, users, each, many, large, heavy = sys.argv[1:]
users, each, many, share = int(users), int(each), int(many), float(gigabytes) / 2
db = sqlite3.connect(path, isolation_level=None)
db.executescript("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; BEGIN")
[first] = db.execute("SELECT max(id) + 1 FROM users").fetchone()
[audit] = db.execute("SELECT max(id) FROM audit").fetchone()
T = "'2026-01-01T00:00:00.000Z'"
def rows(table, columns, values, count):
    db.execute(f"INSERT INTO {table} ({columns}) WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + 1"
               f" FROM s WHERE n < {int(count) - 1}) SELECT {values} FROM s")
rows("users", "id, name, uid, provisioning, created_at, updated_at",
     f"{first} + n, 'row' || n, 300000 + n, 'ready', {T}, {T}", users)
[template, spec] = db.execute("SELECT t.id, r.spec_json FROM templates t JOIN users u ON u.id = t.owner_id"
    " JOIN template_revisions r ON r.template_id = t.id WHERE u.name = ?", (large,)).fetchone()
def workspaces(owner, count, label):
    rows("workspaces", "id, owner_id, name, template_id, template_revision, image_ref, status, status_since,"
         " created_at, updated_at",
         f"'ws-' || printf('{label}%06x', n), {owner}, 'row-' || n, '{template}', 1, 'r.example/a:1',"
         f" 'stopped', {T}, {T}, {T}", count)
for number in range(users):
    workspaces(first + number, each, f"{number:02x}")
ids = dict(db.execute("SELECT name, id FROM users"))
workspaces(ids[large], each - 1, "yl")
workspaces(ids[heavy], many, "yh")
who = f"iif(n % {users} = 0, {ids[large]}, {first} + n % {users})"
rows("audit", "id, at, user_id, user_name, via, action, target, outcome, request_id, detail_json, hash",
     f"{audit} + 1 + n, strftime('%Y-%m-%dT%H:%M:%fZ', 1767225600 + n * 6, 'unixepoch'), {who},"
     f" iif(n % {users} = 0, '{large}', 'row' || (n % {users})), 'socket',"
     " CASE n / 2 % 4 WHEN 0 THEN 'workspace.start' WHEN 1 THEN 'workspace.stop' WHEN 2 THEN 'fs.list'"
     " ELSE iif(n % 1000 = 6, 'admin.quota', 'workspace.exec') END, 'ws-' || printf('%08x', n / 2),"
     " iif(n % 1000 = 7, 'image_missing', iif(n % 2, 'ok', 'begun')), 'req-' || lower(hex(randomblob(8))),"
     " '{\\"argv\\":[\\"python3\\",\\"-m\\",\\"train\\",\\"--out\\",\\"/work/results/' || n || '\\"]}',"
     " lower(hex(randomblob(32)))", 4_300_000 * share)
rows("events", "at, type, owner_id, actor, via, subject_type, subject_id, subject_name, data_json",
     "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || (2500000 - n) || ' seconds'), 'workspace.status_changed',"
     f" {who}, 'row', 'socket', 'workspace', 'ws-' || printf('%08x', n / 1000), 'row',"
     " '{\\"from\\":\\"stopped\\",\\"to\\":\\"starting\\",\\"exit_code\\":null}'", 2_000_000 * share)
rows("operations", "id, owner_id, kind, subject_type, subject_id, status, request_json, created_at,"
     " updated_at, finished_at", f"'op-' || printf('%08x', n), {first} + n % {users}, 'pull', 'image',"
     f" 'r.example/a:' || n, 'succeeded', '{{}}', {T}, {T}, {T}", 20_000 * share)
rows("operation_log", "operation_id, line, at, text", "'op-' || printf('%08x', n / 400), n % 400,"
     f" {T}, 'STEP 3/7: RUN apt-get update && apt-get install -y something rather long ' || n",
     2_000_000 * share)
db.execute("COMMIT")
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
"""
# argv: database, names: each gets the first workspace of an account that is a row alone
OWN = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=10) as db:
    for number, name in enumerate(sys.argv[2:]):
        db.execute("UPDATE workspaces SET owner_id = (SELECT id FROM users WHERE name = ?) WHERE id = (SELECT"
                   " w.id FROM workspaces w JOIN users u ON u.id = w.owner_id WHERE u.name = ? LIMIT 1)",
                   (name, f"row{number}"))
"""
# argv: database; an old event before all others, as many as a day of 200 users leaves, and the daily removal
FORGET = """
import sys, time
from svc.db.connect import database, open_database, write
from svc.domain import retention
open_database(sys.argv[1])
with write():
    database.execute_sql("UPDATE events SET at = '2026-01-01T00:00:00.000Z' WHERE id IN"
                         " (SELECT id FROM events ORDER BY id LIMIT 50000)")
print("ready", flush=True)
sys.stdin.read(1)
began = time.monotonic()
counts = retention.forget_ended()
print(sum(counts.values()), time.monotonic() - began)
"""


def rows(shell: Shell, small: Stage) -> Iterator[Row]:
    """Each as a ratio of the large service to the small one."""
    small.fill(EACH)
    env = environment(free_port(), STATE, RUN)
    agents = [f"tsq-grown{number}" for number in range(AGENTS)]
    with (
        TemporaryDirectory() as folder,
        served(
            env, small.registry, Path(folder, "log"), accounts=[LARGE, HEAVY], strangers=agents
        ) as service,
    ):
        make_accounts(env, dict.fromkeys(agents, "seven quiet herons over mud"))
        for name in (LARGE, HEAVY):
            template_of(name, small.registry, env)
        must(run(LARGE, "ws", "setup", "--template", "base", "--name", "bench", env=env))
        with service.stopped(), busy.paused():
            arguments = [env["SVC_DB"], str(GIGABYTES), *map(str, (USERS, EACH, MANY)), LARGE, HEAVY]
            as_svc(FILL, arguments).communicate()
            _own_rows(env, agents)
        print(f"  the database has {os.stat(env['SVC_DB']).st_size / 2**30:.2f} GB", flush=True)
        large = Stage(service, env, small.registry, small.shelf)
        yield from _lists(shell, Shell(LARGE, env), small, large)
        yield from _pages(small, large)
        yield from _events(small, large)
        yield from _starts(shell, Shell(LARGE, env))
        yield from _idle(small, large)
        yield _beside_removals(env)
        yield from _service_starts(small, large, agents)
        yield _beside_check(large)


def as_svc(program: str, arguments: list[str]) -> subprocess.Popen[str]:
    """A program run as the service's account."""
    account = pwd.getpwnam("svc")
    return subprocess.Popen(
        [PREFIX / "bin/python3", "-I", "-c", program, *arguments], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, cwd="/", user=account.pw_uid, group=account.pw_gid,
        extra_groups=[],
    )  # fmt: skip


def _own_rows(env: dict[str, str], names: list[str]) -> None:
    """A stopped workspace for each of these, one that was a row's, so that the worker looks for it."""
    as_svc(OWN, [env["SVC_DB"], *names]).communicate()


def _lists(ours: Shell, theirs: Shell, small: Stage, large: Stage) -> Iterator[Row]:
    listing = (str(SVC), "ws", "list")
    yield pair(f"ws list, {USERS} users | one", theirs.side(*listing), ours.side(*listing),
               bar=BAR, reach=REACH, rounds=ROUNDS)  # fmt: skip
    target = f"/api/workspaces?limit={EACH}"
    fresh = "/api/workspaces?limit=10&q=row-"
    deep = "/api/workspaces?limit=10&offset="
    yield _requests("GET workspaces, 200 users | one", (LARGE, large, target), (USER, small, target))
    yield _requests("GET workspaces, 10,000 | 10", (HEAVY, large, target), (LARGE, large, target))
    yield _requests("GET workspaces made anew, 200 users | one", (LARGE, large, fresh), (USER, small, fresh))
    yield _requests("GET workspaces made anew, 10,000 | 10", (HEAVY, large, deep), (LARGE, large, deep))


Place = tuple[str, Stage, str]  # a user, a service, and a target


def _requests(name: str, ours: Place, theirs: Place, bar: float | None = BAR) -> Row:
    """The listener's processor time for one request, of many in turn: other work does not count."""
    sides = [(_burst(place), place[1].service) for place in (ours, theirs)]
    spent = [0.0, 0.0]
    for number in range(ROUNDS + 1):
        for place, (burst, service) in enumerate(sides):
            before = cpu_s(service, "svc-unix")
            burst()
            spent[place] += cpu_s(service, "svc-unix") - before if number else 0.0
    each = [1000 * seconds / ROUNDS / BURST for seconds in spent]
    return Row(name, *each, each[0] / each[1], bar, reach=REACH if bar else None)


def _burst(place: Place) -> Callable[[], None]:
    user, stage, target = place
    listener = files.socket_of(user, stage.env)

    def ask() -> None:
        with listener.line() as line:
            for number in range(BURST):
                line.request("GET", f"{target}{number % EACH}" if target.endswith(("-", "=")) else target)
                answer = line.getresponse()
                body = answer.read()
                if answer.status != 200:
                    raise RuntimeError(body.decode())

    return ask


def _pages(small: Stage, large: Stage) -> Iterator[Row]:
    """Pages of the audit and of the events; of the small one the first page, which is all that it has."""
    deep = int(3_000_000 * GIGABYTES / 2)
    first = ("root", small, "/api/admin/audit?limit=10")
    for name, target in (
        ("first", ""),
        ("a deep one", f"&offset={deep}"),
        ("of a user, 21,000", f"&user={LARGE}"),
        ("of a rare action, 4,300", "&action=admin.quota"),
        ("of a rare outcome, 4,300", "&outcome=image_missing"),
        ("of a day, 14,400", "&since=2026-03-01T00:00:00.000Z&until=2026-03-02T00:00:00.000Z"),
    ):
        place = ("root", large, f"/api/admin/audit?limit=10{target}")
        yield _requests(
            f"audit, {name} in 2 GB | first of small", place, first, bar=BAR if "day" not in name else None
        )
    for noun, target in (("audit", "/api/audit?limit=5"), ("events", "/api/events/history?limit=5")):
        place = (LARGE, large, target)
        yield _requests(f"own {noun}, 2 GB | small", place, (USER, small, target), bar=None)


def _events(small: Stage, large: Stage) -> Iterator[Row]:
    here = next(iter(streams.latency("small", files.socket_of(USER, small.env), small)))
    there = next(iter(streams.latency("large", files.socket_of(LARGE, large.env), large, LARGE)))
    yield Row("event to a client, p50, 2 GB | small", there.ours, here.ours, there.ours / here.ours, BAR)


def _starts(ours: Shell, theirs: Shell) -> Iterator[Row]:
    start, stop = (str(SVC), "ws", "start", "bench"), (str(SVC), "ws", "stop", "bench")
    many = theirs.side(*start, before=lambda: theirs(*stop))
    one = ours.side(*start, before=lambda: ours(*stop))
    yield pair("ws start, 200 users | one", many, one, bar=BAR, reach=REACH, rounds=ROUNDS)
    ours(*stop), theirs(*stop)


def cpu_s(service: Service, name: str = "") -> float:
    """Processor time so far of the service's processes, or of those of one name."""
    total = 0
    for one in service.members():
        if not name or one.status["Name"] == name:
            fields = Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def _await_check(service: Service) -> None:
    """Until the worker has checked the database, which it does at its start."""
    began, before = cpu_s(service, "svc-worker"), -1.0
    while (spent := cpu_s(service, "svc-worker")) > before + 0.1:
        before = spent
        time.sleep(5)
    print(f"  the rest of the check of the database: {spent - began:.1f} s of processor time", flush=True)


def _idle(small: Stage, large: Stage) -> Iterator[Row]:
    """Processor time of a minute without requests, of both at once; then what they hold in memory."""
    _await_check(large.service)
    before = [(cpu_s(one.service, "svc-worker"), cpu_s(one.service)) for one in (large, small)]
    time.sleep(IDLE_S)
    after = [(cpu_s(one.service, "svc-worker"), cpu_s(one.service)) for one in (large, small)]
    for place, what in ((0, "worker"), (1, "whole service")):
        ours, theirs = (
            1000 * (later[place] - sooner[place]) for later, sooner in zip(after, before, strict=True)
        )
        yield Row(f"idle minute of the {what}, 200 users | one", ours, theirs, ours / max(theirs, 10), None)
    ours, theirs = (
        sum(pss_kib(member.pid) for member in one.service.members()) / 1024 for one in (large, small)
    )
    yield Row("memory of the service (PSS), 200 users | one", ours, theirs, ours / theirs, BAR, "MB", REACH)


def _beside_removals(env: dict[str, str]) -> Row:
    """The longest wait of a process that writes, while 50,000 old events are removed; and alone."""
    process = as_svc(FORGET, [env["SVC_DB"]])
    assert process.stdin and process.stdout
    process.stdout.readline()
    alone = _waits(env, 3.0)
    process.stdin.write("\n")
    process.stdin.flush()
    during = _waits(env, 5.0)
    print(f"  removed, seconds: {process.communicate()[0].strip()}", flush=True)
    return Row("longest wait of a writer beside removals | alone", max(during), max(alone),
               max(during) / max(alone), None)  # fmt: skip


def _beside_check(large: Stage) -> Row:
    """The longest wait of a writer after a start, beside the check of the database and a checkpoint."""
    large.service.stop()
    large.service.start()
    during = _waits(large.env, CHECKED_S)
    return Row("longest wait of a writer beside the check of 2 GB | bar", max(during), WAIT_MS,
               max(during) / WAIT_MS, 1.0)  # fmt: skip


def _waits(env: dict[str, str], seconds: float) -> list[float]:
    return [1000 * float(wait) for wait in writers.beside(env, seconds).communicate()[0].split()[1:]]


def _service_starts(small: Stage, large: Stage, names: list[str]) -> Iterator[Row]:
    """Seconds until a start is ready; and the agents and Podmans of users that it leaves behind."""

    def start(stage: Stage) -> float:
        stage.service.stop()
        return stage.service.start()

    start(small), start(large)
    pairs = [(1000 * start(large), 1000 * start(small)) for _ in range(3)]
    yield Row("start of the service until ready, 2 GB | small", statistics.median(a for a, _ in pairs),
              statistics.median(b for _, b in pairs), statistics.median(a / b for a, b in pairs),
              BAR)  # fmt: skip
    yield _agents(large.service, {pwd.getpwnam(name).pw_uid for name in names})


def _agents(service: Service, uids: set[int]) -> Row:
    """After a start that finds no process of these users, as the host's: what its look at them leaves."""
    service.stop()
    for one in _started_for(uids, "podman", "catatonit"):
        os.kill(one, signal.SIGKILL)
    service.start()
    most, until = 0, time.monotonic() + 25
    while time.monotonic() < until:
        most = max(most, len(_started_for(uids, "svc_helper.agent", "system service")))
        time.sleep(0.2)
    left = len(_started_for(uids, "svc_helper.agent", "system service"))
    return Row(f"agents and Podmans after a look at {len(uids)} users | most of them", left, most,
               left / max(most, 1), None, "")  # fmt: skip


def _started_for(uids: set[int], *words: str) -> list[int]:
    return [one.pid for one in processes() if one.uid in uids and any(word in one.args for word in words)]
