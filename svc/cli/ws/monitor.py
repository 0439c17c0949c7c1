"""`svc ws monitor`: the resources that a workspace uses now."""

from __future__ import annotations

from svc.cli.ws.columns import path
from svc.client.requests import ask, show_raw
from svc.commandline import output
from svc.commandline.arguments import WORKSPACE, Arguments, Command
from svc.commandline.output import pick, plain, size

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

VALUES = (
    "at", "source", "cpu_percent", "sampled_ms", "cpu_limit", "memory_bytes", "memory_limit_bytes",
    "pids", "pids_limit",
)  # fmt: skip
GPU_COLUMNS = (
    ("GPU", "uuid", plain),
    ("MODEL", "model", plain),
    ("BUSY %", "utilization_percent", plain),
    ("USED", "used_bytes", size),
    ("OF", "vram_bytes", size),
    ("PROCESSES", "pids", plain),
)
PROCESS_COLUMNS = (
    ("PID", "pid", plain),
    ("PARENT", "parent", plain),
    ("CPU %", "cpu_percent", plain),
    ("MEMORY", "memory_bytes", size),
    ("COMMAND", "command", plain),
)


def monitor(args: Arguments) -> int:
    """Show what a running workspace uses now: CPU, memory, GPUs, processes.

    CPU is in percent of one core, measured since the last look at it if that was within ten
    seconds, otherwise for a tenth of a second. Limits are those in force: one
    that this host does not apply (`svc ws get`, limits missing) is no limit. The
    processes are the busiest ones, with the host's process ids. Of a GPU, "busy" is its total use, "used"
    this workspace's memory. In a pipe each line begins with the name of a value,
    gpu or process.
    """
    answer = ask(args, "GET", path(args, "/monitor"))
    if args.json:
        return show_raw(answer)
    found = answer.json()
    gpus, processes = (_rows(found, key) for key in ("gpus", "processes"))
    for gpu in gpus:
        gpu["pids"] = [pick(process, "pid") for process in _rows(gpu, "processes")]
    if output.on_terminal():
        _show(found, gpus, processes)
    else:
        _print_lines(found, gpus, processes)
    return 0


def _show(found: dict[str, Any], gpus: list[Any], processes: list[Any]) -> None:
    for name, value, limit in (
        ("CPU", plain(pick(found, "cpu_percent"), True) + " %", _limit(found, "cpu_limit", plain, "cores")),
        ("Memory", size(pick(found, "memory_bytes"), True), _limit(found, "memory_limit_bytes", size, "")),
        ("Processes", plain(pick(found, "pids"), True), _limit(found, "pids_limit", plain, "")),
    ):
        print(output.visible(f"{name + ':':<12}{value}{limit}"))
    if gpus:
        print()
        output.table(GPU_COLUMNS, gpus, "")
    print()
    output.table(PROCESS_COLUMNS, processes, "No processes.")
    more = pick(found, "more_processes")
    if isinstance(more, int) and more > 0:
        print(f"and {more} more")


def _limit(found: dict[str, Any], key: str, formatter: Any, unit: str) -> str:
    limit = pick(found, key)
    return ", no limit" if limit is None else f" of {formatter(limit, True)} {unit}".rstrip()


def _print_lines(found: dict[str, Any], gpus: list[Any], processes: list[Any]) -> None:
    for key in VALUES:
        _print_line(key, pick(found, key))
    for gpu in gpus:
        _print_line("gpu", *(pick(gpu, key) for _, key, _ in GPU_COLUMNS))
    for process in processes:
        _print_line("process", *(pick(process, key) for _, key, _ in PROCESS_COLUMNS))
    _print_line("more_processes", pick(found, "more_processes"))


def _print_line(name: str, *values: Any) -> None:
    print("\t".join([name, *(output.visible(plain(value, False)) for value in values)]))


def _rows(record: Any, key: str) -> list[Any]:
    rows = pick(record, key)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


COMMANDS = (
    Command("monitor", monitor, WORKSPACE, examples="svc ws monitor demo\nsvc ws monitor demo --json"),
)
