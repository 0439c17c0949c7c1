"""Resource usage of a running workspace: from its cgroup if it has controllers, otherwise from /proc.

Memory of a cgroup is its working set: what the limit counts, less the pages that
the kernel would reclaim first (`inactive_file`). Memory of a process is its
resident set, including shared pages, so the processes do not add up to the
whole. Without controllers only that sum is available.

Processor time is a counter, so its use is known from two samples. The last two of each
workspace are kept for KEPT_S: whoever asks again within that time need not wait for a second.

`podman stats` counts anonymous memory only, and nothing without controllers.
"""

from __future__ import annotations

import os
import threading
import time

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import running
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import crun, processor_time
from svc_helper.wire.quick_typing import Any, NamedTuple

PROCESSES_MAX = 50
KEPT_S = 10.0  # longer ago is not now
_KEPT_MAX = 16  # workspaces
_KEPT_PROCESSES_MAX = 500  # of one; what has more is measured twice each time
_COMMAND_MAX = 200
_READ_MAX = 64 * 1024
_GROUPS_MAX = 10_000
_COUNTED_MAX = 100_000
_TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessStat(NamedTuple):
    """One process as in /proc/PID/stat."""

    pid: int
    parent: int
    started: int
    own_us: int  # its own processor time
    all_us: int  # and that of its ended children
    threads: int
    resident: int


class Sample(NamedTuple):
    """One measurement."""

    at: float
    processes: dict[int, ProcessStat]
    usage_us: int | None  # of the cgroup


class Key(NamedTuple):
    """What samples must have in common to be compared."""

    first_process: running.First
    counted: str  # the cgroup that counts; empty for a sum over the processes


class Samples:
    """The last two samples of each workspace, newest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Key, tuple[Sample, ...]] = {}

    def find(self, key: Key, age_s: float) -> Sample | None:
        """The newest that is so old, else the oldest; None if it is older than KEPT_S."""
        now = time.monotonic()
        with self._lock:
            recent = [sample for sample in self._kept.get(key, ()) if now - sample.at <= KEPT_S]
        old = [sample for sample in recent if now - sample.at >= age_s]
        return next(iter(old or recent[::-1]), None)

    def keep(self, key: Key, sample: Sample) -> None:
        """Keep it and the one before, and drop those that are too old or too many."""
        with self._lock:
            before = self._kept.pop(key, ())  # its place is the last
            if len(sample.processes) <= _KEPT_PROCESSES_MAX:
                self._kept[key] = (sample, *before[:1])
            oldest = sample.at - KEPT_S
            recent = [item for item in self._kept.items() if item[1][0].at >= oldest]
            self._kept = dict(recent[-_KEPT_MAX:])


_samples = Samples()


def stats(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """The usage of a running workspace; its processor usage is that of sample_ms, which may be 0, or more.

    {sampled_ms (up to KEPT_S), cpu_percent (of one core; null when sample_ms is 0), cpu_usec, cpu_limit
    (thousandths of a core) or null, memory_bytes, memory_limit_bytes or null, pids
    (threads count, as in the limit), pids_limit or null, source ("cgroup" or "proc"),
    processes: the 50 busiest, more_processes}. The limits are those that the kernel holds.
    Raises Failure `not_running`.
    """
    first_process = running.find(podman, call, args["id"])
    if first_process is None:
        raise Failure("not_running", "the workspace is not running")
    pid, started, group = first_process
    counted = group if _read(f"{group}/memory.current") and _read(f"{group}/pids.current") else ""
    sample_s = args["sample_ms"] / 1000
    key = Key(first_process, counted)
    first = (_samples.find(key, sample_s) if sample_s else None) or _measure(pid, group, counted)
    last = first
    if sample_s:
        if (rest := first.at + sample_s - time.monotonic()) > 0:
            call.sleep(rest)
        last = _measure(pid, group, counted)
    if crun.start_time(pid) != started:
        raise Failure("not_running", "the workspace is not running")
    _samples.keep(key, last)
    elapsed = last.at - first.at
    rows = _rows(first, last, elapsed)
    return {
        "sampled_ms": round(elapsed * 1000),
        "cpu_percent": _percent(_used_us(first, last), elapsed),
        "cpu_usec": _total_us(last),
        **(_of_group(counted) if counted else _of_processes(last)),
        "processes": [row | {"command": _command(row["pid"])} for row in rows[:PROCESSES_MAX]],
        "more_processes": max(0, len(rows) - PROCESSES_MAX),
    }


# --- one measurement ---------------------------------------------------------------------------------


def _measure(pid: int, group: str, counted: str) -> Sample:
    usage = _fields(f"{counted}/cpu.stat").get("usage_usec") if counted else None
    at = time.monotonic()
    members = _in_groups(group) if group else _in_namespace(pid)
    return Sample(at, members, usage)


def _in_groups(group: str) -> dict[int, ProcessStat]:
    """The processes of a cgroup and of those below it."""
    found: dict[int, ProcessStat] = {}
    for number, (directory, _, _) in enumerate(os.walk(group)):
        for line in _read(f"{directory}/cgroup.procs", _READ_MAX * 16).split():
            if (process := _process(int(line))) is not None:
                found[process.pid] = process
        if number > _GROUPS_MAX or len(found) > _COUNTED_MAX:
            break
    return found


def _in_namespace(first: int) -> dict[int, ProcessStat]:
    """The processes in the pid namespace of a container, and their descendants in nested namespaces."""
    namespace = _namespace(first)
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    every = {pid: process for pid in pids if (process := _process(pid)) is not None}
    found = {pid: every[pid] for pid in every if namespace and _namespace(pid) == namespace}
    children: dict[int, list[int]] = {}
    for process in every.values():
        children.setdefault(process.parent, []).append(process.pid)
    unseen = list(found)
    while unseen:
        for child in children.get(unseen.pop(), []):
            if child not in found:
                found[child] = every[child]
                unseen.append(child)
    return found


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""  # another user's, or ended


def _process(pid: int) -> ProcessStat | None:
    """The process, or None when it has ended."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(fields) < 22 or fields[0] in ("Z", "X"):
        return None
    user, system, users, systems = (int(field) for field in fields[11:15])
    own = processor_time.of_process(pid) or (user + system) * _TICK_US
    children = max(0, users + systems) * _TICK_US
    threads, started, resident = int(fields[17]), int(fields[19]), int(fields[21])
    return ProcessStat(pid, int(fields[1]), started, own, own + children, threads, resident * _PAGE)


