"""`svc ws create` and `svc ws setup`: create a workspace, without or with its image."""

from __future__ import annotations

from svc.cli import existing
from svc.cli.ws.columns import COLUMNS, NO_NETWORK, note_limits
from svc.client import transport
from svc.client.requests import ask, checked, note_warnings, quote, show_outcome
from svc.commandline import output
from svc.commandline.arguments import (
    QUIET,
    Argument,
    Arguments,
    Command,
    cores,
    port,
    reference,
    size,
    variable,
    whole,
)
from svc.commandline.output import pick
from svc.limits import COPY_MOST_S, PORT_KINDS
from svc_helper.wire import quick_json

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

KEYS = ("name", "template", "display_name", "env", "ports", "network")
RESOURCES = ("cpu_limit", "memory_bytes", "shm_bytes", "pids_limit", "gpu_count", "gpu_mode")
CREATE_EXAMPLES = """\
svc ws create --template python --name demo
svc ws create --template tpl-4k2m9x7p --name train --cpus 8 --memory 32g --gpu-count 1
svc ws create --template python --name web --env MODE=test --port web=8000
svc ws create --template python --name box --port login=22/ssh --port db/postgres@ada
svc ws create --template torch --name job --command 'python3 /work/train.py' && svc ws start job
svc ws create --template torch --name train --gpu-count 2 --dry-run
svc ws create --template python --name lab --if-not-exists"""
SETUP_EXAMPLES = """\
svc ws setup --template python --name demo
svc ws setup --template python --name demo --memory 8g && svc ws start demo"""
EXISTS = "{name} ({id}) exists already, {status}; start it with: svc ws start {name}"
IF_NOT_EXISTS = Argument("--if-not-exists", "succeed if it exists, just as it was asked for", kind="flag")
OPTIONS = (
    Argument("--template", "its id or name", type=reference, metavar="TEMPLATE", required=True),
    Argument("--name", "your name for it: a-z, 0-9 and -", metavar="NAME", required=True),
    Argument("--display-name", "a longer name for people", metavar="TEXT"),
    Argument("--cpus", "CPU cores, such as 4 or 0.5", type=cores, metavar="N", dest="cpu_limit"),
    Argument(
        "--memory", "memory, such as 512m, 1.5g or 32GiB", type=size, metavar="SIZE", dest="memory_bytes"
    ),
    Argument("--shm-size", "size of /dev/shm", type=size, metavar="SIZE", dest="shm_bytes"),
    Argument(
        "--pids", "maximum number of processes and threads", type=whole(0), metavar="N", dest="pids_limit"
    ),
    Argument("--gpu-count", "number of GPUs", type=whole(0), metavar="N"),
    Argument("--gpu-mode", "whether it has the GPUs alone", choices=("exclusive", "shared")),
    Argument("--env", "environment variable (repeatable)", kind="list", type=variable, metavar="NAME=VALUE"),
    Argument(
        "--port",
        "a port inside, reachable at 127.0.0.1, such as web, web=8000 or login=22/ssh@ada (kinds:"
        f" {', '.join(PORT_KINDS)}); for every user of this host with :host (repeatable)",
        kind="list",
        type=port,
        metavar="NAME[=PORT][/KIND[@USER]][:ACCESS]",
        dest="ports",
    ),
    Argument(
        "--network",
        "a network of your own, on which your workspaces reach each other by name; `none` for none",
        metavar="NAME",
    ),
    Argument("--command", "run this, by sh, instead of the template's command", metavar="COMMAND"),
    Argument("--restart-on-boot", "start it again after a reboot of the host", kind="flag"),
)


def command_of(line: str) -> list[str] | None:
    """The main command for --command: by sh, as that of `svc ws shell`; None, the template's, if empty."""
    return ["sh", "-c", line] if line else None


def body(args: Arguments) -> dict[str, object]:
    """The request body: "Sends only the flags that are set; template defaults fill the rest"."""
    values = {key: value for key, value in vars(args).items() if value is not None}
    request = {key: values[key] for key in KEYS if key in values}
    resources = {key: values[key] for key in RESOURCES if key in values}
    if resources:
        request["resources"] = resources
    if args.network == NO_NETWORK:
        request["network"] = None
    if args.command is not None:
        request["command"] = command_of(args.command)
    if args.restart_on_boot:
        request["restart_on_boot"] = True
    return request


