"""The service's own files: what may stand in their place, and what may not."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from svc.admin import own_files
from svc.admin.own_files import ROOT, OwnFile
from svc.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    environ = {
        "SVC_DB": f"{tmp_path}/state/data/svc.db",
        "SVC_STATE_DIR": f"{tmp_path}/state",
        "SVC_SOCKET": f"{tmp_path}/run/svc.sock",
    }
    return Settings(environ=environ, file={})


def test_each_directory_comes_before_what_is_in_it(settings: Settings) -> None:
    seen: set[str] = set()
    for file in (*own_files.of_root(settings), *own_files.of_data(settings, settings.db)):
        assert not file.names or os.path.dirname(file.path) in seen
        seen.add(file.path)


def test_the_secret_may_be_elsewhere(tmp_path: Path) -> None:
    elsewhere = Settings(environ={"SVC_JWT_SECRET_FILE": f"{tmp_path}/keys/secret"}, file={})
    assert own_files.secret(elsewhere).path == f"{tmp_path}/keys/secret"


@pytest.mark.parametrize(
    ("kind", "made", "why"),
    [
        ("regular file", "file", ""),
        ("regular file", "link", "is a symbolic link"),
        ("regular file", "directory", "is not a regular file"),
        ("regular file", "pipe", "is not a regular file"),
        ("regular file", "two names", "has 2 names (hard links)"),
        ("regular file", "empty", "has only 0 bytes"),
        ("directory", "directory", ""),
        ("directory", "link", "is a symbolic link"),
        ("directory", "file", "is not a directory"),
        ("socket", "socket", ""),
        ("socket", "file", "is not a socket"),
    ],
)
def test_what_the_service_did_not_make(tmp_path: Path, kind: str, made: str, why: str) -> None:
    path = tmp_path / "it"
    if made == "link":
        path.symlink_to("/etc/passwd")
    elif made == "directory":
        path.mkdir()
    elif made == "pipe":
        os.mkfifo(path)
    elif made == "socket":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
    else:
        path.write_text("" if made == "empty" else "content")
    if made == "two names":
        os.link(path, tmp_path / "other")
    file = OwnFile(str(tmp_path), ("it",), kind, ROOT, 0o600, min_bytes=1 if kind == "regular file" else 0)
    assert own_files.strangeness(file, path.lstat()) == why
