"""The way to the skills directory: whose directories and links are used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.cli.skill import directories
from svc.errors import FileRefused

STRANGER = 65534


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a/b").mkdir(parents=True)
    return tmp_path


def opened(path: object, new: int = 0) -> Path:
    """Where the directory is that was opened for a path."""
    with directories.opened(str(path), new) as directory:
        return Path(os.readlink(f"/proc/self/fd/{directory}"))


def refusal(path: object, new: int = 0) -> str:
    with pytest.raises(FileRefused) as caught, directories.opened(str(path), new):
        pass
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize("path", ["a/b", "./a//b/", "a/../a/b/.", "{}/a/b"])
def test_every_way_of_writing_a_path(place: Path, path: str) -> None:
    assert opened(path.format(place)) == place / "a/b"


def test_the_root_directory() -> None:
    assert opened("/") == Path("/")


def test_only_the_last_directories_are_created(place: Path) -> None:
    assert opened("a/c/d", new=2) == place / "a/c/d"
    assert refusal("a/x/y/z", new=2) == f"{place}/a/x does not exist"
    assert refusal("a/x") == f"{place}/a/x does not exist"
    assert sorted(os.listdir("a")) == ["b", "c"]


def test_what_was_created_is_removed_after_an_error(place: Path) -> None:
    with pytest.raises(KeyError), directories.opened("a/c/d", 2):
        raise KeyError
    assert os.listdir("a") == ["b"]
    with pytest.raises(KeyError), directories.opened("a/c/d", 2):
        Path("a/c/of-another").touch()
        raise KeyError
    assert os.listdir("a/c") == ["of-another"]


def test_own_links_above_are_followed(place: Path) -> None:
    Path("relative").symlink_to("a")
    Path("absolute").symlink_to(place / "relative")
    Path("up").symlink_to("a/../a")
    for name in ("relative", "absolute", "up"):
        assert opened(f"{name}/b") == place / "a/b"


def test_a_link_as_the_directory_itself_is_refused(place: Path) -> None:
    Path("link").symlink_to("a/b")
    assert refusal("link") == f"refusing to write through the link {place}/link to a/b"
    Path("dangling").symlink_to("nowhere")
    assert "the link" in refusal("dangling", new=1)
    assert not Path("nowhere").exists()


def test_links_in_a_circle(place: Path) -> None:
    Path("one").symlink_to("two")
    Path("two").symlink_to("one")
    assert refusal("one/b").startswith("too many links")


def test_what_is_no_directory(place: Path) -> None:
    Path("file").touch()
    os.mkfifo("pipe")
    for name in ("file", "pipe", "file/b"):
        assert refusal(name, new=1).endswith("is not a directory")
    assert "null" in refusal("a/\0b")


def test_a_directory_that_is_open_to_everybody(place: Path) -> None:
    Path("a").chmod(0o777)
    assert refusal("a/b") == f"refusing to use {place}/a: every user can write there"
    Path("a").chmod(0o1777)  # as /tmp
    assert opened("a/b") == place / "a/b"


def test_directories_and_links_of_others(place: Path, needs_root: None) -> None:
    os.chown("a/b", STRANGER, STRANGER)
    stranger = directories.user_name(STRANGER)
    assert refusal("a/b") == f"refusing to use {place}/a/b: it belongs to {stranger}, not to root"
    os.chown("a/b", 0, 0)
    os.chown("a", STRANGER, STRANGER)
    assert refusal("a/b").startswith(f"refusing to use {place}/a: it belongs to")
    os.chown("a", 0, 0)
    Path("link").symlink_to("a")
    os.chown("link", STRANGER, STRANGER, follow_symlinks=False)
    assert refusal("link/b").startswith(f"refusing to use the link {place}/link: it belongs to {stranger}")


def test_a_user_without_a_name() -> None:
    assert directories.user_name(4_000_000) == "uid 4000000"
