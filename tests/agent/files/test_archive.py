"""Archives of directories: what GNU tar, bsdtar and Python unpack is what was there."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.file_roots import FileRoots, encoded
from agent.priv_ns import Agent, User, proportional_set_kib
from agent.transfers import Transfer

from svc_helper.agent.files import archive, compressor
from svc_helper.wire import protocol


def archived(files: FileRoots, path: str = "", members_max: int = 100_000) -> tuple[bytes, dict[str, Any]]:
    """The archive and what the agent says of it at last."""
    with Transfer(files, "fs.archive", path=path, members_max=members_max) as transfer:
        counted = transfer.next_message()
        transfer.send_message(go=True)
        content = transfer.receive()
        data = transfer.end()
        assert {name: data[name] for name in ("members", "bytes")} == {
            name: counted[name] for name in ("members", "bytes")
        }
        return content, data


def children() -> set[int]:
    """The processes that this one has started."""
    found = [path.read_text().split() for path in Path("/proc/self/task").glob("*/children")]
    return {int(pid) for pids in found for pid in pids}


def facts(top: Path) -> dict[bytes, tuple[object, ...]]:
    """Everything below a directory: what an archive keeps of it."""
    found: dict[bytes, tuple[object, ...]] = {}
    for directory, below, names in os.walk(os.fsencode(top)):
        for name in [*below, *names, b"."]:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            content: object = None
            if os.path.islink(path):
                found[os.path.relpath(path, os.fsencode(top))] = ("link", os.readlink(path))
                continue
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    content = file.read()
            key = os.path.relpath(path, os.fsencode(top))
            links = status.st_nlink if content is not None else 0
            found[key] = (content, status.st_mode, int(status.st_mtime), status.st_uid, links)
    return found


@pytest.fixture
def tree(files: FileRoots) -> Path:
    """A tree with a bit of everything that an archive takes."""
    top = files.work / "tree"
    (top / "empty").mkdir(parents=True)
    (top / "a/b/c").mkdir(parents=True, mode=0o711)
    long = top / ("l" * 200) / ("o" * 200)
    long.mkdir(parents=True)
    (long / "file").write_text("in a long path")
    (long / "link").symlink_to("t" * 300)
    for number, size in enumerate((0, 1, 511, 512, 513, 100_000, 1 << 20, (1 << 20) + 1, 3_000_003)):
        path = top / f"a/{number}"
        path.write_bytes(os.urandom(size))
        path.chmod(0o640 + number % 8)
        os.utime(path, (number, 1_500_000_000 - number))
    for name in (b"\xff\xfe", b"new\nline", b"-rf", b"\x1b[31m", "\u202e".encode()):
        with open(os.fsencode(top) + b"/" + name, "wb") as file:
            file.write(name)
    (top / "a/b/same").write_text("one file")
    for name in ("again", "empty/and again"):
        os.link(top / "a/b/same", top / name)
    (top / "dangling").symlink_to("/nowhere/\n")
    (top / "program").write_text("#!")
    (top / "program").chmod(0o4755)
    (top / "empty").chmod(0o555)
    return top


@pytest.mark.parametrize("program", ["igzip", "pigz", "gzip"])
@pytest.mark.parametrize("reader", [["tar", "--warning=no-timestamp"], ["bsdtar"], []], ids=str)
def test_what_was_there(
    files: FileRoots, tree: Path, reader: list[str], program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(program) is None or (reader and shutil.which(reader[0]) is None):
        pytest.skip(f"needs {program} and {reader}")
    monkeypatch.setattr(compressor, "PROGRAMS", (f"/usr/bin/{program}",))
    content, data = archived(files, "tree")
    assert (data["changed"], data["vanished"]) == (0, 0)
    out = files.directory / "out"
    out.mkdir()
    if reader:
        argv = [*reader, "-xpzf", "-", "-C", str(out)]
        done = subprocess.run(argv, input=content, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
    else:
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            tar.extractall(out)
    assert os.listdir(out) == ["tree"]
    expected = facts(tree)
    assert facts(out / "tree") == expected
    assert data["members"] == len(expected)


def test_a_root_and_a_link_to_a_directory(files: FileRoots, tree: Path) -> None:
    (files.work / "link").symlink_to("tree/a")
    for path, first in (("", "work"), ("link", "link"), ("tree/a", "a")):
        with tarfile.open(fileobj=io.BytesIO(archived(files, path)[0])) as tar:
            assert {name.split("/")[0] for name in tar.getnames()} == {first}


def test_what_is_refused(files: FileRoots) -> None:
    (files.work / "file").touch()
    os.mkfifo(files.work / "fifo")
    (files.work / "out").symlink_to(files.outside)
    for path, code in (("file", "conflict"), ("fifo", "conflict"), ("x", "not_found"), ("out", "forbidden")):
        with Transfer(files, "fs.archive", path=path, members_max=5) as transfer:
            assert transfer.code() == code
            assert transfer.receive() == b""


def test_what_is_left_out_is_said(files: FileRoots, tree: Path) -> None:
    os.mkfifo(tree / "fifo\n")
    (files.work / "tree/out").symlink_to(files.outside)
    with Transfer(files, "fs.archive", path="tree", members_max=1000) as transfer:
        said = transfer.next_message()
    assert (said["skipped"], said["skipped_names"]) == (1, [encoded("fifo\n")])
    content, data = archived(files, "tree")
    assert b"the canary" not in gzip.decompress(content)
    assert data["vanished"] == 0


def test_the_count_ends_where_nobody_wants_more(files: FileRoots) -> None:
    for number in range(50):
        (files.work / f"{number}").touch()
    with Transfer(files, "fs.archive", path="", members_max=10) as transfer:
        assert transfer.next_message()["members"] == 11
        transfer.hang_up()
        assert transfer.code() == "cancelled"


def test_more_bytes_than_the_app_takes_as_a_number(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few files of holes, where a file may be of any size: too large, and not nonsense."""
    monkeypatch.setattr(archive, "_size", lambda *_: 2**62)
    for number in range(3):
        (files.work / f"{number}").touch()
    with Transfer(files, "fs.archive", path="", members_max=10) as transfer:
        assert transfer.next_message()["bytes"] == 2**63 - 1
        transfer.hang_up()
        assert transfer.code() == "cancelled"


