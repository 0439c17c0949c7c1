"""What the parsers of all words share: the parser class, one command's parser, checked values.

"The parser checks choices and ranges that the specification fixes": a refusal
here is a usage error, exit code 2; everything else is the server's to judge.
"""

from __future__ import annotations

import argparse
import os
import sys

from svc.errors import FileRefused, UsageError
from svc.limits import BODY_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    Words = argparse._SubParsersAction["Parser"]

UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}  # as `podman --memory`
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")


class Help(argparse.RawDescriptionHelpFormatter):
    """argparse's help, as wide as the terminal; the width is given so that argparse need not load shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=_columns())


def _columns() -> int:
    try:
        wide = (
            int(os.environ.get("COLUMNS", "")) if "COLUMNS" in os.environ else os.get_terminal_size().columns
        )
    except (OSError, ValueError):
        wide = 80
    return max(60, min(wide, 120)) - 2


class Parser(argparse.ArgumentParser):
    """argparse's parser with the habits of svc: no abbreviations, errors as `svc: message` with a hint."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", Help)
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        """Raise the usage error that argparse found."""
        raise UsageError(message, hint=f"{self.prog} --help")


def add_word(words: Words, word: str, help: str, description: str) -> Words:
    """The parser of a word that has commands of its own, such as `ws`; returns where they are added."""
    parser = words.add_parser(
        word, help=help, description=f"{help[0].upper()}{help[1:]}.\n\n{description}".strip()
    )
    return parser.add_subparsers(dest="command", metavar="<command>", prog=f"svc {word}", required=True)


def add_command(
    words: Words, name: str, handler: Callable[[argparse.Namespace], int], examples: str, json: bool = True
) -> Parser:
    """One command: the handler's docstring is its help (first line) and its description (all of it)."""
    text = [line.strip() for line in (handler.__doc__ or "").strip().splitlines()]
    listing = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    parser = words.add_parser(
        name, help=text[0].rstrip("."), description="\n".join(text), epilog=f"examples:\n{listing}"
    )
    if json:
        parser.add_argument("--json", action="store_true", help="print the raw API answer")
    parser.set_defaults(handler=handler)
    return parser


def add_owner(parser: Parser, whose: str) -> None:
    """The administrators' option to name another owner."""
    parser.add_argument(
        "--owner", metavar="USER", type=reference, help=f"{whose} of this user (administrators only)"
    )


# --- values -------------------------------------------------------------------------


def reference(text: str) -> str:
    """An id or a name as it goes into a path: not empty, no slash, hence no URL either."""
    if not text or "/" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is no id and no name")
    return text


def size(text: str) -> int:
    """Bytes, or a number with k, m, g or t (multiples of 1024): 512m, 32g, 1.5g."""
    number = text.lower().removesuffix("ib").rstrip("bkmgt")
    unit = text.lower().removesuffix("ib")[len(number) :]
    try:
        value = float(number) * UNITS[unit if len(unit) < 2 else unit.removesuffix("b")]
    except (ValueError, KeyError, OverflowError):
        value = -1.0
    if not text.isascii() or not number.replace(".", "", 1).isdigit() or not 1 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 512m or 32g")
    return int(value)


def cores(text: str) -> float:
    """A number of CPU cores, fractions allowed."""
    if not text.isascii() or not text.replace(".", "", 1).isdigit() or not 0 < float(text) < 2**16:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of cores such as 2 or 0.5")
    return float(text)


def whole(low: int, high: int = 2**31 - 1) -> Callable[[str], int]:
    """A parser's type for a whole number in a range."""

    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 18 or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return number


def variable(text: str) -> dict[str, str]:
    """NAME=value, as the API takes it."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return {"name": name, "value": value}


def quote(text: str) -> str:
    """One segment of a path or one value of a query, percent-encoded (urllib.parse costs 3 ms)."""
    if text in (".", ".."):
        return text.replace(".", "%2E")
    return "".join(chr(byte) if chr(byte) in UNRESERVED else f"%{byte:02X}" for byte in os.fsencode(text))


def query(**values: object) -> str:
    """`?name=value&...` of the values that are set; empty when none is."""
    pairs = [f"{name}={quote(str(value))}" for name, value in values.items() if value is not None]
    return "?" + "&".join(pairs) if pairs else ""


def read_file(path: str) -> bytes:
    """The bytes of a file given on the command line; `-` reads standard input."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(BODY_MAX + 1)
        else:
            with open(path, "rb") as file:
                content = file.read(BODY_MAX + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise FileRefused(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > BODY_MAX:
        raise FileRefused(f"{path} is larger than {BODY_MAX} bytes, the most that a request may carry")
    return content
