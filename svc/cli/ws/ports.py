"""`svc ws ports` and `svc ws port`: named ports, reachable at 127.0.0.1 of this host."""

from __future__ import annotations

from svc.cli.ws.columns import path
from svc.client.requests import ask, items, quote, show_ended, show_items, show_raw
from svc.commandline import output
from svc.commandline.arguments import WORKSPACE, Argument, Arguments, Command, CommandGroup, port_name, whole
from svc.commandline.output import plain, state, url
from svc.limits import PORT_KINDS
from svc_helper.wire.limits import ACCESS_HOST, ACCESS_OWNER

PORT_MAX = 65535
ACCESS = (ACCESS_OWNER, ACCESS_HOST)
PORT = Argument("PORT", "the port's name: a-z, 0-9 and -", type=port_name)
COLUMNS = (
    ("NAME", "name", plain),
    ("INSIDE", "container_port", plain),
    ("ADDRESS", "connect", url),
    ("STATE", "state", state),
    ("CONNECTIONS", "connections", plain),
    ("ACCESS", "access", plain),
    ("REFUSED", "refused", plain),
)
KIND = ("KIND", "kind", plain)
LISTENS = ("LISTENS", "listens", plain)
LINK = ("LINK", "app_local_url", url)
ON_TERMINAL = (*COLUMNS, KIND, LISTENS, LINK)
IN_PIPE = (*COLUMNS, ("SSH", "ssh", url), KIND, LISTENS, LINK)
DESCRIPTION = """\
List, add or remove named ports.

A port forwards from 127.0.0.1 of this host into a workspace, also to a program
that listens only on the workspace's own 127.0.0.1. It keeps its number over stops.
It accepts connections of its owner, of the owner's containers and of root; with
--access host those of every user of the host."""


def ports(args: Arguments) -> int:
    """List a workspace's ports.

    Columns: name, inside (the port in the container), address (what to open or to run on
    this host: a URL, HOST:PORT, or an ssh or psql command, by the port's kind), state,
    connections, access, refused (connections of other users since the port was opened), in a
    pipe ssh (the command on another computer after which the address works there; on a
    terminal it is below the table), kind, listens (whether a program listens on inside; one
    that a launcher starts has that number in SVC_PORT), and link (the address of its own that a
    port of the kind http has in a browser: svc ws open signs the browser in). Ports are open while
    the workspace runs. `svc ws logs` has the output of the container and the launchers, but not of
    programs started by hand behind a port. `svc ws port list` is the same command.
    """
    empty = f"No ports yet: svc ws port add {args.workspace} NAME"
    answer = ask(args, "GET", path(args, "/ports"))
    human = output.on_terminal() and not args.json
    show_items(args, answer, ON_TERMINAL if human else IN_PIPE, empty)
    commands = [output.text(port, "ssh") for port in items(answer.json())] if human else []
    if commands:
        print("\nFrom another computer, first:")
    for command in commands:
        print(output.visible(f"  {command}"))
    return 0


def add(args: Arguments) -> int:
    """Add a port to a workspace; a running workspace's is open at once.

    Prints the address on this host. The service chooses the port number on the
    host; it stays the same over stops, unless another program takes it meanwhile.
    Without --container-port it is the number inside too.
    """
    body: dict[str, object] = {"name": args.port}
    for key in ("container_port", "access", "kind", "user"):
        if (value := getattr(args, key)) is not None:
            body[key] = value
    answer = ask(args, "POST", path(args, "/ports"), body)
    if args.json:
        return show_raw(answer)
    record = answer.json()
    if not output.on_terminal():
        output.table(IN_PIPE, [record], "")
        return 0
    is_open = output.text(record, "state") == "open"
    when = "" if is_open else f" once the workspace runs: svc ws start {args.workspace}"
    print(output.visible(f"{args.port} is at {output.text(record, 'connect')}{when}"))
    print(output.visible(f"From another computer, first: {output.text(record, 'ssh')}"))
    return 0


def remove(args: Arguments) -> int:
    """Close and remove a port; its connections end."""
    ask(args, "DELETE", path(args, f"/ports/{quote(args.port)}"))
    return show_ended(args, f"Port {args.port} is deleted.", deleted=args.port)


COMMANDS = (
    Command("ports", ports, WORKSPACE, examples="svc ws ports demo\nsvc ws ports demo | cut -f3"),
    CommandGroup(
        "port",
        DESCRIPTION,
        Command("list", ports, WORKSPACE, examples="svc ws port list demo"),
        Command(
            "add",
            add,
            WORKSPACE,
            PORT,
            Argument(
                "--container-port",
                f"where the program listens inside (1-{PORT_MAX}); default: the number on the host",
                metavar="N",
                type=whole(1, PORT_MAX),
            ),
            Argument(
                "--access", "who may connect: you (the default), or every user of this host", choices=ACCESS
            ),
            Argument("--kind", "what listens behind it; default: http", choices=PORT_KINDS),
            Argument("--user", "of ssh and postgres: the login inside (root, postgres)", metavar="USER"),
            examples="svc ws port add demo jupyter\n"
            "svc ws port add demo login --container-port 22 --kind ssh\n"
            "svc ws port add demo shared --container-port 8000 --access host",
        ),
        Command("remove", remove, WORKSPACE, PORT, examples="svc ws port remove demo jupyter"),
    ),
)
