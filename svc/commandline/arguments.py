"""Declarations of commands and their arguments; parsed here when plain, else by argparse (parser.py).

`parse` reads well-formed command lines without argparse, whose import takes
longer than a whole `svc ws list`. It returns None for everything else (a
mistake, `--help`, `--name=value`), which argparse then judges. A test compares
the two.

"The parser checks choices and ranges that the specification fixes": a violation
is a usage error, exit code 2; everything else is checked by the server.
"""

from __future__ import annotations

from svc.limits import PORT_KINDS
from svc_helper.wire.limits import ACCESS_HOST, ACCESS_OWNER

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LISTS = ("list", "list-users")  # commands that print records of which others take the id or name
REMOVALS = ("delete", "remove", "revoke", "rm")
# What other programs, and the other groups here, call a command.
ALIASES = {"ls": ("list",), "list": ("ls",), "delete": REMOVALS, "remove": REMOVALS, "rm": REMOVALS}
# The short names of options, as of podman, kubectl, gh and the tools of every shell.
SHORT = {
    "--all": "-A", "--env": "-e", "--file": "-f", "--follow": "-f", "--force": "-f", "--out": "-o",
    "--parents": "-p", "--quiet": "-q", "--recursive": "-r", "--tail": "-n", "--timestamps": "-t",
    "--yes": "-y",
}  # fmt: skip
UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}  # as `podman --memory`
SIZE_FORM = "write bytes, or a number with k, m, g or t, such as 512m, 1.5g or 32GiB"


class Arguments:
    """The parsed arguments of one command line, as attributes."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Set by the parser, one for each Argument's `dest`."""

        def __setattr__(self, name: str, value: Any) -> None:
            """Set by the parser."""


class Argument:
    """One argument of a command: an option (`--name`) or a positional (`NAME`)."""

    __slots__ = (
        "choices",
        "dest",
        "help",
        "kind",
        "metavar",
        "name",
        "optional",
        "required",
        "short",
        "type",
    )

    def __init__(
        self,
        name: str,
        help: str,
        *,
        metavar: str = "",
        kind: str = "value",  # "value", "flag" (takes none) or "list" (may be repeated; a positional is last)
        type: Callable[[str], Any] = str,
        choices: tuple[str, ...] = (),
        required: bool = False,  # for an option
        optional: bool = False,  # for the last positional
        dest: str = "",
        short: tuple[str, ...] | None = None,  # in place of that of SHORT
    ) -> None:
        self.name = name
        self.short = tuple(filter(None, [SHORT.get(name)])) if short is None else short
        self.help = help
        self.metavar = metavar
        self.kind = kind
        self.type = type
        self.choices = choices
        self.optional = optional
        self.required = required or not (self.is_option or optional)
        self.dest = dest or name.lower().lstrip("-").replace("-", "_")

    @property
    def is_option(self) -> bool:
        """Whether its name appears on the command line."""
        return self.name.startswith("-")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of an option, the short ones first."""
        return (*self.short, self.name)

    @property
    def default(self) -> object:
        """The value when it is absent from the command line."""
        if self.kind == "list" and not self.is_option:
            return []
        return False if self.kind == "flag" else None

    def value(self, text: str) -> Any:
        """The text converted by `type`; raises ValueError with the reason."""
        value = self.type(text)
        if self.choices and value not in self.choices:
            raise ValueError(f"{text!r} is none of {', '.join(self.choices)}")
        return value


class Command:
    """One command; the handler's docstring is its description, the first line of that its help."""

    __slots__ = ("arguments", "examples", "handler", "name", "usage")

    def __init__(
        self,
        name: str,
        handler: Callable[[Arguments], int],
        *arguments: Argument,
        examples: str,
        usage: str = "",
        json: bool = True,
    ) -> None:
        self.name = name
        self.handler = handler
        quiet = (IDS,) if name in LISTS else ()
        self.arguments: tuple[Argument, ...] = (*arguments, *quiet, *([JSON] if json else []))
        self.examples = examples
        self.usage = usage


