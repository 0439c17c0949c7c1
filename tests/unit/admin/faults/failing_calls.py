"""Run a command again and again, each time with another call of the C library that fails (failing_calls.c).

usage: failing_calls.py COMMAND POINTS DATABASE DIRECTORY ARGUMENT...   with the library preloaded

COMMAND is `backup`, `restore` or `write`; DIRECTORY has all files that it touches. Each run is a forked
process, at most POINTS of them for each way to fail, spread over all calls. Prints a JSON list of what each
came to: [way, number of the call, exit code, outcome, output].
"""

from __future__ import annotations

import ctypes
import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import svc.host.owner
import svc.settings
from svc.__main__ import main as svc_main
from svc.admin.backup import backup, recovery_set, snapshot, verify  # noqa: F401  before the forks
from svc.admin.restore import new_database, restore  # noqa: F401  before the forks
from svc.db.connect import database, open_database, write
from svc.errors import SvcError
from svc.host import restoring

WAYS = {"error": 1, "full": 2, "short": 3, "errors from then on": 4}
NONE = 10**9
library = ctypes.CDLL(None)


def forked(way: int, number: int, part: str, work: Callable[[], int]) -> tuple[int, int, str]:
    """The exit code, the number of calls that counted, and the output of `work` in a process of its own."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as seen:
        pid = os.fork()
        if pid == 0:
            code = 99
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            try:
                library.fail_set(way, ctypes.c_long(number), part.encode())
                code = work()
                sys.stdout.flush()
            except BaseException as error:
                print(f"Traceback: {error!r}", flush=True)
            finally:
                library.fail_set.restype = None
                os.write(seen.fileno(), str(library.fail_seen()).encode())
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for file in (output, seen):
            file.seek(0)
        return code, int(seen.read() or 0), output.read().decode(errors="replace")


def rows(path: str, query: str) -> list[Any]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def sound(path: str) -> bool:
    return rows(path, "PRAGMA integrity_check") == [("ok",)]


def after_backup(path: str, folder: str, code: int, _output: str) -> str:
    """`complete` or `none`: a snapshot is whole or not there; `wrong: ...` otherwise."""
    if not sound(path):
        return "wrong: the database is damaged"
    names = sorted(name for name in os.listdir(folder) if name.startswith("x.db"))
    drafts = [name for name in os.listdir(folder) if name.endswith(".partial")]
    if "x.db" not in names:
        outcome = "none"
    else:
        with verify.opened_snapshot(f"{folder}/x.db") as descriptor:
            record = verify.record_at(f"{folder}/x.db", descriptor)
        whole = record["restorable"] and len(names) == 3
        outcome = "complete" if whole else f"wrong: {names} {record['problem']}"
    if drafts or (code == 0 and outcome != "complete"):
        outcome = f"wrong: {outcome}, {drafts}, exit code {code}"
    for name in names:
        os.unlink(f"{folder}/{name}")
    return outcome


def after_restore(path: str, restored: str, code: int, _output: str) -> str:
    """`new`, `old` or `finished`; `wrong: ...` for anything else. The old one is put back."""
    state = os.environ["SVC_STATE_DIR"]
    noted = restoring.find(state, path) is not None
    if noted and forked(0, NONE, "", lambda: svc_main(["admin", "restore", "--finish"]))[0]:
        return "wrong: it could not be finished"
    if not sound(path):
        return "wrong: the database is damaged"
    is_new = not rows(path, "SELECT 1 FROM users WHERE name = 'new'")
    if code == 0 and not is_new:
        return "wrong: success, and the old database"
    if is_new:
        forked(0, NONE, "", lambda: add_user(path))
    for name in os.listdir(os.environ["SVC_RECOVERY_DIR"]):
        if name.endswith(".partial"):
            return f"wrong: {name} was left"
    return "finished" if noted else "new" if is_new else "old"


def add_user(path: str) -> int:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(
        "INSERT INTO users (id, name, uid, provisioning, created_at, updated_at)"
        " VALUES (30, 'new', 5030, 'ready', 'now', 'now')"
    )
    connection.close()
    return 0


def write_rows(path: str, told: int) -> int:
    """Write into the database, and note outside which writes were acknowledged."""
    code = 0
    for number in range(12):
        try:
            if database.is_closed():
                open_database(path)
            with write():
                database.execute_sql("INSERT INTO facts VALUES (?, ?)", (f"row-{number}", "x" * 3000))
            os.pwrite(told, b"1", number)
        except SvcError as error:
            print(f"svc: {error.message}\nhint: {error.hint}")
            code = 1
    return code


def after_write(path: str, told: int, _code: int, _output: str) -> str:
    """`kept`: every acknowledged write is there, and the database is sound."""
    acknowledged = [number for number, mark in enumerate(os.pread(told, 99, 0)) if mark == ord("1")]
    os.ftruncate(told, 0)
    present = {name for (name,) in rows(path, "SELECT name FROM facts WHERE name LIKE 'row-%'")}
    lost = [number for number in acknowledged if f"row-{number}" not in present]
    outcome = "kept" if sound(path) and not lost else f"wrong: lost {lost}"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DELETE FROM facts WHERE name LIKE 'row-%'")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    for suffix in (".condition",):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)
    return outcome


def numbers(total: int, points: int) -> Iterator[int]:
    """At most so many of 1 to total, evenly spread, the last ones among them."""
    step = max(1, total // points)
    yield from sorted({*range(1, total + 1, step), *range(total - 1, total + 1)})


def main(command: str, points: int, path: str, folder: str, argument: str) -> int:
    """Print what each run came to."""
    svc.settings.read_env_file = dict  # type: ignore[assignment]  # no settings of this host
    svc.host.owner.SERVICE_USER = "no-such-account"
    if command == "write":
        file = tempfile.TemporaryFile()  # noqa: SIM115  as long as the process
        told = os.dup(file.fileno())
        work, judge = lambda: write_rows(path, told), lambda *seen: after_write(path, told, *seen)
    elif command == "backup":
        work = lambda: svc_main(["admin", "backup", "--out", f"{argument}/x.db"])  # noqa: E731
        judge = lambda *seen: after_backup(path, argument, *seen)  # noqa: E731
    else:
        work = lambda: svc_main(["admin", "restore", argument, "--yes"])  # noqa: E731
        judge = lambda *seen: after_restore(path, argument, *seen)  # noqa: E731
    sys.argv = ["svc", "admin", command]
    found = []
    code, total, output = forked(WAYS["error"], NONE, folder, work)
    found.append(["none", 0, code, judge(code, output), output])
    for way, how in WAYS.items():
        for number in numbers(total, points):
            code, _, output = forked(how, number, folder, work)
            found.append([way, number, code, judge(code, output), output])
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
