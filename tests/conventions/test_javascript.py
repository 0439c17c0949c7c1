"""The verdicts of JavaScript's tools, which tests/run installs beside this Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from posixpath import dirname, normpath

import pytest
from conventions.inspection import ROOT, javascript

from svc.web.pages import assets

PREFIX = Path(sys.executable).parent.parent
SETTINGS = ROOT / "tests/run.d/javascript"
PACKAGES = PREFIX / "share/javascript/node_modules"

LINE_MAX = 120

# The folders of the pages' modules, the upper first: one imports itself and those below, also for later.
LAYERS = (
    {"activity", "admin", "composer", "files", "images", "nothing", "settings", "templates", "workspaces"},
    {"live"},  # terminal, logs and monitor of a workspace
    {"workspace"},
    {"screen"},
    {"palette", "sign_in"},
    {"shared"},
    {"frame"},
)
FLOORS = {folder: number for number, folders in enumerate(reversed(LAYERS)) for folder in folders}


def verdict(tool: str | Path, *arguments: str | Path) -> None:
    """Run a tool of PACKAGES, or our own, at the root of the tree; its complaints are the failure."""
    command = [PREFIX / "bin/node", PACKAGES / tool, *arguments]
    done = subprocess.run(
        [str(argument) for argument in command],
        cwd=ROOT,
        env=os.environ | {"NODE_PATH": str(PACKAGES)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode != 0:
        pytest.fail(f"{tool}:\n{done.stdout}{done.stderr}"[-6000:], pytrace=False)


def test_eslint_finds_nothing() -> None:
    config = SETTINGS / "eslint.config.cjs"
    verdict("eslint/bin/eslint.js", "--config", config, "--max-warnings", "0", *javascript())


def test_types_hold() -> None:
    """Those of JSDoc, and of the records of the API, which schema/api.d.ts has."""
    verdict("typescript/bin/tsc", "--project", SETTINGS)


def test_the_javascript_is_formatted() -> None:
    """.venv/bin/node tests/run.d/javascript/format.cjs FILE... does it, with NODE_PATH as above."""
    verdict(SETTINGS / "format.cjs", "--check", *javascript())


def test_no_line_is_long() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in javascript()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LINE_MAX
    ]
    assert not long


def imports(text: str) -> list[str]:
    """The paths of what a module imports, now or later."""
    return re.findall(r"(?:\bfrom |\bimport\()'(\.[^']*)'", text)


def test_no_folder_of_the_pages_imports_upwards() -> None:
    assert {name.split("/")[0] for name in assets.sources()} == set(FLOORS)
    found = []
    for name, text in assets.sources().items():
        folder = name.split("/")[0]
        for path in imports(text):
            other = normpath(f"{dirname(name)}/{path}").split("/")[0]
            if other in FLOORS and other != folder and FLOORS[other] >= FLOORS[folder]:
                found.append(f"{name} imports {path}")
    assert not found
