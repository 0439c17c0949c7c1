"""What a command takes, written down once: made into a parser (svc.cli.parser) or read on the spot.

Well-formed command lines are read by `read`, in no time; whatever it does not
understand at once (a mistake, `--help`, `--name=value`) goes to argparse, whose
loading takes longer than a whole `svc ws list`. A test holds the two equal.

"The parser checks choices and ranges that the specification fixes": a refusal
here is a usage error, exit code 2; everything else is the server's to judge.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}  # as `podman --memory`
SIZES = "say bytes, or a number with k, m, g or t, such as 512m, 1.5g or 32GiB"


class Arguments:
    """The arguments of one call of a command, by name."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Each command knows its own."""

        def __setattr__(self, name: str, value: Any) -> None:
            """Whatever has read the line sets them."""


class Argument:
    """One argument of a command: `--name` is an option, NAME stands at its place in the line."""

    __slots__ = ("choices", "dest", "help", "kind", "metavar", "name", "optional", "required", "type")

    def __init__(
        self,
        name: str,
        help: str,
        *,
        metavar: str = "",
        kind: str = "value",  # "value", "flag" (takes none) or "list" (may be repeated)
        type: Callable[[str], Any] = str,
        choices: tuple[str, ...] = (),
        required: bool = False,  # of an option
        optional: bool = False,  # of a place, the last of its command
        dest: str = "",
    ) -> None:
        self.name = name
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
        """Whether it is named in the line."""
        return self.name.startswith("-")

    @property
    def default(self) -> object:
        """What the command sees when it is not given."""
        return False if self.kind == "flag" else None

    def value(self, text: str) -> Any:
        """The text as the command takes it; raises ValueError with what is wrong."""
        value = self.type(text)
        if self.choices and value not in self.choices:
            raise ValueError(f"{text!r} is none of {', '.join(self.choices)}")
        return value


JSON = Argument("--json", "print the raw API answer", kind="flag")


class Command:
    """One command: its help is the first line of the handler's docstring, its description all of it."""

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
        self.arguments = (*arguments, JSON) if json else arguments
        self.examples = examples
        self.usage = usage


class Word:
    """A word that has commands, such as `ws`, or words that have some, such as `ws port`."""

    __slots__ = ("commands", "description", "name")

    def __init__(self, name: str, description: str, *commands: Command | Word) -> None:
        self.name = name
        self.description = description
        self.commands = commands


def read(word: Word | Command, argv: list[str]) -> Arguments | None:
    """The arguments after a word, when they are plainly right; None leaves the judgement to argparse."""
    if isinstance(word, Word):
        below = next((each for each in word.commands if argv[:1] == [each.name]), None)
        return None if below is None else read(below, argv[1:])
    args = Arguments()
    args.__dict__.update({argument.dest: argument.default for argument in word.arguments})
    args.handler = word.handler
    try:
        given = _fill(args, word, argv)
    except (LookupError, ValueError):
        return None
    return args if all(each.dest in given for each in word.arguments if each.required) else None


def _fill(args: Arguments, command: Command, argv: list[str]) -> set[str]:
    """Set what the line gives and tell its names; raises LookupError or ValueError at anything odd."""
    options = {argument.name: argument for argument in command.arguments if argument.is_option}
    places = [argument for argument in command.arguments if not argument.is_option]
    given = set()
    rest = list(reversed(argv))
    while rest:
        text = rest.pop()
        argument = options[text] if text.startswith("-") and text != "-" else places.pop(0)
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
        given.add(argument.dest)
    return given


# --- values -------------------------------------------------------------------------


def reference(text: str) -> str:
    """An id or a name as it goes into a path: not empty, no slash, hence no URL either."""
    if not text or "/" in text:
        raise ValueError(f"{text!r} is no id and no name")
    return text


def size(text: str) -> int:
    """Bytes, or a number with k, m, g or t (multiples of 1024): 512m, 32g, 1.5g, 32GiB."""
    lower = text.lower()
    number = lower.rstrip("bikmgt")
    suffix = lower[len(number) :]
    unit, rest = suffix[:1], suffix[1:]
    if not _decimal(number) or unit not in UNITS or rest not in ("", "b", "ib") or (unit == "b" and rest):
        raise ValueError(f"{text!r} is no size: {SIZES}")
    whole_number = number.isdigit() and len(number) < 20
    amount = (int(number) if whole_number else float(number)) * UNITS[unit]
    if not 1 <= amount < 2**63:
        raise ValueError(f"{text!r} is out of range: at least a byte, and less than 8388608t")
    return int(amount)


def cores(text: str) -> float:
    """A number of CPU cores, fractions allowed."""
    if not _decimal(text) or not 0 < float(text) < 2**16:
        raise ValueError(f"{text!r} is no number of cores such as 2 or 0.5")
    return float(text)


def whole(low: int, high: int = 2**31 - 1) -> Callable[[str], int]:
    """The type of a whole number in a range."""

    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 18 or not low <= int(text) <= high:
            raise ValueError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return number


def variable(text: str) -> dict[str, str]:
    """NAME=value, as the API takes it."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not NAME=VALUE")
    return {"name": name, "value": value}


def port(text: str) -> dict[str, Any]:
    """NAME=PORT, as the API takes it: a name for a port inside the container."""
    name, equals, number = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not NAME=PORT, such as web=8888")
    return {"name": name, "container_port": whole(1, 65535)(number)}


def _decimal(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdigit()
