"""`svc ws recommend`: "the safe defaults" for a template and a use of GPUs."""

from __future__ import annotations

from svc.cli.arguments import Argument, Arguments, Command, reference
from svc.cli.client import ask, show_record
from svc.cli.output import pick, plain, size, text
from svc.limits import GPU_USE_CASES

EXAMPLES = """\
svc ws recommend --template python --gpu-use-case none
svc ws recommend --template torch --gpu-use-case heavy --json"""


def _alternatives(value: object, human: bool) -> str:
    return plain([_alternative(option) for option in value], human) if isinstance(value, list) else ""


def _alternative(option: object) -> str:
    later = "" if pick(option, "allocatable_now") is True else ", not now"
    gpus = text(option, "resources.gpu_count")
    return f"{text(option, 'gpu_use_case')} ({gpus} GPU{'' if gpus == '1' else 's'}{later})"


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
    that your quota and the host allow now. The last line is the command that
    creates such a workspace.
    """
    request = {"template": args.template}
    if args.gpu_use_case is not None:
        request["gpu_use_case"] = args.gpu_use_case
    return show_record(args, ask(args, "POST", "/api/workspaces/recommend", request), FIELDS)


COMMANDS = (
    Command(
        "recommend",
        recommend,
        Argument("--template", "its id or name", type=reference, metavar="TEMPLATE", required=True),
        Argument("--gpu-use-case", "what the GPUs are for", choices=GPU_USE_CASES),
        examples=EXAMPLES,
    ),
)
