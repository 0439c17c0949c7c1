"""Every command: its help, its examples, its database errors, and `--db` on both sides of it."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from svc.__main__ import build_parser


def commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands below a parser."""
    found = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return {name: inner for action in found for name, inner in action.choices.items()}


def found() -> dict[str, Any]:
    """Each command by its name, the first of several."""
    parsers = {}
    for name, parser in commands(commands(build_parser(["admin"]))["admin"]).items():
        inner = {one: verb for verb, one in reversed(commands(parser).items())}
        inner = {verb: one for one, verb in inner.items()}
        parsers |= {f"{name} {verb}": one for verb, one in inner.items()} or {name: parser}
    return parsers


COMMANDS = {
    "migrate": [],
    "create-user": ["demo"],
    "set-password": ["demo"],
    "edit-user": ["demo", "--disable"],
    "delete-user": ["demo"],
    "move-store": ["demo"],
    "quota list": [],
    "quota set": ["lab", "--gpus", "2"],
    "quota delete": ["lab"],
    "registry list": [],
    "registry add": ["quay.io"],
    "registry remove": ["quay.io"],
    "registry set": ["-"],
    "revoke-tokens": ["demo"],
    "list-users": [],
    "disk": [],
    "template import": ["python.tar", "--global"],
    "audit export": [],
    "audit archive": ["--before", "2020-01-01", "--out", "/nowhere/audit.jsonl"],
    "audit verify": ["setup.cfg"],
    "db-path": [],
    "backup": ["--retention", "3"],
    "checkpoint": [],
    "restore": ["setup.cfg"],
    "update status": [],
    "update check": [],
    "update apply": ["--yes"],
    "rollback list": [],
    "rollback apply": ["upgrade-20261122T164523.123Z", "--yes"],
    "rollback keep": ["--why", "a test"],
    "doctor": [],
    "report": [],
    "tls-fingerprint": [],
    "license show": [],
    "license request": [],
    "license verify": ["setup.cfg"],
    "license install": ["setup.cfg"],
}


def test_these_are_the_commands() -> None:
    assert set(found()) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_help_and_examples(command: str) -> None:
    text = found()[command].format_help()
    assert "examples:" in text
    assert f"svc admin {command}" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_wraps_database_errors(command: str) -> None:
    handler = found()[command].get_default("handler")
    assert handler.__wrapped__.__name__ == command.replace("-", "_").replace(" ", "_")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        ([], [], None),
        (["--db", "/a"], [], "/a"),
        ([], ["--db", "/b"], "/b"),
        (["--db", "/a"], ["--db", "/b"], "/b"),
    ],
)
def test_db_may_stand_on_either_side(
    command: str, before: list[str], after: list[str], path: str | None
) -> None:
    line = [*before, *command.split(), *COMMANDS[command], *after]
    args = build_parser(["admin"]).parse_args(["admin", *line])
    assert args.db == path
    assert callable(args.handler)


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["nonsense"],
        ["migrate", "extra"],
        ["migrate", "--d", "/x"],
        ["db-path", "--db", ""],
        ["--db", "", "db-path"],
        ["template", "import", "python.tar"],
        ["template", "import", "python.tar", "--global", "--owner", "demo"],
        ["create-user"],
    ],
)
def test_wrong_usage_is_exit_code_2(argv: list[str], svc: Any) -> None:
    code, out, err = svc(*argv)
    assert (code, out) == (2, "")
    assert err.startswith("svc: " if argv else "usage: svc admin ")
