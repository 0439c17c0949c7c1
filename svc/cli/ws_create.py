"""`svc ws create` and `svc ws setup`: two ways to make a workspace."""

from __future__ import annotations

from svc.cli import operations, output
from svc.cli.arguments import add_command, cores, reference, size, variable, whole
from svc.cli.client import ask, show_outcome, show_raw
from svc.cli.ws_columns import COLUMNS

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from svc.cli.arguments import Words

RESOURCES = ("cpu_limit", "memory_bytes", "shm_bytes", "pids_limit", "gpu_count", "gpu_mode")
CREATE_EXAMPLES = """\
svc ws create --template python --name demo
svc ws create --template tpl-4k2m9x7p --name train --cpus 8 --memory 32g --gpu-count 1
svc ws create --template python --name web --env MODE=test --env PORT=8000"""
SETUP_EXAMPLES = """\
svc ws setup --template python --name demo
svc ws setup --template python --name demo --memory 8g && svc ws start demo"""


def add_commands(words: Words) -> None:
    """Add `create` and `setup`, which take the same options."""
    _add_options(add_command(words, "create", create, CREATE_EXAMPLES))
    _add_options(add_command(words, "setup", setup, SETUP_EXAMPLES))


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--template",
        required=True,
        metavar="TEMPLATE",
        type=reference,
        help="its id or name: svc template list",
    )
    add("--name", required=True, metavar="NAME", help="your name for it: a-z, 0-9 and -")
    add("--display-name", metavar="TEXT", help="a longer name for people")
    add("--cpus", dest="cpu_limit", metavar="N", type=cores, help="CPU cores, such as 4 or 0.5")
    add("--memory", dest="memory_bytes", metavar="SIZE", type=size, help="memory, such as 512m or 32g")
    add("--shm-size", dest="shm_bytes", metavar="SIZE", type=size, help="size of /dev/shm")
    add("--pids", dest="pids_limit", metavar="N", type=whole(0), help="most processes and threads at once")
    add("--gpu-count", metavar="N", type=whole(0), help="number of GPUs")
    add("--gpu-mode", choices=("exclusive", "shared"), help="whether the GPUs are its own")
    add(
        "--env",
        action="append",
        metavar="NAME=VALUE",
        type=variable,
        help="environment variable (repeatable)",
    )
    add("--restart-on-boot", action="store_true", help="start it again after the host has rebooted")


def body(args: argparse.Namespace) -> dict[str, Any]:
    """The request: "Sends only the flags that are set; template defaults fill the rest"."""
    given = vars(args)
    request = {
        key: given[key] for key in ("name", "template", "display_name", "env") if given[key] is not None
    }
    resources = {key: given[key] for key in RESOURCES if given[key] is not None}
    if resources:
        request["resources"] = resources
    if args.restart_on_boot:
        request["restart_on_boot"] = True
    return request


def create(args: argparse.Namespace) -> int:
    """Create a workspace; it is not started.

    Only the options that are given are sent; the template's defaults fill the
    rest. Nothing is pulled: with the image missing the workspace is there, but
    starts only after `svc image pull`. `svc ws setup` does both.
    """
    answer = ask(args, "POST", "/api/workspaces", body(args))
    sentence = "{name} ({id}) is created; start it with: svc ws start {name}"
    if not args.json and output.text(answer.json(), "image_status") == "missing":
        sentence = (
            "{name} ({id}) is created; its image is missing: svc image pull " + args.template + " --wait"
        )
    return show_outcome(args, answer, COLUMNS, sentence)


def setup(args: argparse.Namespace) -> int:
    """Fetch the image if it is missing and create the workspace, as one operation.

    Does not start the workspace. Waits, with progress on standard error;
    Ctrl-C ends the waiting only and prints the operation's id. --json prints
    the finished operation.
    """
    started = ask(args, "POST", "/api/workspaces/setup", body(args))
    finished = operations.wait(args, started)
    if args.json:
        return show_raw(finished)
    made = operations.result(finished, "workspace_id")
    answer = ask(args, "GET", f"/api/workspaces/{made}")
    return show_outcome(args, answer, COLUMNS, "{name} ({id}) is ready; start it with: svc ws start {name}")
