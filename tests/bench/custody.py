"""Restore of a database of 500 MB, the start of `svc admin`, and how the database grows with calls.

`tests/run bench -- custody`. A restore checks the snapshot, keeps what it replaces as a recovery set,
copies, checks again and syncs; `cp` and `sync` only copy. Growth is counted in pages in use: what a kind of
call leaves for good, its audit rows included, and the events that stay for EVENT_DAYS_KEPT.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.backups import FILL, MEGABYTES, as_service
from bench.pairs import Row, Shell, Side, pair
from bench.stage import USER, Stage
from e2e.installation import PREFIX, SVC
from e2e.surroundings import in_database
from hostile.attackers.raw import ask, connect, request

ROUNDS = 3
CALLS = 200  # of each kind; the row says what 1,000 would take
GROWTH_MAX_KIB = 1024.0  # of 1,000 calls: for good, and again for the days that events are kept
USED = (  # KiB, for good and for the days of events
    "SELECT total(d.pgsize * (s.tbl_name IS NOT 'events')) / 1024,"
    " total(d.pgsize * (s.tbl_name IS 'events')) / 1024"
    " FROM dbstat d LEFT JOIN sqlite_schema s ON s.name = d.name"
)


def rows(shell: Shell, set_up: Stage) -> Iterator[Row]:
    """The start first; then growth, on a small database; then the restore, with the service stopped."""
    yield from starts(shell)
    yield from growth(set_up)
    yield from restores(set_up)


def starts(shell: Shell) -> Iterator[Row]:
    """A command that needs no database against programs that do nothing."""
    path = shell.side(str(SVC), "admin", "db-path")
    yield pair("admin db-path | podman --version", path, shell.side("podman", "--version"))
    yield pair(
        "admin db-path | python3 -I -c pass",
        path,
        shell.side(str(PREFIX / "bin/python3"), "-I", "-c", "pass"),
    )


def growth(set_up: Stage) -> Iterator[Row]:
    """Kilobytes that 1,000 calls of each kind leave in the database; the bar is for each of them."""
    for name, call in kinds(set_up).items():
        call(0)
        before = in_database(set_up.env, USED)[0]
        for number in range(1, CALLS + 1):
            call(number)
        after = in_database(set_up.env, USED)[0]
        for what, end, start in zip(("growth", "growth by events"), after, before, strict=True):
            each = (float(str(end)) - float(str(start))) * 1000 / CALLS
            yield Row(
                f"{what}, 1,000 x {name} | bar", each, GROWTH_MAX_KIB, each / GROWTH_MAX_KIB, 1.0, "KiB"
            )


def kinds(set_up: Stage) -> dict[str, Callable[[int], object]]:
    """Each kind of call by its name; a function that makes one."""

    def http(method: str, path: str, body: object = None) -> int:
        content = b"" if body is None else json.dumps(body).encode()
        answer = ask(connect(set_up.env["SVC_SOCKET"], USER), request(method, f"/api{path}", content))
        if not 200 <= answer.status < 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.body[:200]!r}")
        return answer.status

    def token(number: int) -> None:
        http("POST", "/tokens", {"name": f"growth-{number}"})
        http("DELETE", f"/tokens/growth-{number}")

    def started(_number: int) -> None:
        http("POST", "/workspaces/bench/start", {})
        http("POST", "/workspaces/bench/stop", {"grace_s": 0})

    return {
        "ws list": lambda _: http("GET", "/workspaces"),
        "ws edit": lambda n: http("PATCH", "/workspaces/bench", {"display_name": f"growth {n}"}),
        "template edit": lambda n: http("PATCH", "/templates/base", {"description": f"growth {n}"}),
        "token create and revoke": token,
        "fs ls": lambda _: http("GET", "/fs/work/list"),
        "ws start and stop": started,
    }


def restores(set_up: Stage) -> Iterator[Row]:
    """The whole command against a copy of the snapshot beside the database."""
    if as_service(set_up.env, FILL, str(MEGABYTES)).wait():
        raise RuntimeError("the database could not be filled")
    folder = Path(set_up.env["SVC_STATE_DIR"], "bench-custody")
    sets = folder / "sets"
    sets.mkdir(mode=0o700, parents=True)
    env = set_up.env | {"SVC_RECOVERY_DIR": str(sets)}
    snapshot = folder / "snapshot.db"

    def admin(*argv: str | Path) -> None:
        done = subprocess.run(
            [SVC, "admin", *argv],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)

    def emptied() -> None:
        for path in sets.iterdir():
            shutil.rmtree(path)
        (folder / "copy.db").unlink(missing_ok=True)

    def copied() -> None:
        subprocess.run(["cp", "--reflink=never", snapshot, folder / "copy.db"], check=True)
        subprocess.run(["sync", folder / "copy.db"], check=True)

    try:
        admin("backup", "--out", snapshot)
        with set_up.service.stopped():
            yield pair(
                "restore of 500 MB | cp, sync", Side(lambda: admin("restore", snapshot, "--yes"), emptied),
                Side(copied, emptied), rounds=ROUNDS,
            )  # fmt: skip
    finally:
        shutil.rmtree(folder)
        in_database(set_up.env, "DELETE FROM files WHERE size = 50000")
