"""The ways into the running programs of a workspace, for people: addresses, tokens, `ssh -L`; `svc ws open`.

The ways to launchers are below the tables of `svc ws launchers`, after `svc ws get` and after a start, on a
terminal only.
"""

from __future__ import annotations

from svc.cli.ws.columns import path, path_of
from svc.client.requests import ask, items, quote, show_raw
from svc.commandline import output
from svc.commandline.arguments import WORKSPACE, Argument, Arguments, Command, port_name
from svc.commandline.output import pick, text
from svc.errors import Conflict, NotFound, SvcError
from svc_helper.wire import quick_json

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

PORT = Argument("PORT", "the port's name; without it the only app", type=port_name, optional=True)


def show_for(args: Arguments, record: Any, *, opens: bool = False) -> None:
    """The ways into the launchers of one's own running workspace; nothing where they cannot be read.

    With `opens` also a one-time link to each app: whoever starts a workspace is about to open it.
    """
    launchers = pick(record, "launchers")
    if pick(record, "status") != "running" or not (isinstance(launchers, list) and launchers):
        return
    try:
        answer = ask(args, "GET", path_of(text(record, "id"), "/launchers"))
    except SvcError as error:
        output.note(f"the launchers could not be read: {error.message}")
        return
    found = items(answer.json())
    for one in found:
        print(output.visible(f"{text(one, 'name')} is {text(one, 'state')}{_exit_code(one)}"))
    show(text(record, "name"), found)
    for one in found if opens else []:
        if text(one, "state") == "started" and text(one, "kind") == "http":
            _show_link(args, text(record, "id"), one)


def _show_link(args: Arguments, workspace: str, launcher: Any) -> None:
    """A link to the app of a launcher; nothing where there is none, which is no failure of the start."""
    port = quote(text(launcher, "port"))
    try:
        answer = ask(args, "POST", path_of(workspace, f"/ports/{port}/open"), {"path": _path_in(launcher)})
    except SvcError:
        return
    print(output.visible(f"open: {text(answer.json(), 'link')}"))


def note_failed(args: Arguments, records: list[Any]) -> None:
    """Name, below a list of one's own workspaces, the launchers of running ones that have failed.

    The list itself comes from the database, which does not know: a failure of this is none of the list.
    """
    names = {text(record, "id"): text(record, "name") for record in records}
    try:
        found = items(ask(args, "GET", "/api/usage/workspaces").json())
    except SvcError:
        return
    for use in found:
        launchers = pick(use, "launchers")
        for one in launchers if isinstance(launchers, list) else []:
            if text(one, "state") == "exited" and text(one, "exit_code") not in ("", "0"):
                workspace = names.get(text(use, "id"), text(use, "id"))
                name = text(one, "name")
                log = f"svc ws logs {workspace} --launcher {name}"
                output.note(f"the launcher {name} of {workspace} has exited{_exit_code(one)}: {log}")


def _exit_code(launcher: Any) -> str:
    code = text(launcher, "exit_code")
    return f" with exit code {code}" if text(launcher, "state") == "exited" and code else ""


def show(workspace: str, launchers: list[Any]) -> None:
    """Print how a person comes to each one that has been started, and to its log where it has ended."""
    lines: list[str] = []
    for one in launchers:
        name, state = text(one, "name"), text(one, "state")
        if state == "exited":
            lines.append(f"The output of {name}: svc ws logs {workspace} --launcher {name}")
        if state == "started":
            lines += _ways(name, one)
    ssh = list(dict.fromkeys(text(one, "ssh") for one in launchers if text(one, "state") == "started"))
    lines += [f"From another computer, first: {line}" for line in ssh if line]
    if lines:
        print()
    for line in lines:
        print(output.visible(line))


def _ways(name: str, launcher: Any) -> list[str]:
    token, address = text(launcher, "token"), text(launcher, "link") or text(launcher, "connect")
    lines = [f"{name}: {address}"] if address else []
    if token and not text(launcher, "link"):
        lines.append(f"{name}: its token is {token}")
    return lines


