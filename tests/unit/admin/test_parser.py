"""Every word: its help, its examples, and `--db` on both sides of it."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from svc.__main__ import build_parser


def commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands below a parser."""
    found = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return {name: inner for action in found for name, inner in action.choices.items()}


def words() -> dict[str, Any]:
    """Each command by its words."""
    found = {}
    for name, parser in commands(commands(build_parser(["admin"]))["admin"]).items():
        inner = commands(parser)
        found |= {f"{name} {verb}": one for verb, one in inner.items()} or {name: parser}
    return found


WORDS = {
    "migrate": [],
    "create-user": ["demo"],
    "set-password": ["demo"],
    "revoke-tokens": ["demo"],
    "list-users": [],
    "template import": ["python.tar", "--global"],
    "db-path": [],
    "doctor": [],
    "tls-fingerprint": [],
}


def test_these_are_the_words() -> None:
    assert set(words()) == set(WORDS)


@pytest.mark.parametrize("word", WORDS)
def test_a_word_has_help_and_examples(word: str) -> None:
    text = words()[word].format_help()
    assert "examples:" in text
    assert f"svc admin {word}" in text


@pytest.mark.parametrize("word", WORDS)
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
    word: str, before: list[str], after: list[str], path: str | None
) -> None:
    args = build_parser(["admin"]).parse_args(["admin", *before, *word.split(), *WORDS[word], *after])
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
        ["create-user"],
    ],
)
def test_wrong_usage_is_exit_code_2(argv: list[str], svc: Any) -> None:
    code, out, err = svc(*argv)
    assert (code, out) == (2, "")
    assert err.startswith("svc: ")
