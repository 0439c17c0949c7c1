"""Removing below a file root: all of a tree, however deep it is, and nothing else."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agent.file_roots import FileRoots, encoded
from agent.priv_ns import User

from svc_helper.agent.calls import Failure
from svc_helper.agent.files import beneath
from svc_helper.agent.files import remove as fs_remove

DEEP = 3000
EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)


def remove(files: FileRoots, path: str, *, recursive: bool = True) -> int:
    """How many names went."""
    data = files.call("fs.remove", path=path, recursive=recursive)
    assert (data["remaining"], data["kept"]) == (0, [])
    return int(data["removed"])


def make_deep(directory: Path, depth: int) -> None:
    """Directories in each other, deeper than any path may be long, with a file in each hundredth."""
    fd = os.open(directory, os.O_PATH)
    for number in range(depth):
        os.mkdir("d" * 20, dir_fd=fd)
        inner = os.open("d" * 20, os.O_PATH, dir_fd=fd)
        os.close(fd)
        fd = inner
        if number % 100 == 0:
            os.close(os.open("f", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
    os.close(fd)


def test_a_file_a_link_and_whatever_else(files: FileRoots) -> None:
    (files.work / "f").write_text("")
    (files.work / "out").symlink_to(files.outside)
    (files.work / "dangling").symlink_to("nothing")
    os.mkfifo(files.work / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(files.work / "socket"))
    odd = encoded(b"\xff\n-rf")
    (files.work / os.fsdecode(b"\xff\n-rf")).touch()
    for path in ("f", "out", "dangling", "fifo", "socket", odd):
        assert remove(files, path, recursive=path == "out") == 1
    assert list(files.work.iterdir()) == []
    assert files.canary_is_whole()


def test_a_directory_needs_recursive_unless_it_is_empty(files: FileRoots) -> None:
    (files.work / "a/b").mkdir(parents=True)
    assert remove(files, "a/b", recursive=False) == 1
    (files.work / "a/f").write_text("")
    code, message = files.refused("fs.remove", path="a", recursive=False)
    assert (code, message.startswith("a: "), "not empty" in message) == ("conflict", True, True)
    assert remove(files, "a") == 2
    assert list(files.work.iterdir()) == []


def test_a_tree_with_links_out_of_it(files: FileRoots) -> None:
    for name in ("a/b/c", "a/d", "kept"):
        (files.work / name).mkdir(parents=True)
    for number in range(20):
        (files.work / f"a/b/{number}").write_text("x")
        (files.work / f"a/d/out{number}").symlink_to(files.outside)
    (files.work / "a/b/c/up").symlink_to("../../../kept")
    (files.work / "a/b/c/root").symlink_to("/")
    (files.work / "kept/f").write_text("kept")
    os.link(files.outside / "secret", files.work / "a/hard")
    assert remove(files, "a") == 4 + 40 + 2 + 1
    assert [path.name for path in files.work.rglob("*")] == ["kept", "f"]
    assert files.canary_is_whole()


def test_what_is_not_removed(files: FileRoots) -> None:
    (files.work / "f").write_text("")
    (files.work / "out").symlink_to(files.outside)
    (files.work / "loop").symlink_to("loop")
    for path, code in (
        ("", "conflict"),
        ("no", "not_found"),
        ("no/x", "not_found"),
        ("f/x", "conflict"),
        ("out/secret", "forbidden"),
        ("loop/x", "not_found"),
    ):
        for recursive in (True, False):
            found, message = files.refused("fs.remove", path=path, recursive=recursive)
            assert (path, found) == (path, code), message
    assert sorted(os.listdir(files.work)) == ["f", "loop", "out"]
    assert files.canary_is_whole()


def test_a_deep_tree_takes_few_descriptors(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    (files.work / "top").mkdir()
    make_deep(files.work / "top", DEEP)
    before = len(os.listdir("/proc/self/fd"))
    most = [0]
    enter = fs_remove._Removal._enter

    def counting(self: fs_remove._Removal, directory: int, name: bytes) -> None:
        enter(self, directory, name)
        if len(self.levels) % 50 == 0:
            most[0] = max(most[0], len(os.listdir("/proc/self/fd")) - before)

    monkeypatch.setattr(fs_remove._Removal, "_enter", counting)
    assert remove(files, "top") == 1 + DEEP + DEEP // 100
    assert 0 < most[0] < 60
    assert list(files.work.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_wide_tree(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    """More subdirectories than are known at once, and progress on the way."""
    monkeypatch.setattr(fs_remove, "_NAMES_MAX", 50)
    monkeypatch.setattr(fs_remove, "_PROGRESS_S", 0)
    for number in range(330):
        (files.work / f"top/{number}").mkdir(parents=True)
        (files.work / f"top/{number}/f").touch()
        (files.work / f"top/f{number}").touch()
    assert remove(files, "top") == 991
    assert list(files.work.iterdir()) == []
    result = [message["progress"]["removed"] for message in files.received]
    assert result
    assert result == sorted(result)


@contextmanager
def busy(act: Callable[[], None]) -> Iterator[None]:
    """Do something over and over meanwhile."""
    done = threading.Event()

    def loop() -> None:
        while not done.is_set():
            act()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_directory_exchanged_for_a_link(files: FileRoots) -> None:
    """Whoever shares the tree exchanges its directories for links that lead out, over and over."""
    fd = os.open(files.work, os.O_PATH)

    def exchange() -> None:
        for number in range(20):
            try:
                inner = os.open(f"top/{number}", os.O_PATH | os.O_DIRECTORY, dir_fd=fd)
            except OSError:
                continue
            try:
                beneath.rename(inner, b"real", inner, b"link", EXCHANGE)
            except OSError:
                pass
            finally:
                os.close(inner)

    for _ in range(10):
        for number in range(20):
            (files.work / f"top/{number}/real/deeper").mkdir(parents=True)
            (files.work / f"top/{number}/link").symlink_to(files.outside)
        with busy(exchange):
            try:
                remove(files, "top")
            except Failure as failure:
                assert failure.code == "conflict", failure.message
        if (files.work / "top").exists():
            remove(files, "top")
        assert list(files.work.iterdir()) == []
        assert files.canary_is_whole()
    os.close(fd)


def test_a_tree_that_somebody_fills_again(files: FileRoots) -> None:
    (files.work / "top").mkdir()

    def fill() -> None:
        try:
            os.close(os.open(files.work / "top" / os.urandom(4).hex(), os.O_CREAT | os.O_WRONLY, 0o600))
        except OSError:
            pass

    with busy(fill):
        try:
            remove(files, "top")
        except Failure as failure:
            assert (failure.code, "not empty" in failure.message) == ("conflict", True), failure.message


def test_a_parent_that_was_moved_away(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way up from a deep directory leads to where it was moved: there nothing is removed."""
    monkeypatch.setattr(fs_remove, "_OPEN_MAX", 2)
    (files.work / "top/1/2/3/4").mkdir(parents=True)
    (files.work / "elsewhere").mkdir()
    (files.work / "elsewhere/kept").write_text("")
    inspect = fs_remove._Removal._remove_files

    def moving(self: fs_remove._Removal, level: fs_remove._Level) -> None:
        if level.name == b"4":
            os.rename(files.work / "top/1/2", files.work / "elsewhere/2")
        inspect(self, level)

    monkeypatch.setattr(fs_remove._Removal, "_remove_files", moving)
    code, message = files.refused("fs.remove", path="top", recursive=True)
    assert (code, "was being changed" in message, "(2 removed before it)" in message) == (
        "conflict",
        True,
        True,
    )
    assert sorted(os.listdir(files.work / "elsewhere")) == ["2", "kept"]
    assert (files.work / "top/1").is_dir()


