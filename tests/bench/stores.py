"""SVC_STORE_DIR: how long a store takes to move, and how a workspace starts from its new place."""

from __future__ import annotations

import shutil
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.pairs import Row, Shell, Side, timed
from bench.stage import USER, Stage
from e2e.installation import SVC, run
from e2e.surroundings import must

STORES = Path("/var/svc-bench-stores")
WRITTEN_MB, FILES, STARTS = 256, 10_000, 9
WRITE = f"head -c {WRITTEN_MB}M /dev/urandom >/big; mkdir /many; cd /many; seq {FILES} | xargs touch"


def rows(shell: Shell, set_up: Stage) -> Iterator[Row]:
    """The move of a store with an image and a workspace that has written, against a copy by `cp -a`."""
    svc, service = str(SVC), set_up.service
    set_up.image()
    shell(svc, "image", "pull", "big", "--wait")
    shell(svc, "ws", "start", "bench")
    shell(svc, "ws", "exec", "bench", "--", "sh", "-c", WRITE)
    home = _starts(shell)
    store = Path(shell.account.pw_dir, ".local/share/containers/storage")
    STORES.mkdir(mode=0o755)
    copied = timed(Side(lambda: subprocess.run(["cp", "-a", store, STORES / "copy"], check=True)))
    shutil.rmtree(STORES / "copy")
    service.stop()
    set_up.env["SVC_STORE_DIR"] = f"{STORES}/%u"
    moved = timed(Side(lambda: must(run("root", "admin", "move-store", USER, env=set_up.env))))
    service.start()
    yield Row("move-store | cp -a", moved, copied, moved / copied, None)
    shell(svc, "ws", "start", "bench")  # makes the container again
    there = _starts(shell)
    yield Row("ws start, SVC_STORE_DIR | home", there, home, there / home, None)
    service.stop()
    del set_up.env["SVC_STORE_DIR"]
    service.start()
    shutil.rmtree(STORES)


def _starts(shell: Shell) -> float:
    """The median of some warm starts, in milliseconds; the workspace is stopped afterwards."""
    svc = str(SVC)
    start = shell.side(svc, "ws", "start", "bench", before=lambda: shell(svc, "ws", "stop", "bench"))
    median = statistics.median(timed(start) for _ in range(STARTS))
    shell(svc, "ws", "stop", "bench")
    return median
