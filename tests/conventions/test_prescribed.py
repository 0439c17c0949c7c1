"""Each command of ours that a hint or a remedy of the doctor prescribes is one that the parser takes.

A hint that cannot work helps nobody, and an option is easily renamed without it.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache

import pytest
from conventions.inspection import ROOT, modules, tree

from svc.__main__ import COMMANDS, WITH_COMMAND, build_parser, declaration
from svc.commandline.arguments import CommandGroup, Deferred
from svc.commandline.parser import Parser
from svc.errors import UsageError

VALUES = ("1", "work/x", "2026-01-01", "files")  # one of them is of the kind that a place in a text has
PLACE = "\0"
COMMAND = re.compile(r"(?:^|(?<=: )|(?<=&& )|(?<=`))(?:sudo )?svc (?=[\0a-z-])[^`]*")
END = re.compile(r" +\(| +#|;|, then|, or|, | \|\|? | && | [<>] | <<< |\)|$")
OF_ADMIN = ("admin_command", "for_database")  # these make a command of `svc admin`
FINDINGS = ("warn", "fail")  # their third argument is the remedy
PROSE = {
    "sudo svc admin ...",
    f"sudo svc admin edit-user {PLACE} {PLACE}",
}  # any command; the option is a place


def prescribed(module: ast.Module) -> Iterator[tuple[int, str]]:
    """The commands in the hints and remedies of a module, with lines; a place in an f-string is PLACE."""
    for node in ast.walk(module):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            yield from commands(node.value)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in OF_ADMIN and node.args:
            yield from ((line, f"svc admin {text}") for line, text in rendered(node.args[0]))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in FINDINGS and len(node.args) > 2:
            yield from commands(node.args[2])


def commands(node: ast.expr) -> Iterator[tuple[int, str]]:
    for line, text in rendered(node):
        for found in COMMAND.finditer(text):
            yield line, found[0]


def rendered(node: ast.expr) -> Iterator[tuple[int, str]]:
    """The texts of an expression: those of both branches of a condition, for one."""
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else PLACE for part in node.values]
        yield node.lineno, "".join(map(str, parts))
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.lineno, node.value
    elif not isinstance(node, ast.Call):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from rendered(child)


def fault(command: str) -> str:
    """Why the parser does not take a command, whatever is in its places; empty if it does."""
    text = command[: END.search(command).start()].removeprefix("sudo ").rstrip(" ,.:")
    why = ""
    for value in VALUES if PLACE in text else VALUES[:1]:
        if not (why := _fault(shlex.split(text.replace(PLACE, value))[1:], value)):
            break
    return why


@cache
def parser_of(name: str) -> Parser:
    return build_parser([name])


def _fault(argv: list[str], value: str) -> str:
    if argv[0] == "help":
        argv = [*argv[1:], "--help"]
    name = argv[0]
    if name in (value, "--help", "--version"):
        return ""
    if name not in COMMANDS:
        return f"there is no command {name}"
    if argv[:2] in WITH_COMMAND and "--" in argv:
        argv = argv[: argv.index("--")]
    declared = declaration(name)
    for word in argv[1:]:
        declared = declared.load() if isinstance(declared, Deferred) else declared
        if isinstance(declared, CommandGroup) and word == value:
            return ""  # any of the group's
        if not isinstance(declared, CommandGroup) or word.startswith("-"):
            break
        known = {each: one for one in declared.commands for each in (one.name, *declared.aliases(one))}
        declared = known.get(word, declared)
    try:
        parser_of(name).parse_args(argv)
    except UsageError as error:
        return error.message
    except SystemExit:
        pass  # after a help text
    return ""


def test_prescribed_commands_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    found, count = [], 0
    for path in modules():
        for line, command in prescribed(tree(path)):
            if command in PROSE:
                continue
            count += 1
            if why := fault(command):
                found.append(f"{path.relative_to(ROOT)}:{line}: {command!r}: {why}")
    capsys.readouterr()  # help texts
    assert not found
    assert count > 200, "they are not found any more"


FOR_EVERYBODY = re.compile(r"svc admin (db-path|--help|[a-z -]+ --help)")


def test_what_needs_root_is_prescribed_with_sudo() -> None:
    """Who got the hint by `sudo svc admin ...` types the next command as an ordinary user."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {command}"
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.keyword) and node.arg == "hint"
        for line, command in commands(node.value)
        if command.startswith("svc admin ") and not FOR_EVERYBODY.match(command)
    ]
    assert not found


@pytest.mark.parametrize(
    "source",
    [
        'SvcError("x", hint="svc ws strat NAME")',
        'SvcError("x", hint=f"sudo svc admin doctor --fix {path}")',
        'SvcError("x", hint="stop it first: svc ws stop")',
        'SvcError("x", hint="svc ws list" if here else f"svc ws get {name} --raw")',
        'warn("code", "it is old", "sudo svc admin bakup --retention 14")',
        'for_database(f"create-user {name} --admin", settings)',
    ],
)
def test_a_command_that_cannot_be_typed_is_found(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert any(fault(command) for _, command in prescribed(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        'SvcError("x", hint=f"svc fs ls {root}/{path}   (it may have moved)")',
        'SvcError("x", hint=f"svc image {verb} {name} --wait")',
        'SvcError("x", hint=f"svc ws exec {name} -- sh -c {command}")',
        'SvcError("x", hint="svc ws list --help")',
        'fail("code", "it is gone", for_database("migrate", settings))',
    ],
)
def test_one_that_can_be_is_not(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert not any(fault(command) for _, command in prescribed(ast.parse(source)))
