"""The walk through a tree: each thing once, a directory before what is in it, and never outside."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent.file_roots import FileRoots, encoded

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import walk as fs_walk
from svc_helper.agent.files.walk import Links, Walk


@pytest.fixture
def walk(files: FileRoots) -> Iterator[Walk]:
    """A walk through `work`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    base = os.open(files.work, os.O_RDONLY)
    with ours, theirs:
        created = Walk(Call("rid", "fs.archive", 60, theirs), base, files.namespace())
        yield created
    os.close(base)


def paths(walk: Walk) -> list[bytes]:
    """Everything that is met."""
    return [found.path for found in walk]


def test_everything_once_and_together(files: FileRoots, walk: Walk) -> None:
    names = {b""}
    for number in range(300):
        path = b"/".join(b"%d" % digit for digit in (number % 3, number % 7, number % 5))
        place = os.fsencode(files.work) + b"/" + path
        os.makedirs(place, exist_ok=True)
        with open(place + b"/\xff%d" % number, "wb"):
            names |= {path[: 2 * depth - 1] for depth in (1, 2, 3)} | {path + b"/\xff%d" % number}
    met = paths(walk)
    assert (len(met), set(met)) == (len(names), names)
    assert (walk.skipped, walk.gone) == (0, 0)
    left: set[bytes] = set()  # directories whose contents are over
    around: list[bytes] = []
    for path in met[1:]:
        parent = path.rpartition(b"/")[0]
        assert parent not in left and (not parent or parent in met[: met.index(path)])
        while around and around[-1] != parent:
            left.add(around.pop())
        around.append(parent) if not around else None
        if os.path.isdir(os.fsencode(files.work) + b"/" + path):
            around.append(path)


def test_what_is_left_out(files: FileRoots, walk: Walk) -> None:
    os.mkfifo(files.work / "fifo\n")
    (files.work / ".svc-upload-0123456789abcdef").write_text("a draft, which is not there at all")
    (files.work / "link").symlink_to(files.outside)
    (files.work / "dangling").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(files.work / "socket"))
        assert sorted(paths(walk)) == [b"", b"dangling", b"link"]
    assert walk.skipped == 2
    assert sorted(walk.skipped_names) == [encoded("fifo\n"), "socket"]


def test_names_of_what_is_left_out_fit_a_message(files: FileRoots, walk: Walk) -> None:
    for number in range(100):
        os.mkfifo(os.fsencode(files.work) + b"/" + b"\xff" * 250 + b"%d" % number)
    paths(walk)
    assert walk.skipped == 100
    assert len(walk.skipped_names) == 20 and sum(map(len, walk.skipped_names)) <= 16 * 1024


def test_another_mount(files: FileRoots, walk: Walk, needs_root: None) -> None:
    """Of a directory, and of a file of the same file system."""
    for name in ("tmpfs", "bind"):
        (files.work / name).mkdir()
    (files.work / "file").write_text("below")
    subprocess.run(["mount", "-t", "tmpfs", "none", str(files.work / "tmpfs")], check=True)
    subprocess.run(["mount", "--bind", str(files.outside), str(files.work / "bind")], check=True)
    subprocess.run(["mount", "--bind", str(files.outside / "secret"), str(files.work / "file")], check=True)
    try:
        found = {each.path: walk.open_file(each) for each in walk}
    finally:
        for name in ("tmpfs", "bind", "file"):
            subprocess.run(["umount", "-l", str(files.work / name)], check=True)
    assert found == {b"": None, b"file": None}
    assert sorted(walk.skipped_names) == ["bind", "file", "tmpfs"]


def test_a_tree_as_deep_as_paths_are_long(files: FileRoots, walk: Walk) -> None:
    """And deeper; with one directory open at a time."""
    place = os.open(files.work, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=place)
        deeper = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = deeper
    os.close(place)
    highest = 0
    deepest = b""
    for found in walk:
        highest, deepest = max(highest, found.directory), max(deepest, found.path)
    assert len(deepest) > 3000 and walk.skipped == 1
    assert highest < walk.base + 20
    subprocess.run(["rm", "-rf", str(files.work / "d")], check=True)


def test_a_directory_exchanged_for_a_link(files: FileRoots, walk: Walk) -> None:
    """While the walk is in the first: the link is not followed, whatever was a directory is over."""
    for name in ("one", "two"):
        (files.work / name).mkdir()
        (files.work / name / "file").write_text("x")
    met = []
    for found in walk:
        met.append(found.path)
        if found.path in (b"one", b"two"):
            other = files.work / ("two" if found.path == b"one" else "one")
            if not other.is_symlink():
                other.rename(files.directory / "away")
                other.symlink_to(files.outside)
    assert len(met) == 3 and walk.gone == 1
    assert b"secret" not in b"".join(met)


def test_a_directory_removed_before_it_is_entered(files: FileRoots, walk: Walk) -> None:
    for name in ("one", "two"):
        (files.work / name).mkdir()
    met = []
    for found in walk:
        met.append(found.path)
        for name in ("one", "two"):
            if met[-1] in (b"one", b"two") and name.encode() not in met:
                (files.work / name).rmdir()
    assert len(met) == 2 and walk.gone == 1


def test_a_caller_that_goes_ends_it(files: FileRoots) -> None:
    for number in range(1000):
        (files.work / str(number)).touch()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()
    base = os.open(files.work, os.O_RDONLY)
    with theirs, pytest.raises(Failure, match="gone"):
        paths(Walk(Call("rid", "fs.archive", 60, theirs), base, files.namespace()))
    os.close(base)


def test_files_with_several_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs_walk, "_LINKS_MAX", 2)
    links = Links()
    facts = []
    for number in range(3):
        (tmp_path / f"{number}").touch()
        os.link(tmp_path / f"{number}", tmp_path / f"{number}b")
        facts.append((tmp_path / f"{number}b").stat())
        assert links.find(facts[-1]) is None
        links.add(facts[-1], b"name%d" % number)
    assert [links.find(each) for each in facts] == [b"name0", b"name1", None]
    (tmp_path / "1b").unlink()
    assert links.find((tmp_path / "1").stat()) is None, "it has one name now"
