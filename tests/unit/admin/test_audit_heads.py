"""What root remembers of the audit: a line for each database, and nothing for anybody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.admin.audit_heads import NONE, RootsHeads
from svc.domain.audit.chain import Head

ROW = Head(7, "a" * 64)


def test_a_line_for_each_database(tmp_path: Path, needs_root: None) -> None:
    heads = RootsHeads(str(tmp_path), "audit-head")
    assert heads.get("/a/svc.db") == NONE
    heads.put("/a/svc.db", ROW)
    heads.put("/b/svc.db", Head(8, "b" * 64))
    heads.put("/a/svc.db", Head(9, "c" * 64))
    assert (heads.get("/a/svc.db").id, heads.get("/b/svc.db").id) == (9, 8)
    assert len((tmp_path / "audit-head").read_text().splitlines()) == 2
    heads.put("/c\n1 x /d", ROW)  # a name that would be two lines
    assert heads.get("/d") == NONE


def test_lines_that_are_none_count_for_nothing(tmp_path: Path, needs_root: None) -> None:
    heads = RootsHeads(str(tmp_path), "audit-head")
    (tmp_path / "audit-head").write_text(
        "x\n0 " + "a" * 64 + " /a\n1 short /a\n1 " + "a" * 64 + " relative\n"
    )
    assert heads.get("/a") == heads.get("relative") == NONE


def test_only_root_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_root: None) -> None:
    heads = RootsHeads(str(tmp_path), "audit-head")
    heads.put("/a", ROW)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert heads.get("/a") == NONE
    heads.put("/b", ROW)
    monkeypatch.undo()
    assert heads.get("/b") == NONE
