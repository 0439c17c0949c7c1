"""`svc ws`: the caller's workspaces; larger commands have modules of their own beside this one."""

from __future__ import annotations

from svc.cli.ws.columns import COLUMNS, NO_NETWORK, OWNER_COLUMN, as_hint, note_limits, path, path_of
from svc.client.requests import (
    ask,
    for_each,
    note_warnings,
    pages,
    query,
    read_document,
    show_list,
    show_outcome,
    show_raw,
)
from svc.commandline import output
from svc.commandline.arguments import (
    NEW_NAME,
    OWNER,
    WORKSPACE,
    WORKSPACES,
    Argument,
    Arguments,
    Command,
    CommandGroup,
    Deferred,
    new_name,
    whole,
)
from svc.errors import NotFound, UsageError
from svc.limits import COPY_MOST_S, IDLE_EXTEND_HOURS_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from svc.client.transport import Answer

DESCRIPTION = """\
Workspaces: create, start, stop, run commands in them.

A workspace is a container made from a template; it has your file root `work` at
/work. Commands take its id or the name that you gave it."""

EDIT_EXAMPLES = """\
echo '{"resources": {"memory_bytes": 8589934592}}' > patch.json
svc ws edit demo --file patch.json
svc ws edit demo --network lab
svc ws edit job --command 'python3 /work/train.py --epochs 20' --replace-container"""


def list_(args: Arguments) -> int:
    """List your workspaces.

    Columns: id, name, status, template, image, gpus, since, reason; with --all, for
    administrators, those of every user, and their owner as the last column. On a terminal launchers of
    running workspaces that have exited with a code other than 0 are below. --json prints
    the API's first 200 records unchanged, and `next_offset` if there are more. --live lists
    instead what your running workspaces use now: id, name, CPU of one core, memory, GPU,
    GPU memory, launchers that have been started; with --json by their ids.
    """
    if args.all and (args.owner or args.live):
        raise UsageError("--all lists the workspaces of every user, alone", hint="svc ws list --help")
    if args.live:
        from svc.cli.ws.live import show

        return show(args)
    empty = "No workspaces yet: svc template list, then svc ws setup --template TEMPLATE --name NAME"
    if args.all:
        return show_list(args, "/api/workspaces", (*COLUMNS, OWNER_COLUMN), "No workspaces yet.", all="true")
    if args.json or args.owner or args.quiet or not output.on_terminal():
        return show_list(args, "/api/workspaces", COLUMNS, empty, owner=args.owner)
    records = [record for page in pages(args, "/api/workspaces") for record in page["items"]]
    output.table(COLUMNS, records, empty)
    if any(output.pick(one, "status") == "running" and output.pick(one, "launchers") for one in records):
        from svc.cli.ws.addresses import note_failed

        note_failed(args, records)
    return 0


def get(args: Arguments) -> int:
    """Show everything about one workspace.

    Its state and the reason, its resources and the limits that this host cannot
    apply, its GPUs, launchers and ports, and since when it is idle. On a terminal the states of
    the launchers of your own running workspace are below, with the ways into them.
    """
    from svc.cli.ws.fields import FIELDS  # here, because `ws list` must stay quick

    answer = ask(args, "GET", path(args) + query(owner=args.owner))
    if args.json:
        return show_raw(answer)
    output.details(FIELDS, answer.json())
    if args.owner is None:
        note_warnings(answer.json())
        _show_ways(args, answer.json())
    return 0


def _show_ways(args: Arguments, record: object, *, opens: bool = False) -> None:
    """On a terminal: the launchers of a running workspace, and the ways into them; `opens`: with links."""
    if output.on_terminal() and output.pick(record, "launchers"):
        from svc.cli.ws.addresses import show_for

        show_for(args, record, opens=opens)


def start(args: Arguments) -> int:
    """Start workspaces.

    Never pulls or builds a missing image: prepare it first with `svc image pull`.
    Starting a running workspace changes nothing. A command that cannot be run, or exits
    at once, is an error with its last lines; one that has ended with 0 is not. Waits up to
    two seconds for launchers with autostart, until they listen on their ports: one that has
    failed by then is named, with its last lines, and one on whose port nothing listens; the
    workspace runs all the same. With --json each answer is a line.
    """

    def one(name: str) -> int:
        answer = ask(args, "POST", path_of(name, "/start"), {}, COPY_MOST_S)
        note_limits(answer.json())
        if not args.json and output.text(answer.json(), "status") == "stopped":  # a batch job
            sentence = "{name} has ended with exit code 0; its output: svc ws logs {name}"
            return show_outcome(args, answer, COLUMNS, sentence)
        return _show_started(args, answer)

    return for_each(args, args.workspaces, one)


