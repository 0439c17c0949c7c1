"""Making directories and moving what is below a file root, and nothing anywhere else."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from agent.file_roots import FileRoots, encoded
from agent.priv_ns import User


def mkdir(files: FileRoots, path: str, *, parents: bool = False) -> Any:
    """The row of a new directory."""
    return files.call("fs.mkdir", path=path, parents=parents)["entry"]


def move(files: FileRoots, path: str, to: str, *, replace: bool = False) -> Any:
    """The row of what was moved."""
    return files.call("fs.move", path=path, to=to, replace=replace)["entry"]


def tree(directory: Path) -> list[str]:
    """All that is below a directory."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_a_directory(files: FileRoots) -> None:
    before = os.umask(0o077)
    try:
        row = mkdir(files, "a")
        (files.work / "a").chmod(0o2770)
        mkdir(files, "a/b")
        mkdir(files, encoded(b"\xff\n-rf"))
    finally:
        os.umask(before)
    assert (row[0], row[1], row[4]) == ("a", "directory", 0o755), "whatever the agent's umask is"
    assert stat.S_IMODE((files.work / "a/b").stat().st_mode) == 0o2755, "the group goes down with it"
    assert b"\xff\n-rf" in os.listdir(os.fsencode(files.work))


def test_with_what_is_above_it(files: FileRoots) -> None:
    assert mkdir(files, "a/b/c/d", parents=True)[:2] == ["d", "directory"]
    assert mkdir(files, "a/b/c/d", parents=True)[0] == "d", "it may be there"
    assert mkdir(files, "", parents=True)[:2] == ["", "directory"]
    (files.work / "a/b/up").symlink_to("..")
    mkdir(files, "a/b/up/e/f", parents=True)
    assert tree(files.work) == ["a", "a/b", "a/b/c", "a/b/c/d", "a/b/up", "a/e", "a/e/f"]
    deep = "/".join(["d" * 7] * 500)
    mkdir(files, deep, parents=True)
    assert (files.work / deep).is_dir()


def test_directories_that_are_not_made(files: FileRoots) -> None:
    (files.work / "f").write_text("")
    for name, target in (("out", files.outside), ("dangling", "nothing"), ("in", "."), ("loop", "loop")):
        (files.work / name).symlink_to(target)
    before = tree(files.work)
    for path, parents, code in (
        ("", False, "exists"),
        ("f", False, "exists"),
        ("f", True, "exists"),
        ("in", False, "exists"),
        ("dangling", False, "exists"),
        ("dangling", True, "exists"),
        ("dangling/x", True, "exists"),
        ("out", True, "forbidden"),
        ("out/x", False, "forbidden"),
        ("out/x", True, "forbidden"),
        ("loop/x", True, "not_found"),
        ("f/x", True, "exists"),
        ("f/x", False, "conflict"),
        ("no/x", False, "not_found"),
    ):
        found, message = files.refused("fs.mkdir", path=path, parents=parents)
        assert (path, parents, found) == (path, parents, code), message
    assert tree(files.work) == before
    assert not (files.work / "nothing").exists()
    assert files.canary_is_whole()


def test_read_only_roots(files: FileRoots) -> None:
    for verb, args in (
        ("fs.mkdir", {"path": "x", "parents": True}),
        ("fs.move", {"path": "model", "to": "m", "replace": True}),
        ("fs.remove", {"path": "model", "recursive": True}),
    ):
        for root in ("fixed", "absent"):
            code, message = files.refused(verb, root=root, **args)
            assert (code, message) == ("forbidden", f"the file root {root} is read-only")
    assert tree(files.directory / "fixed") == ["model"]
    assert not (files.directory / "absent").exists()


def test_moving(files: FileRoots) -> None:
    (files.work / "a/b").mkdir(parents=True)
    (files.work / "f").write_text("12345")
    os.utime(files.work / "f", ns=(1, 1_000_000_007))
    (files.work / "out").symlink_to(files.outside / "secret")
    row = move(files, "f", encoded("a/b/new \xe4"))
    assert row[:4] == [encoded("new \xe4"), "file", 5, 1_000_000_007]
    assert move(files, "a/b", "c")[:2] == ["c", "directory"]
    assert move(files, "out", "c/out")[1] == "symlink", "a link itself is moved"
    assert tree(files.work) == ["a", "c", "c/new \xe4", "c/out"]
    assert move(files, "c/out", "c/out", replace=True)[0] == "out"
    assert files.canary_is_whole()


def test_nothing_is_replaced_unless_it_may_be(files: FileRoots) -> None:
    for name in ("f", "g"):
        (files.work / name).write_text(name)
    (files.work / "out").symlink_to(files.outside / "secret")
    for to in ("g", "out", "f"):
        assert files.refused("fs.move", path="f", to=to, replace=False)[0] == "exists"
    move(files, "f", "g", replace=True)
    assert (files.work / "g").read_text() == "f"
    move(files, "g", "out", replace=True)
    assert (files.work / "out").read_text() == "f"
    assert not (files.work / "out").is_symlink(), "the link is replaced, not what it leads to"
    assert files.canary_is_whole()


