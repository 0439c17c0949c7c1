"""`svc ws recommend`: "the safe defaults" for a template and a use of GPUs."""

from __future__ import annotations

from svc.client.requests import ask, show_record
from svc.commandline.arguments import Argument, Arguments, Command, reference
from svc.commandline.output import details, on_terminal, pick, plain, size, text
from svc.limits import GPU_USE_CASES

EXAMPLES = """\
svc ws recommend --template python --gpu-use-case none
svc ws recommend --template torch --gpu-use-case heavy --json"""


def _alternatives(value: object, human: bool) -> str:
    return plain([_alternative(option) for option in value], human) if isinstance(value, list) else ""


def _alternative(option: object) -> str:
    later = "" if pick(option, "allocatable_now") is True else ", not now"
    gpus = text(option, "resources.gpu_count")
    if _without_gpus(option):
        return f"{text(option, 'gpu_use_case')} (not possible)"
    return f"{text(option, 'gpu_use_case')} ({gpus} GPU{'' if gpus == '1' else 's'}{later})"


def _without_gpus(option: object) -> bool:
    """Whether a use of GPUs would get none: this host, the template or the quota has none for it."""
    wants_some: bool = pick(option, "gpu_use_case") != GPU_USE_CASES[0]
    return wants_some and pick(option, "resources.gpu_count") == 0


FIELDS = (
    ("GPU USE CASE", "gpu_use_case", plain),
    ("TEMPLATE", "template.name", plain),
    ("GPUS", "resources.gpu_count", plain),
    ("GPU MODE", "resources.gpu_mode", plain),
    ("CPUS", "resources.cpu_limit", plain),
    ("MEMORY", "resources.memory_bytes", size),
    ("SHM SIZE", "resources.shm_bytes", size),
    ("PIDS", "resources.pids_limit", plain),
    ("POSSIBLE NOW", "allocatable_now", plain),
    ("BLOCKED BY", "blocked_by", plain),
    ("REASON", "message", plain),
    ("HINT", "hint", plain),
    ("ALTERNATIVES", "alternatives", _alternatives),
    ("COMMAND", "command", plain),
)


def recommend(args: Arguments) -> int:
    """Recommend a workspace's resources for a template and a use of GPUs; reserves nothing.

    none: no GPUs. light: one, shared if the template allows. standard (default):
    the template's own number, at least one. heavy: half of the free ones. max: all
    that your quota and the host allow now. The last line sets such a
    workspace up, with its image, and starts it.
    """
    request = {"template": args.template}
    if args.gpu_use_case is not None:
        request["gpu_use_case"] = args.gpu_use_case
    answer = ask(args, "POST", "/api/workspaces/recommend", request)
    if args.json or not on_terminal():
        return show_record(args, answer, FIELDS)
    record = answer.json()
    absent = {"command"} if _without_gpus(record) else set()
    visible = [row for row in FIELDS if pick(record, row[1]) not in (None, [], "") and row[1] not in absent]
    details(visible, record)
    return 0


COMMANDS = (
    Command(
        "recommend",
        recommend,
        Argument("--template", "its id or name", type=reference, metavar="TEMPLATE", required=True),
        Argument("--gpu-use-case", "what the GPUs are for", choices=GPU_USE_CASES),
        examples=EXAMPLES,
    ),
)
