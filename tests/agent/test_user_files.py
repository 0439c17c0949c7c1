"""Files that their user can exchange for anything: read with a bound, replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc_helper.agent import user_files


def test_no_more_is_read_than_asked_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    assert user_files.read(str(tmp_path / "file"), 10) == b"x" * 10
    assert user_files.read(str(tmp_path / "file"), 1000) == b"x" * 100


def test_nothing_but_a_regular_file_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/etc/passwd")
    before = os.listdir("/proc/self/fd")
    for other in (tmp_path, tmp_path / "none", tmp_path / "fifo", tmp_path / "link", Path("/dev/zero")):
        with pytest.raises(OSError):
            user_files.read(str(other), 10)
        assert user_files.read_json(str(other), 10) is None
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.parametrize("text", ["", "{", "nul", "[" * 100_000, "\udcff"])
def test_what_is_no_json_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_bytes(text.encode(errors="surrogateescape"))
    assert user_files.read_json(str(tmp_path / "file"), 1_000_000) is None


def test_json_is_read(tmp_path: Path) -> None:
    user_files.replace(str(tmp_path / "file"), '{"a": [1, null]}')
    assert user_files.read_json(str(tmp_path / "file"), 100) == {"a": [1, None]}


def test_a_replaced_file_is_the_users_own_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for text in ("one", "two"):
        user_files.replace(str(path), text)
        assert (path.read_text(), path.stat().st_mode & 0o777) == (text, 0o600)
    (tmp_path / "directory" / "more").mkdir(parents=True)
    with pytest.raises(OSError):
        user_files.replace(str(tmp_path / "directory"), "three")
    assert sorted(os.listdir(tmp_path)) == ["directory", "file"]
