"""`svc image`: the templates' images in the caller's own store."""

from __future__ import annotations

from svc.cli import operations, output
from svc.cli.arguments import Argument, Arguments, Command, Word
from svc.cli.client import ask, items, quote, show_list, show_outcome, show_raw, show_record
from svc.cli.output import plain, size, state, when
from svc.cli.template import TEMPLATE

DESCRIPTION = """\
Every user has a store of their own: an image is fetched once for each user, and
starting a workspace never fetches it."""
COLUMNS = (
    ("TEMPLATE", "template.name", plain),
    ("STATUS", "status", state),
    ("SIZE", "size_bytes", size),
    ("IMAGE", "ref", plain),
    ("USED BY", "used_by", plain),
    ("UPDATED", "updated_at", when),
)
FIELDS = (*COLUMNS[:4], ("DIGEST", "digest", plain), ("ERROR", "error", plain), *COLUMNS[4:])
ALLOWLIST = (("HOST", "host", plain), ("PATH PREFIX", "path_prefix", plain), ("INSECURE", "insecure", plain))


def list_(args: Arguments) -> int:
    """List the images in your store and what uses them.

    Columns: template, status, size, image, used by, updated.
    """
    return show_list(args, "/api/images", COLUMNS, "No images yet: svc image pull TEMPLATE --wait")


def status(args: Arguments) -> int:
    """Show whether a template's image is in your store."""
    return show_record(args, ask(args, "GET", _path(args)), FIELDS)


def pull(args: Arguments) -> int:
    """Pull a template's image into your own store.

    Returns at once unless --wait is given: the service pulls on, and
    `svc image status` tells how far it is. Ctrl-C ends the waiting only. --json
    prints the operation: with --wait as it ended, else as it began.
    """
    started = ask(args, "POST", _path(args, "/pull"), {})
    if not args.wait:
        sentence = f"The pull has begun: svc image status {args.template}"
        return show_outcome(args, started, operations.STARTED, sentence)
    finished = operations.wait(args, started)
    if args.json:
        return show_raw(finished)
    return show_outcome(args, ask(args, "GET", _path(args)), COLUMNS, "The image {ref} is {status}.")


def allowlist(args: Arguments) -> int:
    """List the registries that images may come from; the administrator sets them.

    Columns: host, path prefix, insecure.
    """
    empty = "No registry is allowed yet; the administrator names them with PUT /api/admin/registries"
    answer = ask(args, "GET", "/api/images/allowlist")
    if args.json:
        return show_raw(answer)
    output.table(ALLOWLIST, items(answer.json()), empty)
    return 0


def _path(args: Arguments, verb: str = "") -> str:
    return f"/api/templates/{quote(args.template)}/image{verb}"


WORD = Word(
    "image",
    DESCRIPTION,
    Command("list", list_, examples="svc image list\nsvc image list --json"),
    Command("status", status, TEMPLATE, examples="svc image status python"),
    Command(
        "pull",
        pull,
        TEMPLATE,
        Argument("--wait", "wait for the end, with progress", kind="flag"),
        examples="svc image pull python --wait\nsvc image pull tpl-4k2m9x7p",
    ),
    Command("allowlist", allowlist, examples="svc image allowlist"),
)