def differences(request: dict[str, Any], record: Any) -> list[str]:
    """What of a workspace is not as a request asks for; what that leaves to the template may be anything."""
    plain = {key: value for key, value in request.items() if key not in ("template", "env", "ports")}
    found = existing.differences(plain, record)
    if request["template"] not in (pick(record, "template.id"), pick(record, "template.name")):
        found.insert(0, "template")
    for key in ("env", "ports"):
        present = {pick(one, "name"): one for one in pick(record, key) or []}
        found += [
            f"{key}.{one['name']}"
            for one in request.get(key, [])
            if existing.differences(one, present.get(one["name"]))
        ]
    return found


def _find(args: Arguments, answer: transport.Answer) -> transport.Answer | None:
    """The workspace of that name, for --if-not-exists; None where the answer is no such refusal."""
    request = body(args)
    path = f"workspaces/{quote(args.name)}"
    return existing.find(args, answer, path, args.name, lambda record: differences(request, record))


def create(args: Arguments) -> int:
    """Create a workspace without starting it.

    Only the options that are set are sent; the template's defaults fill the rest.
    Nothing is pulled: without its image the workspace is created, but starts only
    after `svc image pull`. `svc ws setup` does both. --dry-run creates nothing: it
    prints the resources and GPUs that a start would have now, and what of your quota
    is left then; it fails, with each reason and its remedy, when that is impossible.
    With --if-not-exists a workspace of that name that has what the options say is left
    as it is, and printed; another one of that name is an error.
    """
    if args.dry_run:
        from svc.cli.ws import dry_run  # here, because `ws create` must stay quick

        return dry_run.show(args, ask(args, "POST", "/api/workspaces/check", body(args)))
    request = quick_json.dumps(body(args)).encode()
    answer = transport.request("POST", "/api/workspaces", request, wait_s=COPY_MOST_S)
    if found := _find(args, answer):
        return show_outcome(args, found, COLUMNS, EXISTS)
    checked(args, answer)
    sentence = "{name} ({id}) is created; start it with: svc ws start {name}"
    if not args.json and output.text(answer.json(), "image_status") == "missing":
        sentence = (
            f"{{name}} ({{id}}) is created; its image is missing: svc image pull {args.template} --wait"
        )
    note_limits(answer.json())
    note_warnings(answer.json())
    return show_outcome(args, answer, COLUMNS, sentence)


def setup(args: Arguments) -> int:
    """Pull or build the image if it is missing and create the workspace, as one operation.

    Does not start the workspace. Waits, with progress and the output of a build's
    steps on standard error; --quiet prints neither. Ctrl-C ends the waiting only and
    prints the command that joins it again, which the same `svc ws setup` does too.
    --json prints {"operation": ...}, finished.
    With --if-not-exists a workspace of that name that has what the options say is left
    as it is, and printed; another one of that name is an error.
    """
    from svc.cli import waiting  # here, because `ws create` must stay quick

    asked = transport.request("POST", "/api/workspaces/setup", quick_json.dumps(body(args)).encode())
    if joined := waiting.under_way(asked, "setup"):
        output.note(f"this set-up of {args.name} is already in progress; waiting for its end")
        finished = waiting.follow(args, joined)
    elif found := _find(args, asked):
        return show_outcome(args, found, COLUMNS, EXISTS)
    else:
        finished = waiting.wait(args, checked(args, asked))
    if args.json:
        return waiting.show(finished)
    answer = ask(args, "GET", f"/api/workspaces/{waiting.result(finished, 'workspace_id')}")
    note_limits(answer.json())
    note_warnings(answer.json())
    return show_outcome(args, answer, COLUMNS, "{name} ({id}) is ready; start it with: svc ws start {name}")


COMMANDS = (
    Command(
        "create",
        create,
        *OPTIONS,
        IF_NOT_EXISTS,
        Argument("--dry-run", "create nothing; only print whether it is possible now", kind="flag"),
        examples=CREATE_EXAMPLES,
    ),
    Command("setup", setup, *OPTIONS, IF_NOT_EXISTS, QUIET, examples=SETUP_EXAMPLES),
)