class Deferred:
    """One of the COMMANDS of another module, imported only when needed; `help` is its line in the group's."""

    __slots__ = ("help", "module", "name")

    def __init__(self, name: str, help: str, module: str) -> None:
        self.name = name
        self.help = help
        self.module = module

    def load(self) -> Command | CommandGroup:
        """Import the declaration."""
        commands: tuple[Command | CommandGroup, ...] = __import__(self.module, fromlist=["COMMANDS"]).COMMANDS
        return next(command for command in commands if command.name == self.name)


class CommandGroup:
    """A command with subcommands, such as `ws` or `ws port`; `options` may precede or follow a subcommand."""

    __slots__ = ("commands", "description", "name", "options")

    def __init__(
        self,
        name: str,
        description: str,
        *commands: Command | CommandGroup | Deferred,
        options: tuple[Argument, ...] = (),
    ) -> None:
        self.name = name
        self.description = description
        self.commands = commands
        self.options = options

    def find(self, name: str) -> Command | CommandGroup | Deferred | None:
        """The command of that name or alias; None if there is none."""
        for command in self.commands:
            if name == command.name or name in self.aliases(command):
                return command
        return None

    def aliases(self, command: Command | CommandGroup | Deferred) -> list[str]:
        """The other names of one of the commands, of the first that they fit."""
        names = [other.name for other in self.commands]
        firsts = {
            alias: next((name for name in names if name in whose), "") for alias, whose in ALIASES.items()
        }
        return [alias for alias, name in firsts.items() if command.name == name and alias not in names]


def parse(
    declared: Command | CommandGroup | Deferred, argv: list[str], inherited: tuple[Argument, ...] = ()
) -> Arguments | None:
    """The arguments of a well-formed command line; None leaves the judgement to argparse."""
    if isinstance(declared, Deferred):
        declared = declared.load()
    if isinstance(declared, CommandGroup):
        command = declared.find(argv[0]) if argv else None
        return parse(command, argv[1:], (*inherited, *declared.options)) if command else None
    args = Arguments()
    arguments = (*inherited, *declared.arguments)
    args.__dict__.update({argument.dest: argument.default for argument in arguments})
    args.handler = declared.handler
    try:
        present = _assign(args, arguments, argv)
    except (LookupError, ValueError):
        return None
    return args if all(argument.dest in present for argument in arguments if argument.required) else None


def _assign(args: Arguments, arguments: tuple[Argument, ...], argv: list[str]) -> set[str]:
    """Set the values of a command line; returns the `dest` of each, raises LookupError or ValueError."""
    options = {name: argument for argument in arguments if argument.is_option for name in argument.names}
    positionals = [argument for argument in arguments if not argument.is_option]
    present = set()
    rest = list(reversed(argv))
    while rest:
        text = rest.pop()
        if text.startswith("-") and text != "-":
            argument = options[text]
        else:
            argument = positionals[0] if positionals[0].kind == "list" else positionals.pop(0)
        value: Any = True
        if argument.kind != "flag":
            if argument.is_option:
                text = rest.pop()
                if text.startswith("-") and text != "-":
                    raise ValueError(text)
            value = argument.value(text)
        if argument.kind == "list":
            value = [*(getattr(args, argument.dest) or ()), value]
        setattr(args, argument.dest, value)
        present.add(argument.dest)
    return present


# --- types of values ----------------------------------------------------------------


def path(text: str) -> str:
    """A path that is not empty, since an empty one would silently select the default."""
    if not text:
        raise ValueError("the path is empty")
    return text


def reference(text: str) -> str:
    """An id or name, usable as a path segment: not empty, no slash (hence no URL)."""
    if not text or "/" in text:
        raise ValueError(f"{text!r} is not an id or name")
    return text


def size(text: str) -> int:
    """Bytes, or a number with k, m, g or t (multiples of 1024): 512m, 32g, 1.5g, 32GiB, 4Gi."""
    lower = text.lower()
    number = lower.rstrip("bikmgt")
    suffix = lower[len(number) :]
    unit, rest = suffix[:1], suffix[1:]
    if (
        not _decimal(number)
        or unit not in UNITS
        or rest not in ("", "b", "i", "ib")
        or (unit == "b" and rest)
    ):
        raise ValueError(f"{text!r} is not a size: {SIZE_FORM}")
    whole_number = number.isdigit() and len(number) < 20
    amount = (int(number) if whole_number else float(number)) * UNITS[unit]
    if not 1 <= amount < 2**63:
        raise ValueError(f"{text!r} is out of range: at least a byte, and less than 8388608t")
    return int(amount)


