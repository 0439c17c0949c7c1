"""`svc template`: what workspaces are made from."""

from __future__ import annotations

from svc.cli import existing
from svc.cli.template.columns import COLUMNS, FIELDS, REVIEW, show_change
from svc.client import transport
from svc.client.requests import (
    ask,
    checked,
    quote,
    read_document,
    read_file,
    show_ended,
    show_list,
    show_outcome,
    show_raw,
)
from svc.commandline import output
from svc.commandline.arguments import (
    TEMPLATE,
    YES_REMOVE,
    Argument,
    Arguments,
    Command,
    CommandGroup,
    Deferred,
    reference,
    user,
    whole,
)
from svc.errors import BadAnswer, FileRefused, PreconditionFailed, UsageError
from svc_helper.wire import quick_json

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.client.transport import Answer

DESCRIPTION = """\
What workspaces are made from.

Global templates are everybody's; private ones are yours alone. Commands take a
template's id or its name."""


OWNER = Argument(
    "--owner", "this user's templates, by name or id (administrators only)", metavar="USER", type=reference
)
REVISION = Argument("--revision", "only if this is the current one", metavar="N", type=whole(1))
CREATE_EXAMPLES = """\
svc template create --file python.json
svc template create --dockerfile project/Dockerfile --context project
svc template create --example jupyter
svc template create --example jupyter --name notes --base registry.example/python:3.12
echo '{"name": "python", "source": {"type": "registry", "image_ref": "registry.example/python:3.12"}}' |
  svc template create --file -
echo 'FROM registry.example/debian:12' | svc template create --dockerfile - --name own"""


def path(args: Arguments, verb: str = "") -> str:
    """The URL path of the template named on the command line, or of something below it."""
    return f"/api/templates/{quote(args.template)}{verb}"


def list_(args: Arguments) -> int:
    """List the templates that you can see.

    Columns: id, name, scope, status, image, revision, updated. --review lists
    instead the global templates that wait for an administrator's review, with id,
    name, source, image, revision and findings. --json prints the API's first 200
    records unchanged, and `next_offset` if there are more.
    """
    if not args.review:
        empty = "No templates yet: svc template create --help"
        return show_list(args, "/api/templates", COLUMNS, empty, owner=args.owner)
    if args.owner:
        raise UsageError(
            "--review lists global templates, which have no owner", hint="svc template list --help"
        )
    return show_list(args, "/api/admin/templates", REVIEW, "No templates wait for a review.")


def get(args: Arguments) -> int:
    """Show everything about one template, with the findings for its review.

    On a terminal they include the changes of the last edit.
    """
    answer = ask(args, "GET", path(args))
    if args.json:
        return show_raw(answer)
    record = answer.json()
    output.details(FIELDS, record)
    findings = record.get("findings")
    if output.on_terminal() and isinstance(findings, list):
        _explain(findings)
    return 0


def _explain(findings: list[Any]) -> None:
    """Print the findings, one per line, each with its diff."""
    if findings:
        print()
    for finding in findings:
        line = output.text(finding, "line")
        at = f" ({output.text(finding, 'file')}:{line})" if line else ""
        print(output.visible(f"{output.text(finding, 'code')}{at}: {output.text(finding, 'message')}"))
        if diff := output.text(finding, "diff"):
            output.captured(diff)


def create(args: Arguments) -> int:
    """Create a template from a JSON file, from a Dockerfile with the files that it copies, or an example.

    With --dockerfile the image is built from this file and the files of --context, as
    `podman build -f FILE DIR` would; what its .dockerignore names is left out. The
    template gets the directory's name, or --name. --file adds the rest, then without
    a source. --example makes one of those that `svc template examples` lists; --base
    names another image to build it from, such as that of a registry of your own.

    The JSON object has name and source {type: "registry", image_ref} or {type:
    "dockerfile", dockerfile}; it may have description, scope ("private", or
    "global" for administrators), defaults and limits {cpu_limit, memory_bytes,
    shm_bytes, pids_limit, gpu_count, gpu_mode}, gpu, command, run_as, env [{name,
    value, secret}], launchers, ports, mounts, network. A secret's value is never printed.

    With --if-not-exists (and --file alone) a template of yours of that name that has what
    the file says is left as it is, and printed; another one is an error. Values of
    secrets are not compared.
    """
    created = "{name} ({id}) is created"
    if args.base and not args.example:
        raise UsageError("--base goes with --example", hint="svc template create --help")
    if not (args.dockerfile or args.example):
        if args.context or args.name or not args.file:
            raise UsageError(
                "name --file, --dockerfile with --context and --name, or --example",
                hint="svc template create --help",
            )
        content = read_document(args.file)
        answer = transport.request("POST", "/api/templates", content)
        if found := _find(args, answer, content):
            return show_outcome(args, found, COLUMNS, "{name} ({id}) exists already, {status}.")
        return show_change(args, checked(args, answer), created)
    if args.if_not_exists:
        raise UsageError("--if-not-exists compares with --file only", hint="svc template create --help")
    from svc.client import sending

    file, size = _archive(args)
    with file:
        answer = checked(args, sending.send("/api/templates", file, size, sending.TAR))
    return show_change(args, answer, created)


