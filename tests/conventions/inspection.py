"""The tree under inspection, for the conventions beside this file: the project's own files, parsed once."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("svc", "svc_helper", "schema")


@cache
def modules() -> tuple[Path, ...]:
    """Every module of the program."""
    return tuple(sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")))


@cache
def tree(path: Path) -> ast.Module:
    """The parsed module."""
    return ast.parse(path.read_text(), str(path))


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function of the program, with where it is."""
    for path in modules():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node


SHELLS = (b"#!/bin/bash\n", b"#!/bin/sh\n")


def scripts() -> list[Path]:
    """Every shell script: by its first line, and the parts that are sourced."""
    found = []
    for folder in ("packaging", "tests", ".ci"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and (path.suffix == ".sh" or path.read_bytes().startswith(SHELLS)):
                found.append(path)
    return found


def javascript() -> list[Path]:
    """Every file of JavaScript: the pages', and what tests run in a browser or in node."""
    folders = ("svc/apps/static", "svc/web/pages/static", "tests")
    return [
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".js", ".cjs")
    ]


JAVASCRIPT = ROOT / "tests/run.d/javascript"  # settings of its tools, and tools of our own
PREFIX = Path(sys.executable).parent.parent
NODE_MODULES = PREFIX / "share/javascript/node_modules"  # tests/run installs them


def run_node(tool: Path, *arguments: str | Path) -> str:
    """What a tool says that node runs at the root of the tree; its complaints are a failure of the test."""
    command = [str(argument) for argument in (PREFIX / "bin/node", tool, *arguments)]
    environ = os.environ | {"NODE_PATH": str(NODE_MODULES)}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        pytest.fail(f"{tool.name}:\n{done.stdout}{done.stderr}"[-6000:], pytrace=False)
    return done.stdout
