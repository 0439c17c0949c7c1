"""`svc template revisions` and `svc template diff`: what a template was, and what has changed."""

from __future__ import annotations

from svc.client.requests import ask, query, quote, show_list, show_raw
from svc.commandline import output
from svc.commandline.arguments import TEMPLATE, Argument, Arguments, Command, whole
from svc.commandline.output import plain, text, when
from svc_helper.wire import quick_json

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

COLUMNS = (
    ("REVISION", "revision", plain),
    ("CREATED", "created_at", when),
    ("IMAGE", "image_ref", plain),
    ("WORKSPACES", "workspaces", plain),
    ("CURRENT", "is_current", plain),
    ("REVIEWED", "is_reviewed", plain),
)


def path(args: Arguments, below: str) -> str:
    """The URL path of something below the template named on the command line."""
    return f"/api/templates/{quote(args.template)}{below}"


def revisions(args: Arguments) -> int:
    """List the kept revisions of a template, the newest first.

    Columns: revision, created, image, workspaces that use it, whether it is the current
    one, and whether it is the last that was enabled. Of a global template you see the
    current one and those of your own workspaces, administrators all. With --revision its
    Dockerfile is printed; --json has the whole revision.
    """
    if args.revision is None:
        return show_list(args, path(args, "/revisions"), COLUMNS, "No revisions.")
    answer = ask(args, "GET", path(args, f"/revisions/{args.revision}"))
    if args.json:
        return show_raw(answer)
    record = answer.json()
    dockerfile = record.get("dockerfile")
    if not isinstance(dockerfile, str):
        output.details(COLUMNS, record)
    elif output.on_terminal():
        output.captured(dockerfile)
    else:
        output.write_bytes(dockerfile.encode("utf-8", "surrogatepass"))
    return 0


def diff(args: Arguments) -> int:
    """Show what differs between two revisions of a template.

    Without --from and --to: between the current one and the one before it. Each changed
    field with its values, then unified diffs of the Dockerfile and of the files of the
    build context. Values of secret variables are not shown.
    """
    answer = ask(args, "GET", path(args, "/diff") + query(**{"from": args.before, "to": args.after}))
    if args.json:
        return show_raw(answer)
    show_difference(answer.json())
    return 0


def show_difference(record: dict[str, Any]) -> None:
    """Print what differs between two revisions."""
    before, after = text(record, "before"), text(record, "after")
    found = record.get("fields")
    for change in found if isinstance(found, list) else []:
        print(output.visible(f"{text(change, 'field')}:"))
        for sign, key in (("-", "before"), ("+", "after")):
            print(output.visible(f"{sign} {_value(change.get(key) if isinstance(change, dict) else None)}"))
    for key in ("dockerfile", "context"):
        if lines := text(record, key):
            output.captured(lines + "\n")
    if not record.get("changed"):
        output.note(f"revisions {before} and {after} do not differ")


def _value(value: object) -> str:
    return quick_json.dumps(value)


COMMANDS = (
    Command(
        "revisions",
        revisions,
        TEMPLATE,
        Argument("--revision", "print the Dockerfile of this one", metavar="N", type=whole(1)),
        examples="svc template revisions python\nsvc template revisions my-python --revision 2 > Dockerfile",
    ),
    Command(
        "diff",
        diff,
        TEMPLATE,
        Argument("--from", "the earlier revision", metavar="N", type=whole(1), dest="before"),
        Argument("--to", "the later revision", metavar="N", type=whole(1), dest="after"),
        examples="svc template diff python\nsvc template diff python --from 3 --to 5",
    ),
)
