"""A directory of the test's own, and a project in it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the test stands."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project() -> Path:
    """A project beside the service's socket."""
    root = Path("My_Project")
    (root / "app").mkdir(parents=True)
    (root / "Dockerfile").write_text("FROM r/base:1\nCOPY . /app\n")
    (root / "app/main").write_text("x")
    (root / "app/main").chmod(0o755)
    (root / ".dockerignore").write_text("left\n")
    (root / "left").write_text("")
    return root