def _archive(args: Arguments) -> tuple[Any, int]:
    """The bundle of a project or of an example, and its size."""
    if args.example:
        from svc.cli.template.examples import examples

        return examples.archive(args)
    from svc.cli.template import projects

    return projects.of_arguments(args)


def _find(args: Arguments, answer: Answer, content: bytes) -> Answer | None:
    """The template of that name, for --if-not-exists; None where the answer is no such refusal."""
    if answer.ok or not args.if_not_exists:
        return None
    requested = quick_json.loads(content.decode())  # the service has read it
    ref = quote(output.text(requested, "name"))

    def compare(record: Any) -> list[str]:
        dockerfile = requested.get("source", {}).pop("dockerfile", None)
        for one in requested.get("env", []):
            if one.get("secret"):
                one.pop("value", None)
        found = existing.differences(requested, record)
        if dockerfile is not None:
            present = ask(args, "GET", f"/api/templates/{ref}/dockerfile").json()
            found += existing.differences({"dockerfile": dockerfile}, present)
        return found

    return existing.find(args, answer, f"templates/{ref}", output.text(requested, "name"), compare)


def edit(args: Arguments) -> int:
    """Change a template, from a JSON file, or whom its workspaces run as.

    The object has the keys to change, as in `svc template create`. --run-as says which
    user inside is you: needed where the image's programs do not run as root, since they
    cannot open /work otherwise; `none` for nobody but root. An edit creates
    a new revision; workspaces made from the template keep theirs. A change of the
    image or Dockerfile disables the template. A secret variable without a value
    keeps its present one. With --revision nothing is changed unless that is the current one.
    """
    patch: dict[str, Any] | bytes
    users = args.run_as or []
    if len(users) + (args.file is not None) != 1:
        raise UsageError("name one of --file and --run-as", hint="svc template edit --help")
    patch = {"run_as": users[0]} if users else read_document(args.file)
    version = _version(args)
    answer = ask(args, "PATCH", path(args), patch, if_match=version)
    return show_change(args, answer, "{name} is now at revision {revision}")


def _version(args: Arguments, below: str = "") -> str:
    """The ETag of the template, or of what is below it, at the revision that was asked for; "" without one.

    Raises PreconditionFailed if another one is current. What is below is read first: then it is of
    that revision or an earlier one.
    """
    if args.revision is None:
        return ""
    version = ask(args, "GET", path(args, below)).fields.get("etag", "") if below else ""
    answer = ask(args, "GET", path(args))
    if answer.json().get("revision") != args.revision:
        current = output.text(answer.json(), "revision")
        raise PreconditionFailed(
            f"the current revision of {args.template} is {current}, not {args.revision}",
            hint=f"svc template diff {args.template} --from {args.revision}",
        )
    return version or answer.fields.get("etag", "")


def clone(args: Arguments) -> int:
    """Clone a template to a private one of your own.

    A clone with a Dockerfile has its own build context, which you can edit with
    `svc template dockerfile` and `svc template context`; build it before you enable it.
    """
    answer = ask(args, "POST", path(args, "/clone"), {"name": args.name})
    return show_change(args, answer, "{name} ({id}) is cloned")


def dockerfile(args: Arguments) -> int:
    """Print a template's Dockerfile, or replace a clone's with --set --file.

    In a pipe the file is printed unchanged. A global template's is read-only: clone
    the template. A new Dockerfile disables the template until it is built. With --revision
    nothing is changed unless that is the current one.
    """
    if args.set != (args.file is not None):
        raise UsageError(
            "--set and --file go together", hint="svc template dockerfile TEMPLATE --set --file Dockerfile"
        )
    if args.revision is not None and not args.set:
        raise UsageError(
            "--revision goes with --set",
            hint=f"svc template revisions {args.template} --revision {args.revision}",
        )
    if not args.set:
        return _print_dockerfile(args, ask(args, "GET", path(args, "/dockerfile")))
    try:
        text = read_file(args.file).decode("utf-8")
    except UnicodeDecodeError:
        raise FileRefused(f"{args.file} is not UTF-8 text; a Dockerfile must be") from None
    version = _version(args, "/dockerfile")
    answer = ask(args, "PUT", path(args, "/dockerfile"), {"dockerfile": text}, if_match=version)
    return show_change(args, answer, "{name} is now at revision {revision}")


