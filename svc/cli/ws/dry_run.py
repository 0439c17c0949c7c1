"""`svc ws create --dry-run`: whether a workspace could be created and started now."""

from __future__ import annotations

from svc.cli.template.columns import each
from svc.client.requests import show_record
from svc.commandline import output
from svc.commandline.arguments import Arguments
from svc.commandline.output import pick, plain, size, text

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from svc.client.transport import Answer


def _gpu(gpu: object, human: bool) -> str:
    return f"{text(gpu, 'index')}: {text(gpu, 'model')} ({text(gpu, 'uuid')})"


FIELDS = (
    ("POSSIBLE NOW", "allocatable_now", plain),
    ("TEMPLATE", "template.name", plain),
    ("IMAGE", "image_status", plain),
    ("CPUS", "resources.cpu_limit", plain),
    ("MEMORY", "resources.memory_bytes", size),
    ("SHM SIZE", "resources.shm_bytes", size),
    ("PIDS", "resources.pids_limit", plain),
    ("GPU COUNT", "resources.gpu_count", plain),
    ("GPU MODE", "resources.gpu_mode", plain),
    ("GPUS", "gpus", each(_gpu)),
    ("CPUS LEFT", "remaining.cpu", plain),
    ("MEMORY LEFT", "remaining.memory_bytes", size),
    ("GPUS LEFT", "remaining.gpus", plain),
)


def show(args: Arguments, answer: Answer) -> int:
    """Print the answer, and on standard error all that is in the way; exit code 1 if anything is."""
    show_record(args, answer, FIELDS)
    found = answer.json()
    if pick(found, "allocatable_now") is True:
        return 0
    blocks = pick(found, "blocked_by")
    for block in blocks if isinstance(blocks, list) else []:
        output.note(text(block, "message"))
        if hint := text(block, "hint"):
            output.remark(f"hint: {output.visible(hint)}")
    return 1
