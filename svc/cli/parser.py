"""argparse as svc uses it, and parsers made from the declarations of svc.cli.arguments."""

from __future__ import annotations

import argparse
import os

from svc.cli.arguments import Argument, Command, CommandGroup, Deferred
from svc.errors import UsageError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    Subparsers = argparse._SubParsersAction["Parser"]


class Help(argparse.RawDescriptionHelpFormatter):
    """argparse's help, as wide as the terminal; with a width passed, argparse does not import shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=_columns())


def _columns() -> int:
    try:
        wide = int(os.environ["COLUMNS"]) if os.environ.get("COLUMNS") else os.get_terminal_size().columns
    except (OSError, ValueError):
        wide = 80
    return max(60, min(wide, 120)) - 2


class Parser(argparse.ArgumentParser):
    """A parser without abbreviations that raises UsageError; subparsers have the same class."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=Help, allow_abbrev=False, **options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse options before positionals: argparse leaves an optional positional empty after an option."""
        if args is not None and any(action.nargs == "?" for action in self._get_positional_actions()):
            end = args.index("--") if "--" in args else len(args)
            own = sorted(args[:end], key=lambda each: not each.startswith("-") or each == "-")
            args = [*own, *args[end:]]
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise the usage error that argparse found."""
        raise UsageError(message, hint=f"{self.prog} --help")


def add(
    subparsers: Subparsers, declared: Command | CommandGroup | Deferred, inherited: tuple[Argument, ...] = ()
) -> None:
    """Add a command, or a group with its commands; `inherited` are options of the groups above it."""
    if isinstance(declared, Deferred):
        declared = declared.load()
    text = [line.strip() for line in _description(declared).strip().splitlines()]
    parser = subparsers.add_parser(declared.name, help=text[0].rstrip("."), description="\n".join(text))
    for argument in inherited:
        _add_argument(parser, argument, default=argparse.SUPPRESS)  # keep the value of a group above
    if isinstance(declared, Command):
        for argument in declared.arguments:
            _add_argument(parser, argument)
        listing = "\n".join(f"  {line}" for line in declared.examples.splitlines())
        parser.epilog = f"examples:\n{listing}"
        parser.usage = declared.usage or None
        parser.set_defaults(handler=declared.handler, prog=parser.prog)
        return
    for argument in declared.options:
        _add_argument(parser, argument)
    commands = parser.add_subparsers(metavar="<command>", prog=parser.prog, required=True)
    for command in declared.commands:
        add(commands, command, (*inherited, *declared.options))


def _description(declared: Command | CommandGroup) -> str:
    return declared.description if isinstance(declared, CommandGroup) else declared.handler.__doc__ or ""


def _add_argument(parser: Parser, argument: Argument, **options: Any) -> None:
    options["help"] = argument.help
    if argument.kind == "flag":
        options["action"] = "store_true"
    else:
        options["type"] = _converter(argument)
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


def _converter(argument: Argument) -> Callable[[str], Any]:
    """The argument's conversion, with its error as argparse expects it."""

    def value(text: str) -> Any:
        try:
            return argument.value(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return value
