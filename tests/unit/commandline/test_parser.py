"""Every parser is described, has examples, abbreviates nothing and tells errors as svc does."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

import pytest
from fake_service import Svc

from svc.__main__ import build_parser
from svc.commandline.parser import Parser
from svc.errors import UsageError


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and all below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from parsers(below)


def commands() -> list[argparse.ArgumentParser]:
    return [parser for parser in parsers(build_parser()) if parser._defaults.get("handler")]


def test_every_parser_is_described() -> None:
    for parser in parsers(build_parser()):
        assert isinstance(parser, Parser), parser.prog
        assert parser.description, parser.prog
        assert not parser.allow_abbrev, parser.prog


def test_every_command_has_an_example_of_itself() -> None:
    for parser in commands():
        assert "examples:" in (parser.epilog or ""), parser.prog
        assert parser.prog in (parser.epilog or ""), parser.prog


def test_every_argument_is_explained() -> None:
    for parser in parsers(build_parser()):
        for action in parser._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction), (parser.prog, action.dest)


def test_every_parser_prints_its_help() -> None:
    for parser in parsers(build_parser()):
        assert parser.format_help().startswith("usage: svc")


@pytest.mark.parametrize("line", ["admin", "ws", "ws rm", "ws port add", "ws ls", "admin license"])
def test_a_parser_made_for_one_line_gives_the_same_help(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = line.split()
    for typed in (None, words):
        with pytest.raises(SystemExit):
            build_parser(words[:1], typed).parse_args([*words, "--help"])
    shown = capsys.readouterr().out
    assert shown == shown[: len(shown) // 2] * 2


def examples() -> Iterator[list[str]]:
    """The arguments of every `svc ...` in every example, without what the shell or the reader takes."""
    for parser in commands():
        for line in (parser.epilog or "").splitlines()[1:]:
            arguments = shlex.split(line.strip().split("   ")[0], comments=True)
            if "svc" in arguments and ">" not in arguments:
                arguments = arguments[arguments.index("svc") + 1 :]
                ends = [arguments.index(end) for end in ("|", "&&", "<", "--") if end in arguments]
                yield arguments[: min(ends, default=None)]


def test_every_example_is_understood() -> None:
    assert len(list(examples())) > 30
    for arguments in examples():
        build_parser(arguments[:1]).parse_args(arguments)


def test_errors_are_raised_with_the_help_as_hint() -> None:
    with pytest.raises(UsageError) as raised:
        build_parser(["ws"]).parse_args(["ws", "start"])
    assert raised.value.hint == "svc ws start --help"


@pytest.mark.parametrize(
    "line", ["ws --help", "ws list -h", "ws exec -h", "template create --help", "env --help"]
)
def test_help_is_a_success(svc: Svc, line: str) -> None:
    done = svc(*line.split())
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("usage: svc")


def test_help_is_the_same_with_each_python() -> None:
    parser = Parser(prog="svc")
    commands = parser.add_subparsers(title="commands", metavar="")
    commands.add_parser("deliver", aliases=["send"], help="after one space of room")
    parser.add_argument("-f", "--file", metavar="FILE", help="once")
    lines = parser.format_help().splitlines()
    assert "  -f, --file FILE   once" in lines
    assert "    deliver (send)  after one space of room" in lines
