"""Every constant has a use: a number that nothing reads is not the number in force."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from conventions.inspection import ROOT, modules, tree

CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")


def _assigned(module: ast.Module) -> Iterator[tuple[str, int]]:
    """The constants that a module defines, with their lines."""
    for statement in module.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
            yield from ((name, statement.lineno) for name in names if CONSTANT.fullmatch(name))


def _read(module: ast.Module) -> set[str]:
    nodes = ast.walk(module)
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _taken(module: ast.Module) -> Iterator[str]:
    """The names that a module takes from others: imported by name, or read as an attribute."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr


def test_every_constant_is_used_by_the_program() -> None:
    """Within its module, by an import of its name (which ruff requires to be used), or as an attribute."""
    taken = {name for path in [*modules(), ROOT / "docs/generate.py"] for name in _taken(tree(path))}
    unused = []
    for path in modules():
        relative = path.relative_to(ROOT)
        dotted = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
        used = taken | _read(tree(path))
        for name, line in _assigned(tree(path)):
            if not used & {name, f"{dotted}.{name}"}:
                unused.append(f"{relative}:{line} {name}")
    assert not unused