def test_where_a_directory_is(files: FileRoots) -> None:
    (files.work / "d").mkdir()
    (files.work / "f").write_text("")
    (files.work / "link").symlink_to("d")
    into = "a directory of that name exists already; a / at its end moves into it"
    assert files.refused("fs.move", path="f", to="d", replace=False) == ("exists", f"d: {into}")
    assert "a / at its end moves into it" in files.refused("fs.move", path="f", to="d", replace=True)[1]
    assert "a file of that name" in files.refused("fs.move", path="f", to="link", replace=False)[1]
    assert move(files, "f", "d/f")[0] == "f"


def test_a_directory_is_replaced_by_an_empty_ones_place_only(files: FileRoots) -> None:
    for name in ("a", "full/x", "empty"):
        (files.work / name).mkdir(parents=True)
    (files.work / "f").write_text("")
    for path, to, arguments in (
        ("f", "a", "be replaced with a file"),
        ("a", "f", "be replaced with a directory"),
        ("a", "full", "not empty"),
        ("full", "full/x/y", "into itself"),
        ("full", "full/x", "into itself"),
    ):
        code, message = files.refused("fs.move", path=path, to=to, replace=True)
        assert (code, arguments in message) == ("conflict", True), (path, to, message)
    move(files, "full", "empty", replace=True)
    assert tree(files.work) == ["a", "empty", "empty/x", "f"]


def test_two_names_of_one_file(files: FileRoots) -> None:
    """The kernel does nothing, and calls it done."""
    (files.work / "f").write_text("")
    os.link(files.work / "f", files.work / "g")
    code, message = files.refused("fs.move", path="f", to="g", replace=True)
    assert (code, message) == ("conflict", "g: another name of the same file")
    assert tree(files.work) == ["f", "g"]


def test_moves_that_are_not_made(files: FileRoots) -> None:
    (files.work / "f").write_text("")
    (files.work / "a").mkdir()
    (files.work / "out").symlink_to(files.outside)
    for path, to, code in (
        ("", "a/x", "conflict"),
        ("f", "", "conflict"),
        ("no", "x", "not_found"),
        ("no", "f", "not_found"),
        ("f", "no/x", "not_found"),
        ("f", "f/x", "conflict"),
        ("f", "out/x", "forbidden"),
        ("out/secret", "x", "forbidden"),
    ):
        found, message = files.refused("fs.move", path=path, to=to, replace=True)
        assert (path, to, found) == (path, to, code), message
    assert tree(files.work) == ["a", "f", "out"]
    assert files.canary_is_whole()


@pytest.mark.root
@pytest.mark.usefixtures("empty_work")
def test_another_file_system(user: User) -> None:
    """Within a root there may be one: nothing is copied, and a mount point stays what it is."""
    agent = user.start_agent()
    inside = ["nsenter", f"--target={user.namespace.holder.pid}", "--mount"]
    assert agent.call("fs.mkdir", root="work", path="mnt", parents=False).data
    where = f"{user.home}/work/mnt"
    user.run("sh", "-c", "echo x > ~/work/f")
    subprocess.run([*inside, "mount", "-t", "tmpfs", "-o", f"uid={user.uid}", "none", where], check=True)
    try:
        for path, to, arguments in (("f", "mnt/f", "another file system"), ("mnt", "moved", "mount point")):
            answer = agent.call("fs.move", root="work", path=path, to=to, replace=True)
            assert (answer.code, arguments in answer.message["message"]) == ("conflict", True), answer
        user.run("sh", "-c", "echo x > ~/work/mnt/f")
        assert agent.call("fs.move", root="work", path="mnt/f", to="mnt/g", replace=False).data
    finally:
        subprocess.run([*inside, "umount", where], check=True)
        agent.close()


@pytest.mark.root
@pytest.mark.usefixtures("empty_work")
def test_what_the_user_may_not_change(user: User) -> None:
    user.run("sh", "-c", "cd && mkdir -p work/shut/in work/locked && echo x > work/f && chmod 0 work/shut"
             " && chmod 500 work/locked")  # fmt: skip
    agent = user.start_agent()
    try:
        for verb, args in (
            ("fs.mkdir", {"path": "shut/x", "parents": True}),
            ("fs.mkdir", {"path": "locked/x", "parents": False}),
            ("fs.move", {"path": "f", "to": "locked/f", "replace": False}),
            ("fs.move", {"path": "shut/in", "to": "in", "replace": False}),
            ("fs.remove", {"path": "shut", "recursive": True}),
        ):
            answer = agent.call(verb, root="work", **args)
            assert answer.code == "forbidden", answer
            assert "the Linux user may not do that" in answer.message["message"]
    finally:
        agent.close()


def test_no_name_of_a_draft_is_given(files: FileRoots) -> None:
    """It would not be listed, and the next upload would remove it as a dead agent's."""
    (files.work / "a").write_text("mine")
    code, message = files.refused("fs.move", path="a", to=".svc-upload-0123456789abcdef", replace=False)
    assert (code, "reserved for svc" in message) == ("conflict", True)
    assert (files.work / "a").read_text() == "mine"
