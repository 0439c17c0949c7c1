"""Templates of common applications, as files of this program: one unpacked bundle for each.

`definitions/NAME` has manifest.json, the Dockerfile and what that copies, as docs/templates.md
describes a bundle; docs/examples.md shows how each is used.
"""

from __future__ import annotations

import json
import os
import re

from svc.cli.template import projects
from svc.commandline import output
from svc.commandline.arguments import Arguments, Command
from svc.errors import UsageError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

DIRECTORY = os.path.join(os.path.dirname(__file__), "definitions")
COLUMNS = (
    ("NAME", "name", output.plain),
    ("IMAGE", "image", output.plain),
    ("DESCRIPTION", "description", output.plain),
)
EXAMPLES = """\
svc template examples
svc template create --example jupyter"""
_FROM = re.compile(r"^FROM (\S+)", re.MULTILINE)


def examples(args: Arguments) -> int:
    """List the templates that `svc template create --example` makes; contacts no server.

    Columns: name, image, description. The image is the one that the build begins with;
    --base of `svc template create` names another. In a pipe, and with --json: the same.
    """
    records = [record(name) for name in names()]
    if args.json:
        output.items_json(records)
    else:
        output.table(COLUMNS, records, "")
    return 0


def names() -> list[str]:
    """The names of all examples."""
    return sorted(os.listdir(DIRECTORY))


def archive(args: Arguments) -> tuple[Any, int]:
    """The bundle for `template create --example`, and its size; raises UsageError, FileRefused."""
    name = args.example
    if name not in names():
        raise UsageError(f"no example is named {name}: {', '.join(names())}", hint="svc template examples")
    if args.file or args.dockerfile or args.context:
        raise UsageError(
            "--example cannot be combined with --file, --dockerfile and --context",
            hint=f"svc template create --example {name} --name NAME",
        )
    template, dockerfile = _template(name), _dockerfile(name)
    template["name"] = args.name or template["name"]
    if args.base:
        dockerfile = _FROM.sub(lambda _: f"FROM {args.base}", dockerfile, count=1)
    bundle = projects.packed(template, dockerfile.encode())
    context = os.path.join(DIRECTORY, name, projects.CONTEXT)
    if os.path.isdir(context):
        bundle.add_directory(context, f"{projects.CONTEXT}/")
    return bundle.finished()


def record(name: str) -> dict[str, Any]:
    """An example in the list: name, image, description."""
    found = _FROM.search(_dockerfile(name))
    return {"name": name, "image": found and found[1], "description": _template(name)["description"]}


def _template(name: str) -> dict[str, Any]:
    with open(os.path.join(DIRECTORY, name, projects.MANIFEST), encoding="utf-8") as file:
        return dict(json.load(file)["template"])


def _dockerfile(name: str) -> str:
    with open(os.path.join(DIRECTORY, name, projects.DOCKERFILE), encoding="utf-8") as file:
        return file.read()


COMMANDS = (Command("examples", examples, examples=EXAMPLES),)