def cores(text: str) -> float:
    """A number of CPU cores, fractions allowed."""
    if not _decimal(text) or not 0 < float(text) < 2**16:
        raise ValueError(f"{text!r} is not a number of cores such as 2 or 0.5")
    return float(text)


def whole(low: int, high: int = 2**31 - 1) -> Callable[[str], int]:
    """The type of a whole number in a range."""

    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 18 or not low <= int(text) <= high:
            raise ValueError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return number


def variable(text: str) -> dict[str, str]:
    """NAME=VALUE as an object of the API."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not NAME=VALUE")
    return {"name": name, "value": value}


def port_name(text: str) -> str:
    """The name of a port, which is no number."""
    if reference(text).isdecimal() or set(text) & set("=:"):
        raise ValueError(f"{text!r} is not the name of a port: a-z, 0-9 and -")
    return text


def user(text: str) -> dict[str, int] | None:
    """UID:GID as an object of the API: a user inside the container; None for `none`."""
    uid, colon, gid = text.partition(":")
    if text == "none":
        return None
    if not (colon and _decimal(uid) and _decimal(gid)):
        raise ValueError(f"{text!r} is not UID:GID, such as 1000:100, or none")
    return {"uid": int(uid), "gid": int(gid)}


def port(text: str) -> dict[str, Any]:
    """NAME[=PORT][/KIND[@USER]][:ACCESS] as an object of the API: a named port inside the container."""
    rest, colon, access = text.partition(":")
    rest, slash, kind = rest.partition("/")
    kind, at, user = kind.partition("@")
    name, equals, number = rest.partition("=")
    if not name or name.isdecimal() or "@" in name or (at and not user):
        raise ValueError(
            f"{text!r} is not NAME or NAME=PORT, such as web, web=8888, login=22/ssh or web=8888:host"
        )
    for sign, value, choices in ((slash, kind, PORT_KINDS), (colon, access, (ACCESS_OWNER, ACCESS_HOST))):
        if sign and value not in choices:
            raise ValueError(
                f"{value!r} of {text!r} is not one of {', '.join(choices)}; write NAME=PORT/KIND:ACCESS"
            )
    found: dict[str, Any] = {"name": name} | ({"container_port": whole(1, 65535)(number)} if equals else {})
    chosen = {"kind": kind, "user": user, "access": access}
    return found | {key: value for key, value in chosen.items() if value}


def _decimal(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdigit()


def new_name(args: Arguments) -> str | None:
    """The name of NEW_NAME, written either way; None unless it is written once."""
    names = [each for each in (args.new_name, args.name) if each is not None]
    return names[0] if len(names) == 1 else None


# --- arguments that several commands have -------------------------------------------

JSON = Argument("--json", "print the raw API answer", kind="flag")
QUIET = Argument("--quiet", "no progress and no output of a build's steps", kind="flag")
IDS = Argument("--quiet", "only what other commands take: the id, or the name", kind="flag")
YES = Argument("--yes", "do not ask", kind="flag")
YES_REMOVE = Argument("--yes", "do not ask", kind="flag", short=("-y", "-f"))  # as `rm -f` and `podman rm -f`
FORCE = Argument("--force", "replace the file if there is one", kind="flag")
WORKSPACE = Argument("WORKSPACE", "its id or your name for it", type=reference)
WORKSPACES = Argument(
    "WORKSPACE", "its id or your name for it; several are taken in turn", type=reference, kind="list",
    dest="workspaces",
)  # fmt: skip
OWNER = Argument(
    "--owner", "this user's, by name or id (administrators only)", metavar="USER", type=reference
)
NEW_NAME = (
    Argument("NEW-NAME", "the new name: a-z, 0-9 and -", metavar="NEW-NAME", optional=True),
    Argument("--name", "the same, as an option", metavar="NAME"),
)
TEMPLATE = Argument("TEMPLATE", "its id or name", type=reference)
