from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest


def test_it_prints_the_path_in_force(svc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc.settings.read_env_file", lambda: {"SVC_DB": "/c/file.db"})
    assert svc("db-path") == (0, "/c/file.db\n", "")
    monkeypatch.setenv("SVC_DB", "/b/environ.db")
    assert svc("db-path") == (0, "/b/environ.db\n", "")
    assert svc("db-path", "--db", "/a/flag.db") == (0, "/a/flag.db\n", "")
    assert svc("--db", "/a/flag.db", "db-path") == (0, "/a/flag.db\n", "")


def test_without_any_it_is_in_the_working_directory(
    svc: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert svc("db-path") == (0, f"{here}/svc.db\n", "")
    assert os.listdir(here) == []


def test_a_planted_one_is_refused_unopened(
    svc: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_root: None
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("svc.db")  # opening it would wait for ever
    os.chown("svc.db", 65534, 65534)
    code, out, err = svc("db-path")
    assert (code, out) == (1, "")
    assert "belongs to nobody" in err
