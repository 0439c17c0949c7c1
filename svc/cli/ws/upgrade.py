"""`svc ws upgrade`: a stopped workspace moves to its template's newest revision and image."""

from __future__ import annotations

from svc.cli.ws.columns import COLUMNS, note_limits, path
from svc.client.requests import ask, show_outcome, show_raw
from svc.commandline import output
from svc.commandline.arguments import WORKSPACE, YES, Argument, Arguments, Command
from svc.commandline.output import pick, text
from svc.limits import COPY_MOST_S
from svc_helper.wire import quick_json

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

LOST = "The container is replaced: what was installed in it is lost, the files of /work stay."


def upgrade(args: Arguments) -> int:
    """Move a stopped workspace to the newest revision of its template, and to the newest image of it.

    Prints first what changes. What you have set yourself stays, as far as the new limits allow
    it. Variables, resources, ports and launchers change with the container kept, and with
    what is installed in it. Another image, command, user or mount needs a new container:
    then this asks, and needs --yes without a terminal. So does an image that was built or pulled
    again. The image must be in your store.
    --dry-run only prints; with --json it prints the API's answer.
    """
    answer = ask(args, "GET", path(args, "/upgrade"))
    if args.dry_run and args.json:
        return show_raw(answer)
    plan = answer.json()
    replaced = text(plan, "container") == "replaced"
    if not args.json:
        _show(args, plan, replaced)
    if args.dry_run:
        return 0
    if replaced:
        command = output.again(args, "svc", "ws", "upgrade", args.workspace)
        output.confirm(f"Replace the container of {args.workspace}?", args.yes, command, lambda: [LOST])
    body = {"revision": pick(plan, "after"), "replace_container": replaced}
    answer = ask(args, "POST", path(args, "/upgrade"), body, COPY_MOST_S)
    if not args.json:
        note_limits(answer.json())
    revision = text(plan, "after")
    return show_outcome(
        args, answer, COLUMNS, f"{{name}} is at revision {revision}; start it with: svc ws start {{name}}"
    )


def _show(args: Arguments, plan: dict[str, Any], replaced: bool) -> None:
    """Print the changes to standard error: of a dry run to standard output."""
    before, after = text(plan, "before"), text(plan, "after")
    lines = [f"{args.workspace} is at revision {before}, the newest is {after}"]
    if before == after and replaced:
        lines = [f"{args.workspace} is at revision {before}, the newest; its image was built or pulled again"]
    found = plan.get("changes")
    for change in found if isinstance(found, list) else []:
        lines.append(f"  {_name(change)}: {_value(change, 'before')} -> {_value(change, 'after')}")
    if before != after or replaced:
        lines.append(LOST if replaced else "The container stays, with what is installed in it.")
    for line in lines:
        if args.dry_run:
            print(output.visible(line))
        else:
            output.remark(output.visible(line))


def _name(change: object) -> str:
    name = text(change, "name")
    return f"{text(change, 'part')} {name}" if name else text(change, "part")


def _value(change: Any, key: str) -> str:
    value = pick(change, key)
    return "none" if value is None else value if isinstance(value, str) else quick_json.dumps(value)


COMMANDS = (
    Command(
        "upgrade",
        upgrade,
        WORKSPACE,
        Argument("--dry-run", "only print what would change", kind="flag"),
        YES,
        examples="svc ws upgrade demo --dry-run\nsvc ws upgrade demo\nsvc ws upgrade demo --yes",
    ),
)
