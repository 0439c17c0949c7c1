"""Every code of the doctor has a line in docs/doctor.md, every line a code; each is seen in a test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from conventions.inspection import ROOT, tree

from svc.admin.checks import codes, order, prerequisites
from svc.domain.licence import reports

TABLES = {*prerequisites.PACKAGES, *reports.HINTS}  # codes that are keys there
LEVELS = {"ok", "warn", "fail", "level", "finding", "warn_of"}


def texts(node: ast.expr, values: dict[str, str]) -> Iterator[str]:
    """The codes that an expression can be: a constant, a name of one, a text with places."""
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.Name) and node.id in values:
        yield values[node.id]
    elif isinstance(node, ast.JoinedStr):
        parts = ["".join(texts(part, values)) for part in node.values]
        yield "".join(parts)
    elif isinstance(node, ast.FormattedValue):
        yield next(texts(node.value, values), "FILE") if isinstance(node.value, ast.Name) else "FILE"


def used(path: Path) -> Iterator[str]:
    """The codes of a module: first arguments of ok, warn and fail; code of a call; names in a table."""
    module = tree(path)
    values = {
        node.targets[0].id: str(node.value.value)
        for node in module.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            if node.func.id in LEVELS:
                yield from texts(node.args[0], values)
            elif node.func.id == "_data_file":
                yield from texts(node.args[2], values)
        elif isinstance(node, ast.Tuple) and len(node.elts) > 1 and isinstance(node.elts[0], ast.Constant):
            yield from (text for text in texts(node.elts[0], values) if text in codes.CODES)


def all_used() -> set[str]:
    """Codes in the form of the table."""
    folder = ROOT / "svc/admin"
    found = {
        code for path in [*(folder / "checks").glob("*.py"), folder / "repair.py"] for code in used(path)
    }
    of_ids = {code for code in found if code.startswith("subFILE")}
    kinds = {code.replace("FILE", kind) for code in of_ids for kind in ("uid", "gid")}
    found = (found - of_ids) | kinds | TABLES
    return {code.replace("confinement.FILE", "confinement.KIND") for code in found}


def test_every_code_has_its_line_and_every_line_its_code() -> None:
    assert all_used() ^ set(codes.CODES) == {codes.NOT_CHECKED}  # the doctor's own


def test_the_page_has_a_row_for_each() -> None:
    page = (ROOT / "docs/doctor.md").read_text()
    assert re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE) == list(codes.CODES)


def test_every_code_is_seen_in_a_test_by_breaking_exactly_that() -> None:
    folder = ROOT / "tests/unit/admin"
    tests = [*(folder / "checks").glob("test_*.py"), folder / "test_doctor.py", folder / "test_repair.py"]
    seen = {
        str(node.value)
        for path in tests
        if path != Path(__file__)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
    }
    assert set(codes.CODES) - {line for text in seen if (line := codes.line_of(text))} == set()


def test_every_check_is_run_once() -> None:
    names = [check.__name__ for check in order.CHECKS]
    assert len(names) == len(set(names))
    assert set(order.NEED_DATABASE) <= set(order.CHECKS)


def test_codes_that_name_a_file() -> None:
    assert codes.line_of("data_dir.svc.db-wal") == "data_dir.FILE"
    assert codes.line_of("confinement.mnt") == "confinement.KIND"
    assert codes.line_of("data_dir") == "data_dir"
    assert codes.line_of("no_such_code") is None
