"""How `svc template` prints a record; of the parts that are lists of things, each thing in few words."""

from __future__ import annotations

from svc.cli.output import pick, plain, size, state, text, when

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def each(words: Callable[[Any, bool], str]) -> Callable[[Any, bool], str]:
    """A column for a list, whose items are printed like this."""

    def column(value: Any, human: bool) -> str:
        items = value if isinstance(value, list) else []
        return plain([words(item, human) for item in items], human)

    return column


def _variable(one: Any, human: bool) -> str:
    if pick(one, "secret") is True:
        return f"{text(one, 'name')} (secret{'' if pick(one, 'is_set') else ', not set'})"
    return f"{text(one, 'name')}={text(one, 'value')}"


def _launcher(one: Any, human: bool) -> str:
    command = pick(one, "command")
    words = " ".join(map(str, command)) if isinstance(command, list) else ""
    notes = [f"port {text(one, 'port')}"] if pick(one, "port") else []
    notes += ["autostart"] if pick(one, "autostart") is True else []
    return f"{text(one, 'name')}: {words}{f' ({plain(notes, human)})' if notes else ''}"


def _port(one: Any, human: bool) -> str:
    return f"{text(one, 'name')} {text(one, 'container_port')}"


def _mount(one: Any, human: bool) -> str:
    return f"{text(one, 'root')} at {text(one, 'path')}{' (read-only)' * (pick(one, 'read_only') is True)}"


def needs(value: Any, human: bool) -> str:
    """What a template needs of GPUs."""
    words = [f"CUDA {text(value, 'min_cuda')}"] if pick(value, "min_cuda") else []
    words += [size(pick(value, "min_vram_bytes"), True)] if pick(value, "min_vram_bytes") else []
    if pick(value, "min_compute_capability"):
        words.append(f"compute capability {text(value, 'min_compute_capability')}")
    words += ["may be shared"] if pick(value, "allow_shared") is True else []
    return plain(words, human)


def idle(value: Any, human: bool) -> str:
    """What happens with a workspace in which nothing happens."""
    if pick(value, "action") in (None, "none"):
        return plain("", human)
    return f"{text(value, 'action')} after {text(value, 'after_minutes')} minutes"


def codes(value: Any, human: bool) -> str:
    """What a review has to look at, in short: each code once."""
    items = value if isinstance(value, list) else []
    return plain(list(dict.fromkeys(text(item, "code") for item in items)), human)


def findings(value: Any, human: bool) -> str:
    """What a review has to look at: the codes for people, who get the words below; all in one line else."""
    items = value if isinstance(value, list) else []
    return (
        codes(value, True)
        if human
        else "; ".join(f"{text(one, 'code')}: {text(one, 'message')}" for one in items)
    )


variables, launchers, ports, mounts = each(_variable), each(_launcher), each(_port), each(_mount)

COLUMNS = (
    ("ID", "id", plain),
    ("NAME", "name", plain),
    ("SCOPE", "scope", plain),
    ("STATUS", "status", state),
    ("IMAGE", "source.image_ref", plain),
    ("REVISION", "revision", plain),
    ("UPDATED", "updated_at", when),
)
FIELDS = (
    *COLUMNS[:2],
    ("DESCRIPTION", "description", plain),
    *COLUMNS[2:4],
    ("OWNER", "owner", plain),
    ("CLONED FROM", "cloned_from", plain),
    ("SOURCE", "source.type", plain),
    *COLUMNS[4:5],
    ("DOCKERFILE", "source.has_dockerfile", plain),
    ("LOCAL ONLY", "source.local_only", plain),
    ("CONTEXT FILES", "source.context_files", plain),
    ("CONTEXT SIZE", "source.context_bytes", size),
    *COLUMNS[5:6],
    ("REVIEWED", "reviewed_revision", plain),
    ("CPUS", "defaults.cpu_limit", plain),
    ("MEMORY", "defaults.memory_bytes", size),
    ("SHM SIZE", "defaults.shm_bytes", size),
    ("PIDS", "defaults.pids_limit", plain),
    ("GPUS", "defaults.gpu_count", plain),
    ("GPU MODE", "defaults.gpu_mode", plain),
    ("LIMITS", "limits", plain),
    ("GPU NEEDS", "gpu", needs),
    ("ENV", "env", variables),
    ("COMMAND", "command", plain),
    ("RUN AS", "run_as", plain),
    ("LAUNCHERS", "launchers", launchers),
    ("PORTS", "ports", ports),
    ("MOUNTS", "mounts", mounts),
    ("IDLE", "idle", idle),
    ("FINDINGS", "findings", findings),
    ("CREATED", "created_at", when),
    COLUMNS[6],
)
REVIEW = (*COLUMNS[:2], ("SOURCE", "source.type", plain), *COLUMNS[4:6], ("FINDINGS", "findings", codes))
