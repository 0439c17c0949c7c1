from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from svc.errors import HostRefused
from svc.host.secret import ensure_secret, read_secret


def test_it_is_made_once_and_for_its_owner(tmp_path: Path) -> None:
    path = str(tmp_path / "secret.key")
    assert ensure_secret(path)
    first = read_secret(path)
    assert len(first) == 64
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert not ensure_secret(path)
    assert read_secret(path) == first
    assert os.listdir(tmp_path) == ["secret.key"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602])
def test_one_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret.key"
    ensure_secret(str(path))
    path.chmod(mode)
    with pytest.raises(HostRefused, match="readable by other users") as refused:
        read_secret(str(path))
    assert refused.value.hint.endswith("svc admin doctor --repair")
    with pytest.raises(HostRefused):
        ensure_secret(str(path))


def make_short(path: str) -> None:
    Path(path).write_text("tooshort\n")
    os.chmod(path, 0o600)


@pytest.mark.parametrize(
    "make", [make_short, os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/hostname", path)]
)
def test_what_is_no_secret_is_refused_and_never_replaced(tmp_path: Path, make: object) -> None:
    path = str(tmp_path / "secret.key")
    make(path)  # type: ignore[operator]
    for use in (read_secret, ensure_secret):
        with pytest.raises(HostRefused):
            use(path)  # type: ignore[operator]
    assert os.listdir(tmp_path) == ["secret.key"]


def test_a_missing_one_says_how_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(HostRefused) as refused:
        read_secret(str(tmp_path / "secret.key"))
    assert "svc admin migrate" in refused.value.hint


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(HostRefused, match="cannot be created"):
        ensure_secret(str(tmp_path / "missing" / "secret.key"))
