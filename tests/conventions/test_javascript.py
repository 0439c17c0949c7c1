"""The verdicts of JavaScript's tools, which tests/run installs beside this Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conventions.inspection import ROOT, javascript

PREFIX = Path(sys.executable).parent.parent
SETTINGS = ROOT / "tests/run.d/javascript"
PACKAGES = PREFIX / "share/javascript/node_modules"


def verdict(tool: str, *arguments: str | Path) -> None:
    """Run a tool of PACKAGES at the root of the tree; its complaints are the failure."""
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
