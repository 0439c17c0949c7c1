"""A file is replaced whole or not at all, and a failure leaves nothing behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc_helper import atomic_file


@pytest.mark.parametrize("durable", [True, False])
def test_content_and_mode(tmp_path: Path, durable: bool) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o600)
    mask = os.umask(0o077)
    try:
        atomic_file.replace(str(file), b"new", 0o644, durable=durable)
    finally:
        os.umask(mask)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o644)
    assert os.listdir(tmp_path) == ["file"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    atomic_file.replace(str(tmp_path / "link"), b"new")
    assert (tmp_path / "link").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["link"]


def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        atomic_file.replace(str(tmp_path / "file"), b"new")
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_draft_of_an_interrupted_run_is_replaced(tmp_path: Path) -> None:
    draft = tmp_path / "file.draft"
    draft.symlink_to(tmp_path / "elsewhere")
    atomic_file.replace(str(tmp_path / "file"), b"new", draft=str(draft))
    assert os.listdir(tmp_path) == ["file"]
