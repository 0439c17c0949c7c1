"""What is made from the code is up to date."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conventions.inspection import ROOT


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    if done.returncode != 0:
        pytest.fail(f"run `make docs`: {done.stdout}{done.stderr}", pytrace=False)


def test_make_help_is_the_default_and_complete() -> None:
    lines = (ROOT / "Makefile").read_text().splitlines()
    targets = {line.split(":")[0] for line in lines if line[:1].isalpha() and ":" in line and "=" not in line}
    helped = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, timeout=30).stdout
    assert targets == {line.split()[0] for line in helped.splitlines()}
