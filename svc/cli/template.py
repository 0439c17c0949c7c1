"""`svc template`: what workspaces are made from."""

from __future__ import annotations

from svc.cli import output
from svc.cli.arguments import add_command, add_owner, add_word, quote, read_file, reference
from svc.cli.client import ask, show_deleted, show_list, show_outcome, show_record
from svc.cli.output import plain, size, when

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    import argparse

    from svc.cli.arguments import Words

DESCRIPTION = """\
Global templates are everybody's; private ones are yours alone. Commands take a
template's id or its name."""
COLUMNS = (
    ("ID", "id", plain),
    ("NAME", "name", plain),
    ("SCOPE", "scope", plain),
    ("STATUS", "status", plain),
    ("IMAGE", "source.image_ref", plain),
    ("REVISION", "revision", plain),
    ("UPDATED", "updated_at", when),
)
FIELDS = (
    *COLUMNS[:2],
    ("DESCRIPTION", "description", plain),
    *COLUMNS[2:4],
    ("OWNER", "owner", plain),
    ("SOURCE", "source.type", plain),
    *COLUMNS[4:6],
    ("CPUS", "defaults.cpu_limit", plain),
    ("MEMORY", "defaults.memory_bytes", size),
    ("SHM SIZE", "defaults.shm_bytes", size),
    ("PIDS", "defaults.pids_limit", plain),
    ("GPUS", "defaults.gpu_count", plain),
    ("GPU MODE", "defaults.gpu_mode", plain),
    ("LIMITS", "limits", plain),
    ("ENV", "env", plain),
    ("COMMAND", "command", plain),
    ("RUN AS", "run_as", plain),
    ("FINDINGS", "findings", plain),
    ("CREATED", "created_at", when),
    COLUMNS[6],
)
CREATE_EXAMPLES = """\
svc template create --file python.json
echo '{"name": "python", "source": {"type": "registry", "image_ref": "registry.example/python:3.12"}}' |
  svc template create --file -"""


def add_parser(words: Words) -> None:
    """Add the word `template` and its commands."""
    commands = add_word(words, "template", "what workspaces are made from", DESCRIPTION)
    parser = add_command(commands, "list", list_, "svc template list\nsvc template list --json")
    add_owner(parser, "the templates")
    add_template(
        add_command(commands, "get", get, "svc template get python\nsvc template get tpl-4k2m9x7p --json")
    )
    parser = add_command(commands, "create", create, CREATE_EXAMPLES)
    parser.add_argument(
        "--file", required=True, metavar="FILE|-", help="the template, as JSON; - is standard input"
    )
    parser = add_command(commands, "edit", edit, "svc template edit python --file patch.json")
    add_template(parser)
    parser.add_argument(
        "--file", required=True, metavar="FILE|-", help="the changes, as JSON; - is standard input"
    )
    parser = add_command(
        commands, "delete", delete, "svc template delete python\nsvc template delete python --yes"
    )
    add_template(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_template(add_command(commands, "enable", enable, "svc template enable python"))
    add_template(add_command(commands, "disable", disable, "svc template disable python"))


def add_template(parser: argparse.ArgumentParser) -> None:
    """The argument that names a template."""
    parser.add_argument("template", metavar="TEMPLATE", type=reference, help="its id or name")


def path(args: argparse.Namespace, verb: str = "") -> str:
    """The path of the template that was named, or of something below it."""
    return f"/api/templates/{quote(args.template)}{verb}"


def list_(args: argparse.Namespace) -> int:
    """List the templates that you can see.

    Columns: id, name, scope, status, image, revision, updated. --json prints the
    first 200 records as the API gave them; `next_offset` says whether more follow.
    """
    return show_list(
        args, "/api/templates", COLUMNS, "No templates yet: svc template create --help", owner=args.owner
    )


def get(args: argparse.Namespace) -> int:
    """Show one template whole."""
    return show_record(args, ask(args, "GET", path(args)), FIELDS)


def create(args: argparse.Namespace) -> int:
    """Create a template from a JSON file.

    The object has name and source {type: "registry", image_ref}; it may have
    description, scope ("private", or "global" for administrators), defaults and
    limits {cpu_limit, memory_bytes, shm_bytes, pids_limit, gpu_count, gpu_mode},
    command, run_as, env [{name, value}].
    """
    answer = ask(args, "POST", "/api/templates", read_file(args.file))
    return show_outcome(args, answer, COLUMNS, "{name} ({id}) is created, {status}.")


def edit(args: argparse.Namespace) -> int:
    """Change a template, from a JSON file.

    The object has the keys to change, as in `svc template create`. An edit makes
    a new revision: the workspaces made from the template keep theirs. Another
    image disables the template.
    """
    answer = ask(args, "PATCH", path(args), read_file(args.file))
    return show_outcome(args, answer, COLUMNS, "{name} is now at revision {revision}, {status}.")


def delete(args: argparse.Namespace) -> int:
    """Delete a template.

    The workspaces made from it stay. Asks first on a terminal; elsewhere --yes
    is needed.
    """
    output.confirm(f"Delete template {args.template}?", args.yes, f"svc template delete {args.template}")
    answer = ask(args, "DELETE", path(args))
    return show_deleted(args, answer, args.template)


def enable(args: argparse.Namespace) -> int:
    """Enable a template, so that workspaces can be made from it.

    Your private templates are yours to enable, global ones the administrators'.
    """
    return show_outcome(args, ask(args, "POST", path(args, "/enable"), {}), COLUMNS, "{name} is {status}.")


def disable(args: argparse.Namespace) -> int:
    """Disable a template: no new workspaces; the ones made from it stay."""
    return show_outcome(args, ask(args, "POST", path(args, "/disable"), {}), COLUMNS, "{name} is {status}.")
