"""`svc image`: the templates' images in the caller's own store."""

from __future__ import annotations

from svc.cli import operations, output
from svc.cli.arguments import add_command, add_word, quote
from svc.cli.client import ask, items, show_list, show_outcome, show_raw, show_record
from svc.cli.output import plain, size, when
from svc.cli.template import add_template

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    import argparse

    from svc.cli.arguments import Words

DESCRIPTION = """\
Every user has a store of their own: an image is fetched once for each user, and
starting a workspace never fetches it."""
COLUMNS = (
    ("TEMPLATE", "template.name", plain),
    ("STATUS", "status", plain),
    ("SIZE", "size_bytes", size),
    ("IMAGE", "ref", plain),
    ("USED BY", "used_by", plain),
    ("UPDATED", "updated_at", when),
)
FIELDS = (*COLUMNS[:4], ("DIGEST", "digest", plain), *COLUMNS[4:])
ALLOWLIST = (("HOST", "host", plain), ("PATH PREFIX", "path_prefix", plain), ("INSECURE", "insecure", plain))
PULL_EXAMPLES = """\
svc image pull python --wait
svc image pull tpl-4k2m9x7p"""


def add_parser(words: Words) -> None:
    """Add the word `image` and its commands."""
    commands = add_word(words, "image", "the templates' images in your own store", DESCRIPTION)
    add_command(commands, "list", list_, "svc image list\nsvc image list --json")
    add_template(add_command(commands, "status", status, "svc image status python"))
    parser = add_command(commands, "pull", pull, PULL_EXAMPLES)
    add_template(parser)
    parser.add_argument("--wait", action="store_true", help="wait for the end, with progress")
    add_command(commands, "allowlist", allowlist, "svc image allowlist")


def list_(args: argparse.Namespace) -> int:
    """List the images in your store and what uses them.

    Columns: template, status, size, image, used by, updated.
    """
    return show_list(args, "/api/images", COLUMNS, "No images yet: svc image pull TEMPLATE --wait")


def status(args: argparse.Namespace) -> int:
    """Show whether a template's image is in your store."""
    return show_record(args, ask(args, "GET", _path(args)), FIELDS)


def pull(args: argparse.Namespace) -> int:
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


def allowlist(args: argparse.Namespace) -> int:
    """List the registries that images may come from; the administrator sets them.

    Columns: host, path prefix, insecure.
    """
    empty = "No registry is allowed yet; the administrator names them with PUT /api/admin/registries"
    answer = ask(args, "GET", "/api/images/allowlist")
    if args.json:
        return show_raw(answer)
    output.table(ALLOWLIST, items(answer.json()), empty)
    return 0


def _path(args: argparse.Namespace, verb: str = "") -> str:
    return f"/api/templates/{quote(args.template)}/image{verb}"
