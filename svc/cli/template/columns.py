"""The columns of a template, formatters for its parts, and the outcome of a change."""

from __future__ import annotations

from svc.client.requests import show_outcome
from svc.commandline.output import note, pick, plain, size, state, text, when
from svc.limits import PORT_KINDS
from svc_helper.wire.limits import ACCESS_HOST

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from svc.client.transport import Answer
    from svc.commandline.arguments import Arguments


def each(formatter: Callable[[Any, bool], str]) -> Callable[[Any, bool], str]:
    """The formatter of a list, from that of an item."""

    def column(value: Any, human: bool) -> str:
        items = value if isinstance(value, list) else []
        return plain([formatter(item, human) for item in items], human)

    return column


def _variable(variable: Any, human: bool) -> str:
    if pick(variable, "secret") is True:
        return f"{text(variable, 'name')} (secret{'' if pick(variable, 'is_set') else ', not set'})"
    return f"{text(variable, 'name')}={text(variable, 'value')}"


def _launcher(launcher: Any, human: bool) -> str:
    command = pick(launcher, "command")
    line = " ".join(map(str, command)) if isinstance(command, list) else ""
    return f"{text(launcher, 'name')}: {line}{launcher_notes(launcher, human)}"


def launcher_notes(launcher: Any, human: bool) -> str:
    """A launcher's port and autostart, in parentheses."""
    notes = [f"port {text(launcher, 'port')}"] if pick(launcher, "port") else []
    notes += ["autostart"] if pick(launcher, "autostart") is True else []
    return f" ({plain(notes, human)})" if notes else ""


def _port(port: Any, human: bool) -> str:
    notes = [text(port, "kind")] if pick(port, "kind") not in (None, PORT_KINDS[0]) else []
    notes += ["for every user"] if pick(port, "access") == ACCESS_HOST else []
    note = f" ({plain(notes, human)})" if notes else ""
    return f"{text(port, 'name')} {text(port, 'container_port')}".rstrip() + note


def _mount(mount: Any, human: bool) -> str:
    note = " (read-only)" if pick(mount, "read_only") is True else ""
    return f"{text(mount, 'root')} at {text(mount, 'path')}{note}"


def needs(value: Any, human: bool) -> str:
    """A template's requirements of GPUs."""
    parts = [f"CUDA {text(value, 'min_cuda')}"] if pick(value, "min_cuda") else []
    parts += [size(pick(value, "min_vram_bytes"), True)] if pick(value, "min_vram_bytes") else []
    if pick(value, "min_compute_capability"):
        parts.append(f"compute capability {text(value, 'min_compute_capability')}")
    parts += ["may be shared"] if pick(value, "allow_shared") is True else []
    return plain(parts, human)


def idle(value: Any, human: bool) -> str:
    """The action of the idle policy, and when."""
    if pick(value, "action") in (None, "none"):
        return plain("", human)
    return f"{text(value, 'action')} after {text(value, 'after_minutes')} minutes"


def codes(value: Any, human: bool) -> str:
    """The codes of a review's findings, each once."""
    items = value if isinstance(value, list) else []
    return plain(list(dict.fromkeys(text(item, "code") for item in items)), human)


def findings(value: Any, human: bool) -> str:
    """A review's findings: codes for people, who get the messages below; codes and messages for programs."""
    if human:
        return codes(value, True)
    items = value if isinstance(value, list) else []
    return "; ".join(f"{text(finding, 'code')}: {text(finding, 'message')}" for finding in items)


def note_findings(record: Any) -> None:
    """Say of a new or changed template that its image will be refused, or that its user cannot open /work."""
    found = pick(record, "findings")
    for finding in found if isinstance(found, list) else []:
        if text(finding, "code") == "image_user":
            note(f"warning: {text(finding, 'message')}")
        if text(finding, "code") == "registry_not_allowed":
            note(
                f"{text(finding, 'message')}: until an administrator adds it, the image of"
                f" {text(record, 'name')} is neither pulled nor built (svc image allowlist)"
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
    ("NETWORK", "network", plain),
    ("IDLE", "idle", idle),
    ("FINDINGS", "findings", findings),
    ("CREATED", "created_at", when),
    COLUMNS[6],
)
REVIEW = (*COLUMNS[:2], ("SOURCE", "source.type", plain), *COLUMNS[4:6], ("FINDINGS", "findings", codes))


def show_change(args: Arguments, answer: Answer, outcome: str) -> int:
    """Print the outcome of a change and, for a disabled template, the commands that enable it."""
    sentence = f"{outcome}, {{status}}."
    record = answer.json()
    note_findings(record)
    if text(record, "status") == "disabled":
        name = text(record, "name")
        steps = [f"svc template enable {name}"]
        to_build = text(record, "source.type") == "dockerfile"
        if to_build and pick(record, "source.local_only") is not True:
            steps.insert(0, f"svc image build {name} --wait")
        sentence += f" Next: {' && '.join(steps)}"
    return show_outcome(args, answer, COLUMNS, sentence)