# --- the result ---------------------------------------------------------------------------------


def _of_group(group: str) -> dict[str, Any]:
    idle = _fields(f"{group}/memory.stat").get("inactive_file", 0)
    return {
        "cpu_limit": _cpu_limit(_read(f"{group}/cpu.max")),
        "memory_bytes": max(0, (_number(f"{group}/memory.current") or 0) - idle),
        "memory_limit_bytes": _number(f"{group}/memory.max"),
        "pids": _number(f"{group}/pids.current") or 0,
        "pids_limit": _number(f"{group}/pids.max"),
        "source": "cgroup",
    }


def _cpu_limit(text: str) -> int | None:
    """Thousandths of a core, from `QUOTA PERIOD` in microseconds; None for `max PERIOD` or no file."""
    parts = text.split()
    if len(parts) != 2 or not all(part.isdecimal() for part in parts) or not int(parts[1]):
        return None
    return round(int(parts[0]) * 1000 / int(parts[1]))


def _of_processes(sample: Sample) -> dict[str, Any]:
    return {
        "cpu_limit": None,
        "memory_bytes": sum(process.resident for process in sample.processes.values()),
        "memory_limit_bytes": None,
        "pids": sum(process.threads for process in sample.processes.values()),
        "pids_limit": None,
        "source": "proc",
    }


def _total_us(sample: Sample) -> int:
    if sample.usage_us is not None:
        return sample.usage_us
    return sum(process.all_us for process in sample.processes.values())


def _used_us(first: Sample, last: Sample) -> int:
    """Processor time between two measurements, including ended processes that their parent has reaped."""
    between = _total_us(last) - _total_us(first)
    if last.usage_us is not None:
        return max(0, between)
    return max(between, sum(_own_us(first, process) for process in last.processes.values()))


def _own_us(first: Sample, process: ProcessStat) -> int:
    before = first.processes.get(process.pid)
    same = before is not None and before.started == process.started
    return process.own_us - (before.own_us if before is not None and same else 0)


def _rows(first: Sample, last: Sample, elapsed: float) -> list[dict[str, Any]]:
    """The processes, busiest first; without an interval, by their usage so far."""
    ranked = sorted(
        last.processes.values(),
        key=lambda process: (
            _own_us(first, process) if elapsed > 0 else process.own_us,
            process.resident,
            -process.pid,
        ),
        reverse=True,
    )
    return [
        {
            "pid": process.pid,
            "parent": process.parent,
            "cpu_percent": _percent(_own_us(first, process), elapsed),
            "memory_bytes": process.resident,
        }
        for process in ranked
    ]


def _percent(used_us: int, elapsed: float) -> float | None:
    return round(max(0, used_us) / (elapsed * 10_000), 1) if elapsed > 0 else None


def _command(pid: int) -> str:
    text = _read(f"/proc/{pid}/cmdline", 4096).rstrip("\0").replace("\0", " ")
    text = text or _read(f"/proc/{pid}/comm", 4096).rstrip("\n")
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_COMMAND_MAX])


# --- files of the kernel ------------------------------------------------------------------------


def _read(path: str, limit: int = _READ_MAX) -> str:
    """The text of a file; empty when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode(errors="replace")
    except OSError:
        return ""


def _number(path: str) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdecimal() else None


def _fields(path: str) -> dict[str, int]:
    """The lines `NAME NUMBER` of a file."""
    rows = (line.split() for line in _read(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}