def test_a_long_place_in_a_message(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    (files.work / "top").mkdir()
    make_deep(files.work / "top", 500)

    def fails(self: fs_remove._Removal, _directory: int) -> None:
        raise OSError(5, "broken")

    monkeypatch.setattr(fs_remove._Removal, "_leave", fails)
    data = files.call("fs.remove", path="top", recursive=True)
    assert (data["removed"], data["remaining"]) == (5, 501)
    assert data["kept"][0] == {
        "path": "top/.../" + "d" * 20,
        "reason": "file system error: Input/output error",
    }


def test_a_caller_that_goes_ends_it(files: FileRoots) -> None:
    for number in range(1000):
        (files.work / f"top/{number}").mkdir(parents=True)
    assert files.refused("fs.remove", path="top", recursive=True, timeout_s=0)[0] == "timeout"
    assert len(os.listdir(files.work / "top")) > 500


@pytest.mark.root
@pytest.mark.usefixtures("empty_work")
def test_mount_points_are_not_crossed(user: User) -> None:
    agent = user.start_agent()
    inside = ["nsenter", f"--target={user.namespace.holder.pid}", "--mount"]
    where = f"{user.home}/work/top/mnt"
    user.run(
        "sh", "-c", "mkdir -p ~/work/top/mnt ~/work/top/file; echo x > ~/work/bound; touch ~/work/top/file/b"
    )
    subprocess.run([*inside, "mount", "-t", "tmpfs", "-o", f"uid={user.uid}", "none", where], check=True)
    subprocess.run(
        [*inside, "mount", "--bind", f"{user.home}/work/bound", f"{user.home}/work/top/file/b"], check=True
    )
    try:
        user.run("sh", "-c", "echo x > ~/work/top/mnt/f")
        for path in ("top/mnt", "top/file/b"):
            answer = agent.call("fs.remove", root="work", path=path, recursive=True)
            assert (answer.code, "mount point" in answer.message["message"]) == ("conflict", True), answer
        for path, kept in (("top/file", ["top/file/b"]), ("top", ["top/file/b", "top/mnt"])):
            data = agent.call("fs.remove", root="work", path=path, recursive=True).data
            assert (data["removed"], data["remaining"]) == (0, len(kept))
            assert sorted(row["path"] for row in data["kept"]) == kept
        assert user.run("cat", f"{where}/f", f"{user.home}/work/bound").stdout == "x\nx\n"
        assert agent.call("fs.remove", root="work", path="top/mnt/f", recursive=False).data["removed"] == 1
    finally:
        subprocess.run([*inside, "umount", where, f"{user.home}/work/top/file/b"], check=True)
        assert agent.call("fs.remove", root="work", path="top", recursive=True).data
        user.run("rm", f"{user.home}/work/bound")
        agent.close()


def test_what_cannot_be_removed_is_listed_and_the_rest_removed(
    files: FileRoots, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that remain are met again by each reading of a directory, and counted once."""
    monkeypatch.setattr(fs_remove, "_NAMES_MAX", 20)
    for number in range(60):
        (files.work / f"top/{number}").mkdir(parents=True)
        (files.work / f"top/{number}/f").touch()
        (files.work / f"top/{number}/kept").touch()
    unlink = os.unlink

    def refusing(name: bytes, *, dir_fd: int) -> None:
        if name == b"kept":
            raise PermissionError(errno.EPERM, "immutable")
        unlink(name, dir_fd=dir_fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", refusing)
        data = files.call("fs.remove", path="top", recursive=True)
    assert (data["removed"], data["remaining"], len(data["kept"])) == (60, 60, fs_remove._LISTED_MAX)
    assert set(data["kept"][0]) == {"path", "reason"}
    assert sorted(path.name for path in files.work.rglob("*") if path.is_file()) == ["kept"] * 60
    assert remove(files, "top") == 60 + 60 + 1


def test_a_removal_ends_when_too_much_remains(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs_remove, "_KEPT_MAX", 5)
    (files.work / "top").mkdir()
    for number in range(20):
        (files.work / f"top/{number}").touch()

    def refusing(_name: bytes, *, dir_fd: int) -> None:
        raise PermissionError(errno.EPERM, "immutable")

    monkeypatch.setattr(os, "unlink", refusing)
    data = files.call("fs.remove", path="top", recursive=True)
    assert (data["removed"], data["remaining"]) == (0, 5)


def test_few_names_are_known_however_many_there_are_at_each_depth(
    files: FileRoots, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a container that shares the directory fills the agent's memory."""
    monkeypatch.setattr(fs_remove, "_NAMES_MAX", 100)
    place = files.work / "a"
    for _ in range(12):
        for number in range(120):
            (place / f"d{number}").mkdir(parents=True)
        place = place / "d0"
    most = 0
    enter = fs_remove._Removal._enter

    def watched(removal: fs_remove._Removal, directory: int, name: bytes) -> None:
        nonlocal most
        most = max(most, sum(len(level.pending) for level in removal.levels))
        enter(removal, directory, name)

    monkeypatch.setattr(fs_remove._Removal, "_enter", watched)
    assert remove(files, "a") == 12 * 120 + 1
    assert most <= 100 + 12 * 16
    assert list(files.work.iterdir()) == []


def test_a_bind_mount_of_the_same_file_system(files: FileRoots, needs_root: None) -> None:
    """What is mounted into the tree is not removed, although its device number is the same."""
    (files.work / "top/mnt").mkdir(parents=True)
    mount = str(files.work / "top/mnt")
    subprocess.run(["mount", "--bind", str(files.outside), mount], check=True)
    try:
        code, message = files.refused("fs.remove", path="top/mnt", recursive=True)
        assert (code, "mount point" in message) == ("conflict", True), message
        kept = files.call("fs.remove", path="top", recursive=True)["kept"]
        assert kept == [{"path": "top/mnt", "reason": "a mount point, which is not removed"}]
        assert files.canary_is_whole()
    finally:
        subprocess.run(["umount", "-l", mount], check=True)