def _show_started(args: Arguments, answer: Answer) -> int:
    """The outcome of a start; for people also the ways into its launchers."""
    code = show_outcome(args, answer, COLUMNS, "{name} is {status}.")
    failed = output.pick(answer.json(), "launchers_failed")
    for one in failed if isinstance(failed, list) else []:
        _note_failed(output.text(answer.json(), "name"), one)
    deaf = output.pick(answer.json(), "launchers_not_listening")
    for one in deaf if isinstance(deaf, list) else []:
        name, port = output.text(one, "name"), output.text(one, "container_port")
        output.note(f"the launcher {name} does not listen on port {port} yet (the number is in SVC_PORT)")
        output.remark(output.visible(f"hint: svc ws ports {output.text(answer.json(), 'name')}"))
    if not args.json:
        _show_ways(args, answer.json(), opens=True)
    return code


def _note_failed(workspace: str, launcher: object) -> None:
    """Say of a launcher that it has failed, with its last lines."""
    name = output.text(launcher, "name")
    output.note(f"the launcher {name} has exited with exit code {output.text(launcher, 'exit_code')}")
    lines = output.pick(launcher, "output")
    for line in lines if isinstance(lines, list) else []:
        output.remark(f"  {output.visible(str(line))}")
    output.remark(output.visible(f"hint: svc ws logs {workspace} --launcher {name}"))


def stop(args: Arguments) -> int:
    """Stop workspaces.

    Their launchers get SIGTERM, and once these have ended the workspace's own command
    does; ten seconds after the first what is left gets SIGKILL. Files and installed software
    stay. Stopping a stopped workspace changes nothing. With --json each
    answer is a line.
    """

    def one(name: str) -> int:
        try:
            answer = ask(args, "POST", path_of(name, "/stop") + query(owner=args.owner), {})
        except NotFound as error:
            raise as_hint(error, "stop") from None
        return show_outcome(args, answer, COLUMNS, "{name} is {status}.")

    return for_each(args, args.workspaces, one)


def restart(args: Arguments) -> int:
    """Stop workspaces and start them again.

    They are stopped as by `svc ws stop`; nobody else gets their GPUs
    in between. Launchers with autostart are started; files and installed software stay. A
    workspace that does not run is started. With --json each answer is a line.
    """

    def one(name: str) -> int:
        answer = ask(args, "POST", path_of(name, "/restart"), {}, COPY_MOST_S)
        note_limits(answer.json())
        return _show_started(args, answer)

    return for_each(args, args.workspaces, one)


def extend(args: Arguments) -> int:
    """Exempt a running workspace from its template's idle policy for some hours from now."""
    answer = ask(args, "POST", path(args, "/extend"), {"hours": args.hours})
    until = "" if args.json else output.text(answer.json(), "idle.keep_until")
    return show_outcome(args, answer, COLUMNS, "{name} is exempt from the idle policy until " + until + ".")


def rename(args: Arguments) -> int:
    """Rename a workspace, in every state.

    Its container, ports and running programs stay as they are. The new name is written after
    the old one, or with --name.
    """
    if (name := new_name(args)) is None:
        known = output.shell_quote(args.workspace)
        raise UsageError("write the new name, once", hint=f"svc ws rename {known} NEW-NAME")
    answer = ask(args, "POST", path(args, "/rename"), {"name": name})
    return show_outcome(args, answer, COLUMNS, "{id} is now named {name}.")


def edit(args: Arguments) -> int:
    """Change a stopped workspace; `svc ws rename` renames one in every state.

    --command gives it another main command, run by sh, in place of the template's; ''
    gives the template's back. --network puts it on a network of your own, on which your workspaces reach each
    other by name; `none` takes it off. With another command, and from no network or to
    none, a workspace that has run needs a new container: this is refused without
    --replace-container.

    The file of other changes holds a JSON object with the keys to change: name,
    display_name, resources {cpu_limit, memory_bytes, shm_bytes, pids_limit, gpu_count,
    gpu_mode}, env [{name, value}], command [words], network, restart_on_boot. Omitted keys are unchanged;
    null for a resource is the template's default, "unlimited" no limit; env is the
    whole list. Changes apply from the next start; software installed
    in the workspace stays.
    """
    if (args.file is None) == (args.network is None and args.command is None):
        raise UsageError("name either --file, or --command or --network", hint="svc ws edit --help")
    patch = read_document(args.file) if args.file is not None else _patch(args)
    answer = ask(args, "PATCH", path(args), patch)
    return show_outcome(args, answer, COLUMNS, "{name} is changed; start it with: svc ws start {name}")


