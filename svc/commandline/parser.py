"""argparse as svc uses it, and parsers made from the declarations of svc.commandline.arguments."""

from __future__ import annotations

import argparse
import os

from svc.commandline.arguments import Argument, Command, CommandGroup, Deferred
from svc.commandline.suggestions import unknown_command
from svc.errors import UsageError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable
    from typing import Any, NoReturn

    Subparsers = argparse._SubParsersAction["Parser"]


class Help(argparse.RawDescriptionHelpFormatter):
    """argparse's help, as wide as the terminal; with a width passed, argparse does not import shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=_columns())

    def add_argument(self, action: argparse.Action) -> None:
        """Measure commands with their indentation: without it Python 3.11 breaks lines that have room."""
        before = self._action_max_length
        super().add_argument(action)
        if action.help is not argparse.SUPPRESS:
            width = len(self._format_action_invocation(action)) + self._current_indent
            for command in self._iter_indented_subactions(action):
                width = max(width, len(self._format_action_invocation(command)) + self._current_indent)
            self._action_max_length = max(before, width)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """`-f, --file FILE` as Python 3.13 has it, in place of `-f FILE, --file FILE`."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Paragraphs as wide as the terminal; the examples keep their lines."""
        from textwrap import fill

        def filled(paragraph: str) -> str:
            if paragraph.startswith("examples:"):
                return paragraph
            return fill(paragraph, width, break_on_hyphens=False)

        return "\n\n".join(map(filled, text.split("\n\n")))


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
        self._intermixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse options before positionals: argparse leaves an optional positional empty after an option.

        And lets an option end a list of positionals, unless they are parsed in turn.
        """
        if not self._intermixing and any(action.nargs == "+" for action in self._get_positional_actions()):
            self._intermixing = True
            try:
                return super().parse_known_intermixed_args(args, namespace)
            finally:
                self._intermixing = False
        if args is not None and any(action.nargs in ("?", "*") for action in self._get_positional_actions()):
            end = args.index("--") if "--" in args else len(args)
            args = [*self._options_first(args[:end]), *args[end:]]
        return super().parse_known_args(args, namespace)

    def _options_first(self, args: list[str]) -> list[str]:
        """The arguments with options, each with its value, before positionals."""
        options: list[str] = []
        positionals: list[str] = []
        left = iter(args)
        for each in left:
            if not each.startswith("-") or each == "-":
                positionals.append(each)
                continue
            options.append(each)
            action = self._option_string_actions.get(each)
            if action is not None and action.nargs is None:
                options += [value for value in [next(left, None)] if value is not None]
        return [*options, *positionals]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise the usage error for an unknown subcommand, with the nearest one; argparse lists all."""
        if not isinstance(action, argparse._SubParsersAction) or value in action.choices:
            super()._check_value(action, value)
            return
        raise unknown_command(
            f"{self.prog} {value}", dict.fromkeys(each.prog for each in action.choices.values())
        )

    def error(self, message: str) -> NoReturn:
        """Raise the usage error that argparse found."""
        option, separator, _ = message.removeprefix("argument ").partition(": ignored explicit argument ")
        if separator:
            message = f"{option} takes no value"
        raise UsageError(message, hint=f"{self.prog} --help")


def add(
    subparsers: Subparsers,
    declared: Command | CommandGroup | Deferred,
    inherited: tuple[Argument, ...] = (),
    aliases: Iterable[str] = (),
    typed: Container[str] | None = None,
) -> None:
    """Add a command, or a group with its commands; `inherited` are options of the groups above it.

    `typed` are the words of the command line: of a deferred command that is not one of them only the
    help of its group is needed. Without it everything is loaded.
    """
    if isinstance(declared, Deferred):
        if typed is not None and not any(name in typed for name in (declared.name, *aliases)):
            subparsers.add_parser(declared.name, aliases=list(aliases), help=declared.help)
            return
        declared = declared.load()
    text = [line.strip() for line in _description(declared).strip().splitlines()]
    parser = subparsers.add_parser(
        declared.name, aliases=list(aliases), help=text[0].rstrip("."), description="\n".join(text)
    )
    for argument in inherited:
        _add_argument(parser, argument, default=argparse.SUPPRESS)  # keep the value of a group above
    if isinstance(declared, Command):
        for argument in declared.arguments:
            _add_argument(parser, argument)
        listing = "\n".join(f"  {line}" for line in declared.examples.splitlines())
        parser.epilog = f"examples:\n{listing}"
        parser.usage = declared.usage or None
        known = [name for argument in (*inherited, *declared.arguments) for name in argument.names] + [
            "--help"
        ]
        parser.set_defaults(
            handler=declared.handler, prog=parser.prog, options=[name for name in known if name[0] == "-"]
        )
        return
    for argument in declared.options:
        _add_argument(parser, argument)
    commands = parser.add_subparsers(metavar="<command>", prog=parser.prog, required=True)
    for command in declared.commands:
        add(commands, command, (*inherited, *declared.options), declared.aliases(command), typed)


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
            options |= {"action": "append"} if argument.is_option else {"nargs": "+"}
        if argument.optional:
            options["nargs"] = "*" if argument.kind == "list" else "?"
    if argument.is_option:
        options["required"] = argument.required
        action = parser.add_argument(*argument.names, dest=argument.dest, **options)
    else:
        action = parser.add_argument(argument.dest, **options)
    vars(action)["declared"] = argument  # for what is made from the parser: packaging/completion


def _converter(argument: Argument) -> Callable[[str], Any]:
    """The argument's conversion, with its error as argparse expects it."""

    def value(text: str) -> Any:
        try:
            return argument.value(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return value