def _print_dockerfile(args: Arguments, answer: Answer) -> int:
    if args.json:
        return show_raw(answer)
    text = answer.json().get("dockerfile")
    if not isinstance(text, str):
        raise BadAnswer("the service's answer has no Dockerfile")
    if output.on_terminal():
        output.captured(text)
    else:
        output.write_bytes(text.encode("utf-8", "surrogatepass"))
    return 0


def delete(args: Arguments) -> int:
    """Delete a template that no workspace was made from.

    One that has workspaces is refused; disable it, or delete them first. Asks for
    confirmation on a terminal; elsewhere --yes is required.
    """
    command = output.again(args, "svc", "template", "delete", args.template)
    if not args.yes:
        ask(args, "GET", path(args))  # before a question about nothing
    output.confirm(f"Delete template {args.template}?", args.yes, command)
    ask(args, "DELETE", path(args))
    return show_ended(args, f"{args.template} is deleted.", deleted=args.template)


def enable(args: Arguments) -> int:
    """Enable a template, so that workspaces can be created from it.

    You can enable your private templates, administrators the global ones. Build a
    template with a Dockerfile yourself first. --revision is refused if the template
    has been edited since.
    """
    body = {} if args.revision is None else {"revision": args.revision}
    return show_outcome(args, ask(args, "POST", path(args, "/enable"), body), COLUMNS, "{name} is {status}.")


def disable(args: Arguments) -> int:
    """Disable a template: no new workspaces; existing ones stay."""
    return show_outcome(args, ask(args, "POST", path(args, "/disable"), {}), COLUMNS, "{name} is {status}.")


COMMAND = CommandGroup(
    "template",
    DESCRIPTION,
    Command(
        "list",
        list_,
        OWNER,
        Argument("--review", "templates that wait for a review (administrators only)", kind="flag"),
        examples="svc template list\nsvc template list --review\nsvc template list --json",
    ),
    Command("get", get, TEMPLATE, examples="svc template get python\nsvc template get tpl-4k2m9x7p --json"),
    Command(
        "create",
        create,
        Argument("--file", "the template, as JSON; - is standard input", metavar="FILE|-"),
        Argument("--dockerfile", "the Dockerfile of its image; - is standard input", metavar="FILE|-"),
        Argument("--context", "the directory with the files that the Dockerfile copies", metavar="DIR"),
        Argument("--name", "its name, with --dockerfile or --example", metavar="NAME"),
        Argument("--example", "one that svc template examples lists", metavar="EXAMPLE"),
        Argument("--base", "the image that the example is built from", metavar="IMAGE"),
        Argument("--if-not-exists", "succeed if it exists, just as the file says", kind="flag"),
        examples=CREATE_EXAMPLES,
    ),
    Deferred(
        "examples",
        "List the templates that `svc template create --example` makes; contacts no server",
        "svc.cli.template.examples.examples",
    ),
    Command(
        "edit",
        edit,
        TEMPLATE,
        Argument("--file", "the changes, as JSON; - is standard input", metavar="FILE|-"),
        Argument(
            "--run-as",
            "the user inside who is you, by number; `none` for root",
            kind="list",
            type=user,
            metavar="UID:GID",
        ),
        REVISION,
        examples="svc template edit python --file patch.json\n"
        "svc template edit jupyter --run-as 1000:100\n"
        "svc template edit python --file patch.json --revision 3",
    ),
    Command(
        "clone",
        clone,
        TEMPLATE,
        Argument("--name", "the clone's name", metavar="NAME", required=True),
        examples="svc template clone python --name my-python",
    ),
    Command(
        "dockerfile",
        dockerfile,
        TEMPLATE,
        Argument("--set", "replace it with --file", kind="flag"),
        Argument("--file", "the new Dockerfile; - is standard input", metavar="FILE|-"),
        REVISION,
        examples="svc template dockerfile my-python > Dockerfile\n"
        "svc template dockerfile my-python --set --file Dockerfile",
    ),
    Deferred(
        "context",
        "List the files that a template is built with, or read or change one of a clone's",
        "svc.cli.template.context",
    ),
    Deferred(
        "revisions", "List the kept revisions of a template, the newest first", "svc.cli.template.revisions"
    ),
    Deferred("diff", "Show what differs between two revisions of a template", "svc.cli.template.revisions"),
    Deferred("export", "Write a template to a file, as a bundle", "svc.cli.template.files"),
    Deferred(
        "import", "Create a private template of yours from a bundle or a directory", "svc.cli.template.files"
    ),
    Command(
        "delete",
        delete,
        TEMPLATE,
        YES_REMOVE,
        examples="svc template delete python\nsvc template delete python --yes",
    ),
    Command(
        "enable",
        enable,
        TEMPLATE,
        REVISION,
        examples="svc template enable python\nsvc template enable python --revision 3",
    ),
    Command("disable", disable, TEMPLATE, examples="svc template disable python"),
)