def open_(args: Arguments) -> int:
    """Print the address of an app, or a link that signs a browser in to it.

    An app is a port of the kind http; without PORT it is the workspace's only one. Each has an address
    of its own below `localhost`, which every browser takes for the computer that it runs on; elsewhere it
    works after the ssh command that is printed with it. The browser must be signed in to the app once:
    the link of --link does that. It works once, within five minutes, for whoever has it. Without --path it
    leads to where the launcher of the port says, with the token that its program wants.
    """
    port = _port(args)
    if not args.link:
        return _show_address(args, port)
    body = {"path": args.path or _path_of_launcher(args, text(port, "name"))}
    answer = ask(args, "POST", path(args, f"/ports/{quote(text(port, 'name'))}/open"), body)
    if args.json:
        return show_raw(answer)
    print(output.visible(text(answer.json(), "link")))
    if output.on_terminal():
        print("It works once, within five minutes.")
        _show_ssh(port)
    return 0


def _port(args: Arguments) -> dict[str, Any]:
    """The record of the port, or of the only app; raises NotFound, Conflict for a choice of several."""
    records = items(ask(args, "GET", path(args, "/ports")).json())
    apps = [record for record in records if record.get("app_local_url")]
    name = args.port or (text(apps[0], "name") if len(apps) == 1 else "")
    found = next((record for record in records if text(record, "name") == name), None)
    if found is not None:
        return dict(found)
    if args.port or not apps:
        what = f"no port {args.port}" if args.port else "no port that a browser opens"
        raise NotFound(f"{args.workspace} has {what}", hint=f"svc ws ports {args.workspace}")
    names = ", ".join(text(record, "name") for record in apps)
    hint = f"svc ws open {args.workspace} {text(apps[0], 'name')}"
    raise Conflict(f"{args.workspace} has several apps: {names}; say which", hint=hint)


def _show_address(args: Arguments, port: dict[str, Any]) -> int:
    if args.json:
        print(quick_json.dumps(port))
        return 0
    address = text(port, "app_local_url")
    if not address:
        name, kind = text(port, "name"), text(port, "kind")
        hint = f"svc ws ports {args.workspace}"
        raise Conflict(f"the port {name} is of the kind {kind} and has no address for a browser", hint=hint)
    print(output.visible(address.rstrip("/") + (args.path or "/")))
    if output.on_terminal():
        name = text(port, "name")
        print(output.visible(f"A link that signs a browser in: svc ws open {args.workspace} {name} --link"))
        _show_ssh(port)
    return 0


def _show_ssh(port: dict[str, Any]) -> None:
    """The command for another computer, which serves for all apps."""
    number = text(port, "app_local_url").rstrip("/").rpartition(":")[2]
    place = text(port, "ssh").rpartition(" ")[2]
    print(output.visible(f"From another computer, first: ssh -N -L {number}:127.0.0.1:{number} {place}"))


def _path_of_launcher(args: Arguments, name: str) -> str:
    """Where the launcher that serves the port says that it is; `/` without one."""
    found = items(ask(args, "GET", path(args, "/launchers")).json())
    return next((_path_in(one) for one in found if one.get("port") == name and one.get("link")), "/")


def _path_in(launcher: Any) -> str:
    """The path of the address that a launcher says, with its token; `/` without one."""
    return "/" + text(launcher, "link").partition("://")[2].partition("/")[2]


COMMANDS = (
    Command(
        "open",
        open_,
        WORKSPACE,
        PORT,
        Argument("--link", "print a one-time link that signs a browser in", kind="flag"),
        Argument("--path", "where in the app; default: where its launcher says, else /", metavar="PATH"),
        examples="svc ws open notes\nsvc ws open notes lab --link\n"
        "svc ws open notes lab --link --path /lab/tree/a.ipynb",
    ),
)