def test_a_tree_that_grows_beyond(files: FileRoots) -> None:
    with Transfer(files, "fs.archive", path="", members_max=10) as transfer:
        assert transfer.next_message()["members"] == 1
        for number in range(50):
            (files.work / f"{number}").touch()
        transfer.send_message(go=True)
        transfer.receive()
        assert transfer.code() == "too_large"


def test_what_changes_after_the_count(files: FileRoots, tree: Path) -> None:
    """The archive is whole all the same: with what is there when its turn comes."""
    with Transfer(files, "fs.archive", path="tree", members_max=1000) as transfer:
        members = transfer.next_message()["members"]
        shutil.rmtree(tree / "a/b")
        (tree / "a/3").write_text("shorter")
        (tree / "a/8").unlink()
        (tree / "a/8").symlink_to(files.outside / "secret")
        transfer.send_message(go=True)
        content = transfer.receive()
        data = transfer.end()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        names = tar.getnames()
        assert len(names) == data["members"] == members - 3
        assert tar.getmember("tree/a/3").size == 7
        assert tar.getmember("tree/a/8").issym()
    assert b"the canary" not in gzip.decompress(content)


def test_a_great_file_that_becomes_shorter(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its header: zeros, and it is counted."""
    great = files.work / "great"
    great.write_bytes(b"x" * 5_000_000)
    real_header = archive.tar_stream.header

    def header(member: Any) -> bytes:
        if member.size == 5_000_000:
            os.truncate(great, 1_500_000)
        return real_header(member)

    monkeypatch.setattr(archive.tar_stream, "header", header)
    content, data = archived(files)
    assert (data["changed"], data["members"]) == (1, 2)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        file = tar.extractfile("work/great")
        assert file is not None and file.read() == b"x" * 1_500_000 + bytes(3_500_000)


def test_holes(files: FileRoots) -> None:
    sparse = files.work / "sparse"
    with sparse.open("wb") as file:
        for at in (0, 5_000_000, 40_000_000):
            file.seek(at)
            file.write(b"data" * 5000)
        file.truncate(60_000_001)
    content, data = archived(files)
    assert (data["bytes"], data["changed"]) == (60_000_001, 0)
    assert len(content) < 1_000_000
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        found = tar.extractfile("work/sparse")
        assert found is not None and found.read() == sparse.read_bytes()


@pytest.mark.parametrize("way", ["cancel", "hang up", "close the stream"])
def test_a_caller_that_goes_ends_it(files: FileRoots, way: str) -> None:
    """And the compressor, at once, though the archive of a hole has no end."""
    with (files.work / "hole").open("wb") as file:
        file.truncate(2**40)
    (files.work / "noise").write_bytes(os.urandom(5_000_000))
    before = children()
    with Transfer(files, "fs.archive", path="", members_max=10) as transfer:
        transfer.next_message()
        transfer.send_message(go=True)
        transfer.receive(1)
        if way == "cancel":
            transfer.send_message(cancel=True)
        elif way == "hang up":
            transfer.hang_up()
        else:
            transfer.close_stream()
        assert transfer.code() == "cancelled"
    assert children() <= before


def test_a_compressor_that_is_killed(files: FileRoots) -> None:
    (files.work / "noise").write_bytes(os.urandom(20_000_000))
    before = children()
    with Transfer(files, "fs.archive", path="", members_max=10) as transfer:
        transfer.next_message()
        transfer.send_message(go=True)
        transfer.receive(1)
        for pid in children() - before:
            os.kill(pid, 9)
        transfer.receive()
        assert transfer.code() == "failed"


@pytest.fixture
def agent(user: User) -> Iterator[Agent]:
    """An agent of a real user's."""
    created = user.start_agent()
    yield created
    created.close()


def archive_of(agent: Agent, path: str) -> tuple[dict[str, Any], bytes, dict[str, Any]]:
    """What a real agent says, gives and answers."""
    pending = agent.begin("fs.archive", root="work", path=path, members_max=10_000, stream=True)
    said = protocol.receive(pending.sock).message["progress"]
    protocol.send(pending.sock, {"go": True})
    with pending.stream, pending.stream.makefile("rb") as file:
        content = file.read()
    return said, content, pending.answer().data


@pytest.mark.usefixtures("empty_work")
def test_a_real_agent(user: User, agent: Agent) -> None:
    """What its user may not read is left out and said; its owner has a name; it stays small."""
    script = (
        "mkdir -p ~/work/v/closed/x && cd ~/work/v && echo a >file && echo b >secret && chmod 0 secret closed"
    )
    user.run("sh", "-c", script)
    said, content, data = archive_of(agent, "v")
    assert (said["members"], said["skipped"], sorted(said["skipped_names"])) == (2, 2, ["closed", "secret"])
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert sorted(tar.getnames()) == ["v", "v/file"]
        member = tar.getmember("v/file")
    assert (member.uid, member.uname) == (user.uid, user.name)
    assert data == {"members": 2, "bytes": 2, "changed": 0, "vanished": 0}
    user.run("sh", "-c", "cd ~/work/v; for i in $(seq 300); do head -c 700000 /dev/zero >$i; ln $i l$i; done")
    assert archive_of(agent, "v")[2]["members"] == 602
    assert proportional_set_kib(agent.pid()) < 10_000


def test_sockets_are_left_out(files: FileRoots) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(files.work / "socket"))
        content, data = archived(files)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert tar.getnames() == ["work"]
    assert data["vanished"] == 0
