"""A long run under steady load: descriptors, memory and the database's log must stay flat.

`test_soak.py` runs some seconds. Long: `tests/run release -- soak 600`.

The writers of custody_kills.py work without a pause, a backup is made every half a minute, and each ten
seconds every process of svc is looked at. The first tenth warms up; then the medians of the first and of
the last third of the samples are compared.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from hostile.faults.custody_kills import Custody, harness_of

SAMPLE_S, BACKUP_S = 10.0, 30.0
DESCRIPTORS = 4  # a process may have more at the end than at the beginning, for calls under way
GROWTH = 1.05  # of memory, ...
GROWTH_KIB = (
    2048  # ... or so much, for the allocator and for each connection: SQLite's page cache fills up to it
)
LOG_BYTES = 128 << 20  # the worker looks each five seconds, and writes it back when it has 64 MiB


class Sample(NamedTuple):
    """A process at one moment."""

    descriptors: int
    connections: int  # to the database
    private_kib: int


def samples(harness: Custody) -> dict[str, Sample]:
    """Every process of svc, by name and number."""
    found = {}
    for one in harness.service.members():
        name = f"{one.status['Name']} {one.pid}"
        try:
            files = opened_by(one.pid)
            rollup = Path(f"/proc/{one.pid}/smaps_rollup").read_text()
        except OSError:  # a short-lived child has ended
            continue
        private = sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))
        connections = sum(file.endswith("/svc.db") for file in files)
        found[name] = Sample(len(files), connections, private)
    return found


def opened_by(pid: int) -> list[str]:
    """What the open descriptors of a process lead to."""
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def growth(history: list[dict[str, Sample]]) -> tuple[list[str], list[str]]:
    """A line for each process that was there all the time, and what grew more than it may."""
    lines, wrong = [], []
    of_name: dict[str, list[Sample]] = defaultdict(list)
    for sample in history:
        for name, one in sample.items():
            of_name[name].append(one)
    for name, ones in sorted(of_name.items()):
        third = len(ones) // 3
        if len(ones) < len(history) or not third:
            continue
        first, last = ones[:third], ones[-third:]
        files, files_then = (statistics.median(one.descriptors for one in part) for part in (last, first))
        memory, memory_then = (statistics.median(one.private_kib for one in part) for part in (last, first))
        lines.append(
            f"{name.split()[0]:12} descriptors {files_then:.0f} to {files:.0f},"
            f" private memory {memory_then / 1024:.1f} to {memory / 1024:.1f} MiB"
        )
        spare = GROWTH_KIB * (1 + max(one.connections for one in ones))
        if files > files_then + DESCRIPTORS or memory > max(memory_then * GROWTH, memory_then + spare):
            wrong.append(lines[-1])
    return lines, wrong


def soak(harness: Custody, seconds: float, every: float = SAMPLE_S) -> tuple[list[str], list[str]]:
    """Load for so many seconds; the lines of `growth` and what is wrong."""
    log = Path(harness.env["SVC_DB"] + "-wal")
    history, largest, wrong = [], 0, []
    harness.open()
    began = time.monotonic()
    backup_at = began
    while (now := time.monotonic()) < began + seconds:
        if now >= backup_at:
            backup_at = now + BACKUP_S
            command = harness.admin("backup", "--dir", str(harness.snapshots), "--retention", "2")
            _, err = command.communicate(timeout=120)
            wrong += [err] if command.returncode else []
        time.sleep(every)
        largest = max(largest, log.stat().st_size if log.exists() else 0)
        if time.monotonic() > began + seconds / 10:
            history.append(samples(harness))
    harness.pause_writers()
    lines, grown = growth(history)
    lines.append(f"the largest log of the database: {largest / 2**20:.1f} MiB")
    if largest > LOG_BYTES:
        wrong.append(lines[-1])
    return lines, wrong + grown + harness.check()


def main(seconds: float) -> int:
    """Print what grew; 1 when something grew more than it may."""
    with tempfile.TemporaryDirectory() as name, harness_of(1, Path(name)) as harness:
        lines, wrong = soak(harness, seconds)
        print("\n".join(lines))
        print(
            f"{harness.ledger.acknowledged} acknowledged writes in {seconds:.0f} s;"
            f" wrong: {wrong or 'nothing'}"
        )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if sys.argv[1:] else 600.0))
