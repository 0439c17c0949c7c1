"""The tools' own verdicts, each as a test."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conventions.inspection import ROOT, scripts

TOOLS = Path(sys.executable).parent


def verdict(*command: str | Path) -> None:
    """Run a tool at the root of the tree; its complaints are the failure."""
    done = subprocess.run(
        [str(argument) for argument in command], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    if done.returncode != 0:
        pytest.fail(f"{Path(command[0]).name}:\n{done.stdout}{done.stderr}"[-6000:], pytrace=False)


def test_ruff_finds_nothing() -> None:
    verdict(
        TOOLS / "ruff",
        "check",
        "--no-cache",
        ".",
        "packaging/debian/launcher",
        "packaging/quickstart.d/base-image",
        "packaging/vendor/license",
        "packaging/manual",
        "packaging/completion",
    )


def test_the_code_is_formatted() -> None:
    verdict(TOOLS / "ruff", "format", "--check", "--no-cache", "svc", "svc_helper", "tests", "setup.py")


def test_types_hold(tmp_path: Path) -> None:
    verdict(TOOLS / "mypy", "--cache-dir", tmp_path, "-p", "svc", "-p", "svc_helper")


def test_no_layer_imports_upwards() -> None:
    verdict(TOOLS / "lint-imports", "--no-cache")


def test_shell_scripts_are_clean() -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed (apt-get install shellcheck)")
    verdict("shellcheck", *scripts())
