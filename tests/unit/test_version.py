"""Which commit this is: baked in, else the checkout's."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from svc import version

SHA = "0123456789abcdef0123456789abcdef01234567"


def test_what_was_baked_in_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    baked = types.ModuleType("svc._build")
    baked.COMMIT = SHA  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "svc._build", baked)
    baked.VERSION = "0.1.0"  # type: ignore[attr-defined]
    assert version.commit() == SHA
    assert version.release() == "0.1.0"


def test_a_branch(tmp_path: Path) -> None:
    (tmp_path / "refs/heads").mkdir(parents=True)
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "refs/heads/main").write_text(SHA + "\n")
    assert version._head(str(tmp_path)) == SHA


def test_a_packed_branch(tmp_path: Path) -> None:
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "packed-refs").write_text(
        f"# pack-refs with: peeled\n{'f' * 40} refs/heads/x\n{SHA} refs/heads/main\n"
    )
    assert version._head(str(tmp_path)) == SHA


def test_a_detached_head(tmp_path: Path) -> None:
    (tmp_path / "HEAD").write_text(SHA + "\n")
    assert version._head(str(tmp_path)) == SHA


def test_no_checkout(tmp_path: Path) -> None:
    assert version._head(str(tmp_path)) == "unknown"
    (tmp_path / "HEAD").write_bytes(b"\xff\xfe")
    assert version._head(str(tmp_path)) == "unknown"
    (tmp_path / "HEAD").write_text("ref: refs/heads/new\n")
    assert version._head(str(tmp_path)) == "unknown"
