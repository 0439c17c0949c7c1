"""What was probably meant by an unknown command: what other programs call so, else what is spelt alike."""

from __future__ import annotations

from svc.commandline.output import shell_quote
from svc.errors import UsageError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterable

# What is typed after a group: the commands that it may mean, the first that the group has.
IN_GROUP = {
    "add": ("create", "upload"),
    "add-user": ("create-user",),
    "adduser": ("create-user",),
    "attach": ("shell", "watch"),
    "cat": ("read",),
    "check": ("doctor",),
    "connect": ("shell",),
    "copy": ("clone", "upload"),
    "cp": ("clone", "upload"),
    "del": ("rm", "delete", "revoke"),
    "deluser": ("delete-user",),
    "describe": ("get", "status"),
    "destroy": ("delete", "rm", "revoke"),
    "df": ("disk",),
    "du": ("ls",),
    "duplicate": ("clone",),
    "enter": ("shell",),
    "erase": ("rm", "delete"),
    "follow": ("watch", "logs"),
    "get": ("download", "status"),
    "head": ("read",),
    "images": ("list",),
    "info": ("get", "status"),
    "init": ("migrate",),
    "inspect": ("get", "status"),
    "kill": ("stop", "cancel"),
    "less": ("read",),
    "list": ("hardware",),
    "load": ("import",),
    "log": ("logs",),
    "logs": ("log",),
    "mk": ("create",),
    "move": ("mv", "rename"),
    "mv": ("rename",),
    "new": ("create",),
    "passwd": ("set-password",),
    "patch": ("edit",),
    "ps": ("list",),
    "put": ("upload",),
    "remove-user": ("delete-user",),
    "rename": ("mv",),
    "rmdir": ("rm",),
    "rmi": ("delete",),
    "save": ("export",),
    "set": ("edit",),
    "show": ("get", "status"),
    "ssh": ("shell",),
    "start": ("watch",),
    "stat": ("ls",),
    "stats": ("monitor",),
    "status": ("get", "doctor"),
    "tail": ("logs", "log", "read"),
    "top": ("monitor",),
    "tree": ("ls",),
    "up": ("start",),
    "update": ("edit",),
    "upgrade": ("edit",),
    "user": ("list-users",),
    "useradd": ("create-user",),
    "userdel": ("delete-user",),
    "usermod": ("edit-user",),
    "users": ("list-users",),
    "view": ("get", "read"),
    "vi": ("edit",),
}
# What is typed after svc.
COMMANDS = {
    "attach": "svc ws shell",
    "config": "svc env",
    "container": "svc ws",
    "containers": "svc ws",
    "describe": "svc ws get",
    "df": "svc image overview",
    "doctor": "sudo svc admin doctor",
    "file": "svc fs",
    "files": "svc fs",
    "gpu": "svc servers hardware",
    "gpus": "svc servers hardware",
    "hardware": "svc servers hardware",
    "images": "svc image",
    "info": "svc whoami",
    "inspect": "svc ws get",
    "kill": "svc ws stop",
    "ops": "svc operation",
    "operations": "svc operation",
    "ps": "svc ws list",
    "server-info": "svc servers hardware",
    "settings": "svc env",
    "show": "svc ws get",
    "ssh": "svc ws shell",
    "status": "svc ws list",
    "templates": "svc template",
    "tokens": "svc token",
    "top": "svc ws monitor",
    "user": "svc whoami",
    "users": "sudo svc admin list-users",
    "version": "svc --version",
    "workspace": "svc ws",
    "workspaces": "svc ws",
}
# Options of other programs, as they are called here.
OPTIONS = {
    "--cpu": "--cpus",
    "--data": "--body",
    "--data-raw": "--body",
    "--gpu": "--gpu-count",
    "--gpus": "--gpu-count",
    "--image": "--template",
    "--mem": "--memory",
    "--net": "--network",
    "--pids-limit": "--pids",
    "--publish": "--port",
    "--shm": "--shm-size",
    "-d": "--body",
    "-m": "--memory",
    "-p": "--port",
}
NO_LOGIN = ("login", "logout", "auth", "signin")


def unknown_command(typed: str, known: Iterable[str]) -> UsageError:
    """The usage error for an unknown command, both with all their words; its hint names what was meant."""
    known = list(known)
    group, _, last = typed.rpartition(" ")
    if last == "help":
        return UsageError(f"no such command: {typed}; did you mean `{group} --help`?", hint=f"{group} --help")
    if group == "svc" and last in NO_LOGIN:
        message = f"no such command: {typed}; no command on this host needs a login"
        return UsageError(message, hint="svc whoami")
    near = _synonym(group, last, known) or nearest(typed, known)
    meant = f"; did you mean `{near}`?" if near else ""
    hint = near if near.startswith("sudo ") or near.endswith("--version") else f"{near or group} --help"
    return UsageError(f"no such command: {typed}{meant}", hint=hint)


def _synonym(group: str, last: str, known: list[str]) -> str:
    """The command that other programs call so; empty for none."""
    if group == "svc":
        exact = next((each for each in known if each.endswith(f" {last}")), "")
        return exact or COMMANDS.get(last, "")
    meant = (f"{group} {name}" for name in IN_GROUP.get(last, ()))
    return next((each for each in meant if each in known), "")


def in_singular(argv: list[str]) -> str:
    """`svc ws port add` for `svc ws ports add ...`; empty where nothing of the kind was typed."""
    pair = argv[1:3] if argv[:1] == ["ws"] and len(argv) > 2 else ["", ""]
    verbs = {
        "ports": ("add", "remove", "rm", "delete", "list", "ls"),
        "launchers": ("start", "stop", "list", "ls"),
    }
    return f"svc ws {pair[0][:-1]} {pair[1]}" if pair[1] in verbs.get(pair[0], ()) else ""


def no_terminal(argv: list[str], command: list[str], options: set[str]) -> UsageError:
    """The usage error for `ws exec -it NAME -- COMMAND`, with the command that has a terminal."""
    line = " ".join(map(shell_quote, command))
    own = [each for each in argv[2:] if each not in options]
    if argv[1] == "run":
        rest = " ".join(shell_quote(each) for each in own if each != "-i")
        hint = f"svc ws run -i {rest} -- {line or 'COMMAND...'}"
    else:
        name = next((each for each in own if not each.startswith("-")), "WORKSPACE")
        hint = f"svc ws shell {shell_quote(name)}" + (f" --command {shell_quote(line)}" if line else "")
    return UsageError(f"svc ws {argv[1]} has no terminal; svc ws shell opens one", hint=hint)


def nearest(typed: str, known: Iterable[str]) -> str:
    """What was probably meant, by its spelling; empty if nothing known is near."""
    from difflib import get_close_matches

    last = typed.rpartition(" ")[2].lstrip("-")
    by_last = {each.rpartition(" ")[2].lstrip("-"): each for each in known}
    return next((by_last[each] for each in get_close_matches(last, by_last, 1)), "")
