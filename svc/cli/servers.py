"""`svc servers`: the hardware of this host."""

from __future__ import annotations

from svc.client.requests import ask, show_raw
from svc.commandline import output
from svc.commandline.arguments import Arguments, Command, CommandGroup
from svc.commandline.output import plain, size

DESCRIPTION = """\
This host's GPUs and their driver.

What the GPUs are used for now, and by whom: svc ws capacity"""
DRIVER = (("DRIVER", "driver", plain), ("MAX CUDA", "max_cuda", plain))
COLUMNS = (
    ("INDEX", "index", plain),
    ("GPU", "uuid", plain),
    ("MODEL", "model", plain),
    ("VRAM", "vram_bytes", size),
    ("COMPUTE CAPABILITY", "compute_capability", plain),
    ("MIG", "mig", plain),
    ("CDI NAME", "cdi", plain),
)


def hardware(args: Arguments) -> int:
    """Show the GPU driver of this host, the newest CUDA version that it supports, and each GPU.

    A narrow terminal gets no uuids and CDI names; --json and a pipe have everything.
    In a pipe: the lines driver and max_cuda, then one per GPU with its index,
    uuid, model, bytes of memory, compute capability, whether it is in MIG mode or
    a MIG instance, and the CDI name by which a container gets it.
    """
    answer = ask(args, "GET", "/api/servers/hardware")
    if args.json:
        return show_raw(answer)
    found = answer.json()
    gpus = found.get("gpus")
    gpus = gpus if isinstance(gpus, list) else []
    if gpus or not output.on_terminal():
        output.details(DRIVER, found)
    fails = output.pick(found, "cdi.ready") is False
    empty = "This host has no usable GPUs." if fails else "This host has no GPUs."
    output.table(COLUMNS, gpus, empty, spare=("GPU", "CDI NAME"))
    if fails:
        which = "not every" if any(output.text(gpu, "cdi") for gpu in gpus) else "no"
        output.note(f"{which} GPU is usable: {output.text(found, 'cdi.problem')}")
        if output.text(found, "cdi.remedy"):
            output.note(f"for an administrator: {output.text(found, 'cdi.remedy')}")
    return 0


COMMAND = CommandGroup(
    "servers",
    DESCRIPTION,
    Command("hardware", hardware, examples="svc servers hardware\nsvc servers hardware --json"),
)
