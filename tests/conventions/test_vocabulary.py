"""The words of docs/glossary.md: names and prose that were retired stay retired."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from conventions.inspection import JAVASCRIPT, ROOT, javascript, modules, run_node, scripts

# Parts of names that a reader would have to decode, and what to write instead.
NAMES = {
    "door": "listener, or pair (of the helper's sockets)",
    "keeper": "shim",
    "leash": "process_tracker",
    "sweep": "kill_marked, remove_stale_x",
    "demand": "require",
    "look": "inspect, read, find",
    "settle": "resolve",
    "tell": "send, print",
    "hear": "receive",
    "heed": "handle",
    "shown": "format_x, visible",
    "told": "result, reply, message",
    "given": "value, arguments",
    "wanted": "request, requested",
    "made": "created, built, result",
    "word": "argument, name, message",
    "standing": "account_status",
    "staging": "spool",
    "sealing": "encryption",
    "handover": "the passing of a descriptor",
    "complaints": "runtime_errors",
    "remains": "stale_containers, build_cleanup",
    "leftovers": "pull_cleanup",
    "observations": "reconcile_rules",
    "ring": "rotating_log; a suite of tests",
    "deed": "action",
    "bone": "skeleton",
}
# The same, of the pages' JavaScript alone.
BROWSER_NAMES = {
    "says": "key, text",
    "piece": "page, part, chunk",
    "away": "offline",
}
LIBRARY = {"MFD_ALLOW_SEALING", "allSettled"}  # names that are not ours to choose


def forms(stems: dict[str, str]) -> dict[str, str]:
    """What to write instead, for each form of the words."""
    endings = ("", "s", "ed", "d", "rd")
    return {f"{stem}{ending}": instead for stem, instead in stems.items() for ending in endings}


FORMS = forms(NAMES)
PROSE = re.compile(
    r"\b(?:doors?|keepers?|leash(?:es)?|rings? of (?:the )?tests|(?:test|unit|e2e|agent|helper) rings?"
    r"|house's|laws? of the house)\b",
    re.IGNORECASE,
)


def parts(name: str) -> list[str]:
    """The parts of an identifier in lower case: FooBar_baz -> foo, bar, baz."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")


def names(path: Path) -> Iterator[str]:
    """Each retired name of a module, with where it stands and what to write instead."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.NAME:
            yield from judged(f"{path.relative_to(ROOT)}:{token.start[0]}", token.string)


def judged(where: str, name: str, retired: dict[str, str] = FORMS) -> Iterator[str]:
    """Each retired part of a name."""
    for part in parts(name):
        if part in retired and name not in LIBRARY:
            yield f"{where} {name}: write {retired[part]}"


@pytest.mark.parametrize("package", ["svc", "svc_helper", "schema"])
def test_no_retired_name_is_used(package: str) -> None:
    found = [line for path in modules() if path.relative_to(ROOT).parts[0] == package for line in names(path)]
    assert not found


def test_no_retired_name_is_used_in_javascript() -> None:
    files = [path.relative_to(ROOT) for path in javascript()]
    found = [line.split(" ") for line in run_node(JAVASCRIPT / "names.cjs", *files).splitlines()]
    retired = forms(NAMES | BROWSER_NAMES)
    assert not [fault for where, name in found for fault in judged(where, name, retired)]


def test_no_retired_word_is_read() -> None:
    """Code, tests, scripts and pages; the changelog and the decisions tell of their time."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    found = [
        f"{path.relative_to(ROOT)}:{number} {match[0]}"
        for path in [*modules(), *tests, *scripts(), *javascript(), *pages]
        if path.name != "glossary.md"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := PROSE.search(line))
    ]
    assert not found
