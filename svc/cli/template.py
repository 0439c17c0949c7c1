"""`svc template`: what workspaces are made from."""

from __future__ import annotations

from svc.cli import output
from svc.cli.arguments import Argument, Arguments, Command, Word, reference
from svc.cli.client import ask, quote, read_file, show_deleted, show_list, show_outcome, show_record
from svc.cli.output import plain, size, state, when

DESCRIPTION = """\
Global templates are everybody's; private ones are yours alone. Commands take a
template's id or its name."""
COLUMNS = (
    ("ID", "id", plain),
    ("NAME", "name", plain),
    ("SCOPE", "scope", plain),
    ("STATUS", "status", state),
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
TEMPLATE = Argument("TEMPLATE", "its id or name", type=reference)
OWNER = Argument("--owner", "this user's templates (administrators only)", metavar="USER", type=reference)
CREATE_EXAMPLES = """\
svc template create --file python.json
echo '{"name": "python", "source": {"type": "registry", "image_ref": "registry.example/python:3.12"}}' |
  svc template create --file -"""


def path(args: Arguments, verb: str = "") -> str:
    """The path of the template that was named, or of something below it."""
    return f"/api/templates/{quote(args.template)}{verb}"


def list_(args: Arguments) -> int:
    """List the templates that you can see.

    Columns: id, name, scope, status, image, revision, updated. --json prints the
    first 200 records as the API gave them; `next_offset` says whether more follow.
    """
    return show_list(
        args, "/api/templates", COLUMNS, "No templates yet: svc template create --help", owner=args.owner
    )


def get(args: Arguments) -> int:
    """Show one template whole."""
    return show_record(args, ask(args, "GET", path(args)), FIELDS)


def create(args: Arguments) -> int:
    """Create a template from a JSON file.

    The object has name and source {type: "registry", image_ref}; it may have
    description, scope ("private", or "global" for administrators), defaults and
    limits {cpu_limit, memory_bytes, shm_bytes, pids_limit, gpu_count, gpu_mode},
    command, run_as, env [{name, value}].
    """
    answer = ask(args, "POST", "/api/templates", read_file(args.file))
    return show_outcome(args, answer, COLUMNS, "{name} ({id}) is created, {status}.")


def edit(args: Arguments) -> int:
    """Change a template, from a JSON file.

    The object has the keys to change, as in `svc template create`. An edit makes
    a new revision: the workspaces made from the template keep theirs. Another
    image disables the template.
    """
    answer = ask(args, "PATCH", path(args), read_file(args.file))
    return show_outcome(args, answer, COLUMNS, "{name} is now at revision {revision}, {status}.")


def delete(args: Arguments) -> int:
    """Delete a template.

    The workspaces made from it stay. Asks first on a terminal; elsewhere --yes
    is needed.
    """
    output.confirm(f"Delete template {args.template}?", args.yes, f"svc template delete {args.template}")
    answer = ask(args, "DELETE", path(args))
    return show_deleted(args, answer, args.template)


def enable(args: Arguments) -> int:
    """Enable a template, so that workspaces can be made from it.

    Your private templates are yours to enable, global ones the administrators'.
    """
    return show_outcome(args, ask(args, "POST", path(args, "/enable"), {}), COLUMNS, "{name} is {status}.")


def disable(args: Arguments) -> int:
    """Disable a template: no new workspaces; the ones made from it stay."""
    return show_outcome(args, ask(args, "POST", path(args, "/disable"), {}), COLUMNS, "{name} is {status}.")


WORD = Word(
    "template",
    DESCRIPTION,
    Command("list", list_, OWNER, examples="svc template list\nsvc template list --json"),
    Command("get", get, TEMPLATE, examples="svc template get python\nsvc template get tpl-4k2m9x7p --json"),
    Command(
        "create",
        create,
        Argument("--file", "the template, as JSON; - is standard input", metavar="FILE|-", required=True),
        examples=CREATE_EXAMPLES,
    ),
    Command(
        "edit",
        edit,
        TEMPLATE,
        Argument("--file", "the changes, as JSON; - is standard input", metavar="FILE|-", required=True),
        examples="svc template edit python --file patch.json",
    ),
    Command(
        "delete",
        delete,
        TEMPLATE,
        Argument("--yes", "do not ask", kind="flag"),
        examples="svc template delete python\nsvc template delete python --yes",
    ),
    Command("enable", enable, TEMPLATE, examples="svc template enable python"),
    Command("disable", disable, TEMPLATE, examples="svc template disable python"),
)
