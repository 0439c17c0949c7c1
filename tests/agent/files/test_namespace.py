"""Files of a container's other users: listed, read, archived and removed as root of the user's namespace."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.priv_ns import Agent, Answer, User

from svc_helper.wire import protocol

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("empty_work")]

PAGE = {"root": "work", "offset": 0, "limit": 100}
INSIDE = 999  # a container's user, such as postgres


@pytest.fixture
def agent(user: User) -> Iterator[Agent]:
    """An agent of a real user."""
    created = user.start_agent()
    yield created
    created.close()


@pytest.fixture
def work(user: User) -> Path:
    """A database's directory: closed, with a closed file, a link, a pipe and a directory in it."""
    work = Path(user.home) / "work"
    user.run("sh", "-c", "mkdir -p ~/work/top && echo mine > ~/work/top/mine")
    data = work / "top/data"
    (data / "base").mkdir(parents=True)
    (data / "PG_VERSION").write_text("15\n")
    (data / "base/1").write_text("x" * 1000)
    (data / "link").symlink_to("base/1")
    (data / "out").symlink_to("/etc/shadow")
    os.mkfifo(data / "fifo")
    uid = user.subordinate()[INSIDE - 1]
    for path in (data, *data.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() else 0o600)
    return work


def ended(user: User) -> bool:
    """Whether no process of ours is left in the namespace, after some time at most."""
    deadline = time.monotonic() + 30
    while any("namespace_program" in line for line in user.processes().values()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def read(agent: Agent, path: str) -> tuple[bytes, Answer]:
    """What `fs.read` sends of a file, and its answer."""
    pending = agent.begin("fs.read", root="work", path=path, stream=True)
    with pending.stream:
        try:
            first = protocol.receive(pending.sock).message
        except EOFError:
            return b"", pending.answer()
        if "progress" not in first:
            return b"", Answer(first, [], [])
        protocol.send(pending.sock, {"go": [0, first["progress"]["size"]]})
        with pending.stream.makefile("rb") as file:
            content = file.read()
    return content, pending.answer()


def archived(agent: Agent, path: str) -> tuple[dict[str, Any], list[str]]:
    """The announcement of an archive, and its names."""
    pending = agent.begin("fs.archive", root="work", path=path, members_max=10_000, stream=True)
    said = protocol.receive(pending.sock).message["progress"]
    protocol.send(pending.sock, {"go": True})
    with pending.stream, pending.stream.makefile("rb") as file:
        content = file.read()
    assert pending.answer().data["changed"] == 0
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return said, sorted(tar.getnames())


def test_listed_and_read(user: User, agent: Agent, work: Path) -> None:
    owner = f"container:{INSIDE}"
    rows = {row[0]: row for row in agent.call("fs.list", path="top", **PAGE).data["rows"]}
    assert (rows["data"][1], rows["data"][6]) == ("directory", owner)
    assert (rows["mine"][1], rows["mine"][6]) == ("file", user.name)
    rows = {row[0]: row for row in agent.call("fs.list", path="top/data", **PAGE).data["rows"]}
    assert {name: row[1] for name, row in rows.items()} == {
        "PG_VERSION": "file", "base": "directory", "fifo": "other", "link": "symlink", "out": "symlink",
    }  # fmt: skip
    assert (rows["PG_VERSION"][2], rows["PG_VERSION"][4], rows["link"][5]) == (3, 0o600, "base/1")
    assert {row[6] for row in rows.values()} == {owner}
    assert agent.call("fs.list", path="top/data/base/1", **PAGE).data["entry"][6] == owner
    assert read(agent, "top/data/PG_VERSION")[0] == b"15\n"
    assert read(agent, "top/data/link")[0] == b"x" * 1000
    for path, code in (("out", "forbidden"), ("fifo", "conflict"), ("no", "not_found"), ("base", "conflict")):
        content, answer = read(agent, f"top/data/{path}")
        assert (content, answer.code) == (b"", code), path


def test_archived(agent: Agent, work: Path) -> None:
    said, found = archived(agent, "top")
    inside = ["top/data", "top/data/PG_VERSION", "top/data/base", "top/data/base/1", "top/data/link"]
    assert found == ["top", *inside, "top/data/out", "top/mine"]
    assert (said["members"], said["bytes"], said["skipped_names"]) == (8, 1008, ["data/fifo"])
    assert archived(agent, "top/data/base")[1] == ["base", "base/1"]


def test_removed(agent: Agent, work: Path) -> None:
    for path in ("top/data/PG_VERSION", "top/data/out"):
        data = agent.call("fs.remove", root="work", path=path, recursive=False).data
        assert data == {"removed": 1, "remaining": 0, "kept": []}
    assert agent.call("fs.remove", root="work", path="top/data", recursive=False).code == "conflict"
    assert agent.call("fs.remove", root="work", path="top", recursive=True).data["removed"] == 7
    assert list(work.iterdir()) == []


def test_where_no_process_holds_the_namespace(user: User, agent: Agent, work: Path) -> None:
    """Podman creates it, as after a reboot."""
    agent.call("ctr.list")
    user.podman("system", "migrate")
    assert read(agent, "top/data/PG_VERSION")[0] == b"15\n"
    assert agent.call("fs.remove", root="work", path="top", recursive=True).data["remaining"] == 0
    assert ended(user)


def test_what_the_user_has_no_right_to(user: User, agent: Agent, work: Path) -> None:
    """Files of the host's other users stay closed, also below a directory of a subordinate id."""
    data = work / "top/data"
    for path in (work / "top/hosts", data / "hosts"):
        path.mkdir(mode=0o700)
        (path / "canary").write_text("root's")
        (path / "canary").chmod(0o600)
    user.run("sh", "-c", "cd ~/work/top && mkdir -p shut/in && echo x > shut/f && chmod 0 shut")
    for place in ("top", "top/data"):
        assert agent.call("fs.list", path=f"{place}/hosts", **PAGE).code == "forbidden"
        assert read(agent, f"{place}/hosts/canary")[1].code == "forbidden"
    assert agent.call("fs.list", path="top/shut", **PAGE).code == "forbidden"
    assert agent.call("fs.remove", root="work", path="top/shut/f", recursive=False).code == "forbidden"
    assert not [name for name in archived(agent, "top")[1] if "canary" in name]
    answer = agent.call("fs.remove", root="work", path="top", recursive=True).data
    assert (answer["removed"], answer["remaining"]) == (7, 3)
    reason = "the Linux user may not do that"
    kept = dict.fromkeys(("top/data/hosts", "top/hosts", "top/shut"), reason)
    assert {row["path"]: row["reason"] for row in answer["kept"]} == kept
    assert (data / "hosts/canary").read_text() == (work / "top/hosts/canary").read_text() == "root's"


def test_what_the_user_has_closed_goes_with_a_tree_of_another_id(
    user: User, agent: Agent, work: Path
) -> None:
    """Inside that tree; beside it, and for reading, what the user has closed stays closed."""
    data, home = work / "top/data", Path(user.home)
    uid, gid = home.stat().st_uid, home.stat().st_gid
    for place in (work / "top/shut", data / "shut", data / "base/shut"):
        (place / "in").mkdir(parents=True)
        (place / "in/f").write_text("the user's own")
        (place / "file").write_text("closed")
        for path in (place / "in/f", place / "in", place / "file", place):
            os.chown(path, uid, gid)
            path.chmod(0)
    assert agent.call("fs.list", path="top/data/shut", **PAGE).code == "forbidden"
    assert read(agent, "top/data/shut/file")[1].code == "forbidden"
    assert not [name for name in archived(agent, "top")[1] if "shut/" in name]
    # data and base with 5 names besides, and 4 of each closed tree; beside it the closed one remains.
    answer = agent.call("fs.remove", root="work", path="top", recursive=True).data
    assert (answer["remaining"], [row["path"] for row in answer["kept"]]) == (1, ["top/shut"])
    assert not data.exists()
    assert sorted(path.name for path in (work / "top/shut").rglob("*")) == ["f", "file", "in"]


def test_a_link_put_in_the_place_of_a_directory(user: User, agent: Agent, work: Path) -> None:
    """A container's user swaps its directory for a link that leads out of the root."""
    outside = Path(user.home) / "outside"
    user.run("sh", "-c", "mkdir -p ~/outside && echo kept > ~/outside/PG_VERSION")
    (work / "top/data/base/1").unlink()
    (work / "top/data/base").rmdir()
    for target in (outside, Path("../../../outside")):
        link = work / "top/data/base"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        assert read(agent, "top/data/base/PG_VERSION")[1].code == "forbidden"
        assert agent.call("fs.list", path="top/data/base", **PAGE).code == "forbidden"
        remove = {"root": "work", "path": "top/data/base/PG_VERSION", "recursive": True}
        assert agent.call("fs.remove", **remove).code == "forbidden"
    assert agent.call("fs.remove", root="work", path="top", recursive=True).data["remaining"] == 0
    assert (outside / "PG_VERSION").read_text() == "kept\n"
    user.run("rm", "-r", str(outside))


def test_a_caller_that_goes_ends_the_process(user: User, agent: Agent, work: Path) -> None:
    pending = agent.begin("fs.read", root="work", path="top/data/PG_VERSION", stream=True)
    protocol.receive(pending.sock)
    assert [line for line in user.processes().values() if "namespace_program" in line]
    pending.hang_up()
    with pending.stream:
        assert pending.stream.recv(1) == b""
    assert ended(user)
    assert agent.call("fs.roots").data, "the agent goes on"
