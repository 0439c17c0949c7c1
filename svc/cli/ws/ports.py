"""`svc ws ports` and `svc ws port`: named ports, reached at 127.0.0.1 of this host."""

from __future__ import annotations

from svc.cli import output
from svc.cli.arguments import WORKSPACE, Argument, Arguments, Command, CommandGroup, reference, whole
from svc.cli.client import ask, items, quote, show_deleted, show_raw
from svc.cli.output import plain, state

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

PORT_MAX = 65535
PORT = Argument("PORT", "the port's name: a-z, 0-9 and -", type=reference)
COLUMNS = (
    ("NAME", "name", plain),
    ("INSIDE", "container_port", plain),
    ("URL", "url", plain),
    ("STATE", "state", state),
    ("CONNECTIONS", "connections", plain),
)
DESCRIPTION = """\
Add or remove a named port.

A port leads from 127.0.0.1 of this host into a workspace, also to a program that
listens on the workspace's own 127.0.0.1 alone. It keeps its number over stops."""


def ports(args: Arguments) -> int:
    """List a workspace's ports.

    Columns: name, inside (the port in the container), url, state, connections.
    Ports are open while the workspace runs. What is started by hand behind a port
    is not captured: `svc ws logs` shows the container's and the launchers' output.
    """
    answer = ask(args, "GET", _path(args))
    if args.json:
        return show_raw(answer)
    output.table(
        COLUMNS,
        items(answer.json()),
        f"No ports yet: svc ws port add {args.workspace} NAME --container-port N",
    )
    return 0


def add(args: Arguments) -> int:
    """Add a port to a workspace; of a running one it is open at once.

    Prints where on this host the program inside is reached from then on. The
    number on the host is the service's choice and stays the same over stops,
    unless another program takes it meanwhile.
    """
    body = {"name": args.port, "container_port": args.container_port}
    answer = ask(args, "POST", _path(args), body)
    if args.json:
        return show_raw(answer)
    record = answer.json()
    if not output.on_terminal():
        output.table(COLUMNS, [record], "")
        return 0
    opened = output.text(record, "state") == "open"
    when = "" if opened else f" once it runs: svc ws start {args.workspace}"
    print(output.visible(f"{args.port} is at {output.text(record, 'url')}{when}"))
    print(output.visible(f"From another computer, first: {_tunnel(record)}"))
    return 0


def remove(args: Arguments) -> int:
    """Close a port and remove it; its connections end."""
    return show_deleted(args, ask(args, "DELETE", _path(args, f"/{quote(args.port)}")), f"Port {args.port}")


def _tunnel(record: Any) -> str:
    """The command that brings the port to where somebody sits."""
    from os import geteuid, uname
    from pwd import getpwuid

    try:
        user = getpwuid(geteuid()).pw_name + "@"
    except KeyError:
        user = ""
    number = output.text(record, "host_port")
    return f"ssh -L {number}:127.0.0.1:{number} {user}{uname().nodename}"


def _path(args: Arguments, below: str = "") -> str:
    return f"/api/workspaces/{quote(args.workspace)}/ports{below}"


PORTS = Command("ports", ports, WORKSPACE, examples="svc ws ports demo\nsvc ws ports demo | cut -f3")
PORT_WORD = CommandGroup(
    "port",
    DESCRIPTION,
    Command(
        "add",
        add,
        WORKSPACE,
        PORT,
        Argument(
            "--container-port",
            f"where the program listens inside (1-{PORT_MAX})",
            metavar="N",
            type=whole(1, PORT_MAX),
            required=True,
        ),
        examples="svc ws port add demo jupyter --container-port 8888",
    ),
    Command("remove", remove, WORKSPACE, PORT, examples="svc ws port remove demo jupyter"),
)
COMMANDS = (PORTS, PORT_WORD)
