"""argparse with the habits of svc, and the parsers made from what svc.cli.arguments writes down."""

from __future__ import annotations

import argparse
import os

from svc.cli.arguments import JSON, Argument, Command, Word
from svc.errors import UsageError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    Words = argparse._SubParsersAction["Parser"]


class Help(argparse.RawDescriptionHelpFormatter):
    """argparse's help, as wide as the terminal; the width is given so that argparse need not load shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=_columns())


def _columns() -> int:
    try:
        wide = int(os.environ["COLUMNS"]) if os.environ.get("COLUMNS") else os.get_terminal_size().columns
    except (OSError, ValueError):
        wide = 80
    return max(60, min(wide, 120)) - 2


class Parser(argparse.ArgumentParser):
    """No abbreviations; errors as `svc: message` with a hint. The parsers of all words are of this class."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", Help)
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's own, which leaves an optional place empty as soon as a flag stands before it."""
        if args is not None and any(action.nargs == "?" for action in self._get_positional_actions()):
            end = args.index("--") if "--" in args else len(args)
            own = sorted(args[:end], key=lambda each: not each.startswith("-") or each == "-")
            args = [*own, *args[end:]]
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise the usage error that argparse found."""
        raise UsageError(message, hint=f"{self.prog} --help")


def add_command(
    words: Words,
    name: str,
    handler: Callable[..., int],
    examples: str,
    usage: str | None = None,
    json: bool = False,
) -> Parser:
    """One command: its help is the first line of the handler's docstring, its description all of it."""
    text = [line.strip() for line in (handler.__doc__ or "").strip().splitlines()]
    listing = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    parser = words.add_parser(
        name,
        help=text[0].rstrip("."),
        description="\n".join(text),
        epilog=f"examples:\n{listing}",
        usage=usage,
    )
    if json:
        _add_argument(parser, JSON)
    parser.set_defaults(handler=handler)
    return parser


def add_word(words: Words, word: Word | Command, help: str) -> None:
    """Add what svc.cli.arguments has written down: a word and its commands, or a command that is a word."""
    if isinstance(word, Command):
        _add(words, word)
        return
    title = help[0].upper() + help[1:]
    parser = words.add_parser(word.name, help=help, description=f"{title}.\n\n{word.description}")
    commands = parser.add_subparsers(dest="verb", metavar="<command>", prog=f"svc {word.name}", required=True)
    for command in word.commands:
        if isinstance(command, Word):
            _add_inner_word(commands, parser.prog, command)
        else:
            _add(commands, command)


def _add_inner_word(words: Words, prog: str, word: Word) -> None:
    """A word inside a word: its help is the first line of its description."""
    help = word.description.partition("\n")[0].rstrip(".")
    parser = words.add_parser(word.name, help=help, description=word.description)
    commands = parser.add_subparsers(
        dest="inner_verb", metavar="<command>", prog=f"{prog} {word.name}", required=True
    )
    for command in word.commands:
        if isinstance(command, Word):
            raise TypeError(f"{word.name} {command.name}: words are two deep at most")
        _add(commands, command)


def _add(words: Words, command: Command) -> None:
    parser = add_command(words, command.name, command.handler, command.examples, command.usage or None)
    for argument in command.arguments:
        _add_argument(parser, argument)


def _add_argument(parser: Parser, argument: Argument) -> None:
    options: dict[str, Any] = {"help": argument.help}
    if argument.kind == "flag":
        options["action"] = "store_true"
    else:
        options["type"] = _judged(argument)
        options["metavar"] = argument.metavar or "|".join(argument.choices) or argument.name
        if argument.kind == "list":
            options["action"] = "append"
        if argument.optional:
            options["nargs"] = "?"
    if argument.is_option:
        options["required"] = argument.required
        parser.add_argument(argument.name, dest=argument.dest, **options)
    else:
        parser.add_argument(argument.dest, **options)


def _judged(argument: Argument) -> Callable[[str], Any]:
    """The argument's check, whose words argparse then uses as they are."""

    def value(text: str) -> Any:
        try:
            return argument.value(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return value