def _patch(args: Arguments) -> dict[str, object]:
    """The changes that options name."""
    from svc.cli.ws.create import command_of

    body: dict[str, object] = {"replace_container": args.replace_container}
    if args.command is not None:
        body["command"] = command_of(args.command)
    if args.network is not None:
        body["network"] = None if args.network == NO_NETWORK else args.network
    return body


COMMAND = CommandGroup(
    "ws",
    DESCRIPTION,
    Command(
        "list",
        list_,
        OWNER,
        Argument("--all", "those of every user (administrators only)", kind="flag"),
        Argument("--live", "what your running workspaces use now", kind="flag"),
        examples="svc ws list\nsvc ws list --json\nsvc ws list | cut -f1\nsvc ws list --live\nsvc ws list -A",
    ),
    Command(
        "get",
        get,
        WORKSPACE,
        OWNER,
        examples="svc ws get demo\nsvc ws get demo --json\nsvc ws get ws-4k2m9x7p --owner alice",
    ),
    Deferred(
        "capacity",
        "Show your quota with its used and remaining part, the host's resources, and the holders of its GPUs",
        "svc.cli.ws.capacity",
    ),
    Deferred(
        "recommend",
        "Recommend a workspace's resources for a template and a use of GPUs; reserves nothing",
        "svc.cli.ws.recommend",
    ),
    Deferred("create", "Create a workspace without starting it", "svc.cli.ws.create"),
    Deferred(
        "setup",
        "Pull or build the image if it is missing and create the workspace, as one operation",
        "svc.cli.ws.create",
    ),
    Deferred(
        "run",
        "Run a command in a new workspace: set it up, start it, print the output, and exit with its code",
        "svc.cli.ws.run",
    ),
    Command("start", start, WORKSPACES, examples="svc ws start demo\nsvc ws start demo paper"),
    Command(
        "stop",
        stop,
        WORKSPACES,
        OWNER,
        examples="svc ws stop demo paper\nsvc ws stop ws-4k2m9x7p --owner alice",
    ),
    Command("restart", restart, WORKSPACES, examples="svc ws restart demo\nsvc ws restart demo paper"),
    Deferred(
        "wait",
        "Wait until a workspace is stopped, or --for something else;"
        " a restart of the service does not end it",
        "svc.cli.ws.wait",
    ),
    Deferred(
        "upgrade",
        "Move a stopped workspace to the newest revision of its template, and to the newest image of it",
        "svc.cli.ws.upgrade",
    ),
    Deferred("delete", "Delete workspaces; one that runs is stopped first", "svc.cli.ws.delete"),
    Deferred(
        "logs",
        "Print what the container, or one of its launchers, has written to stdout and stderr",
        "svc.cli.ws.logs",
    ),
    Deferred(
        "exec", "Run one command in a running workspace of yours and print its output", "svc.cli.ws.exec"
    ),
    Deferred(
        "shell",
        "Open a terminal in a running workspace of yours, with your shell or a command",
        "svc.cli.ws.shell",
    ),
    Deferred("launchers", "List a workspace's launchers with their states", "svc.cli.ws.launchers"),
    Deferred("launcher", "List, start or stop launchers", "svc.cli.ws.launchers"),
    Deferred(
        "open", "Print the address of an app, or a link that signs a browser in to it", "svc.cli.ws.addresses"
    ),
    Deferred("ports", "List a workspace's ports", "svc.cli.ws.ports"),
    Deferred("port", "List, add or remove named ports", "svc.cli.ws.ports"),
    Deferred(
        "monitor",
        "Show what a running workspace uses now: CPU, memory, GPUs, processes",
        "svc.cli.ws.monitor",
    ),
    Command(
        "extend",
        extend,
        WORKSPACE,
        Argument(
            "--hours",
            f"from now on, at most {IDLE_EXTEND_HOURS_MAX}",
            metavar="N",
            type=whole(1, IDLE_EXTEND_HOURS_MAX),
            required=True,
        ),
        examples="svc ws extend demo --hours 12",
    ),
    Command(
        "rename",
        rename,
        WORKSPACE,
        *NEW_NAME,
        examples="svc ws rename demo paper\nsvc ws rename demo --name paper",
    ),
    Command(
        "edit",
        edit,
        WORKSPACE,
        Argument("--file", "the changes, as JSON; - is standard input", metavar="FILE|-"),
        Argument("--command", "run this, by sh; '' for the template's command", metavar="COMMAND"),
        Argument("--network", "put it on this network of yours; `none` for none", metavar="NAME"),
        Argument(
            "--replace-container",
            "with these two: what is installed in the container may be lost",
            kind="flag",
        ),
        examples=EDIT_EXAMPLES,
    ),
)
