"""Every test is in a suite that tests/run knows, and says its depth, if it does, with a reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from conventions.inspection import ROOT
from depths import DEPTHS

TESTS = sorted((ROOT / "tests").rglob("*.py"))
RUN = (ROOT / "tests/run").read_text()
SHORTEST_REASON = 12


def suites() -> set[str]:
    """Those of the usage text."""
    usage = RUN.partition("TEXT\n\n")[0].partition("cat <<'TEXT'")[2]
    return set(re.findall(r"^  ([a-z0-9]+) +[a-z]", usage, re.MULTILINE))


def calls(name: str) -> Iterator[tuple[str, ast.Call, ast.Module]]:
    """Calls of something of that name in the tests, with where they are."""
    for path in TESTS:
        if path.name in ("depths.py", "test_depths.py") or name not in (text := path.read_text()):
            continue
        module = ast.parse(text)
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and name in (
                getattr(node.func, "attr", ""),
                getattr(node.func, "id", ""),
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node, module


def is_reason(node: ast.expr, module: ast.Module) -> bool:
    """Is it a text, or a constant of the module that is one?"""
    if isinstance(node, ast.Name):
        given = [
            one.value
            for one in module.body
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == node.id
        ]
        node = given[0] if given else node
    return isinstance(node, ast.Constant) and len(str(node.value)) >= SHORTEST_REASON


def test_every_module_is_in_a_suite() -> None:
    """So that it runs at some depth."""
    known = suites()
    assert {"unit", "hostile", "machine"} <= known
    assert not [
        str(path.relative_to(ROOT))
        for path in TESTS
        if path.name.startswith("test_") and path.relative_to(ROOT / "tests").parts[0] not in known
    ]


def test_a_depth_has_a_reason() -> None:
    wrong = []
    for where, call, module in calls("depth"):
        which = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
        if len(call.args) != 2 or which not in DEPTHS[1:] or not is_reason(call.args[1], module):
            wrong.append(where)
    assert not wrong


def test_a_sample_has_a_reason() -> None:
    assert not [
        where
        for where, call, module in calls("sample")
        if len(call.args) == 3 and not is_reason(call.args[2], module)
    ]


def test_fewer_rounds_are_at_a_change() -> None:
    """Never more than at the depths after it, and at least one."""
    wrong = []
    for where, call, _ in calls("rounds"):
        numbers = [node.value for node in call.args if isinstance(node, ast.Constant)]
        if len(call.args) == 3 and len(numbers) == 3 and (numbers[0] < 1 or sorted(numbers) != numbers):
            wrong.append(where)
    assert not wrong


def test_contributing_has_every_suite() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert not [suite for suite in suites() if f"`{suite}`" not in page]
