"""The file roots, and what is in their directories, by names of any bytes."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from agent.file_roots import FileRoots, Row, encoded, names
from agent.priv_ns import User

from svc_helper.agent.files import beneath, listing
from svc_helper.wire.arguments import path_bytes

ODD = [
    b"\nnew line", b" ", b"-rf", b"...", b"..x", b"<img onerror=x>", b"\\", b"\x1b[31mred", b"%2e%2e",
    "\u202egnp.txt".encode(), "ä".encode(), b"\xff\xfe", b"a\xcc\x88", b"x" * 255, b"\x01", b"'; rm \"",
]  # fmt: skip


def page(files: FileRoots, path: str = "", offset: int = 0, limit: int = 1000) -> tuple[Row, list[Row], int]:
    """One answer of fs.list."""
    data = files.call("fs.list", path=path, offset=offset, limit=limit)
    assert set(data) == {"entry", "rows", "total"}
    return data["entry"], data["rows"], data["total"]


def test_the_roots(files: FileRoots) -> None:
    rows = {row.pop("id"): row for row in files.call("fs.roots")["roots"]}
    assert list(rows) == list(files.home.roots)
    found = os.statvfs(files.work)
    assert rows["work"]["size_bytes"] == found.f_blocks * found.f_frsize
    assert 0 <= rows["work"]["free_bytes"] <= rows["work"]["size_bytes"]
    assert {name: (row["exists"], row["read_only"]) for name, row in rows.items()} == {
        "work": (True, False),
        "fixed": (True, True),
        "absent": (False, True),
        "later": (False, False),
    }
    assert (rows["later"]["free_bytes"], rows["later"]["size_bytes"]) == (None, None)
    assert path_bytes(rows["work"]["path"]) == os.fsencode(files.work)
    assert not Path(files.home.roots["later"]).exists(), "looking makes nothing"


def test_names_of_any_bytes(files: FileRoots) -> None:
    for name in ODD:
        os.mkdir(os.fsencode(files.work) + b"/" + name)
    entry, rows, total = page(files)
    assert names(rows) == sorted(ODD)
    assert total == len(ODD)
    assert entry[:2] == ["", "directory"]
    for name in ODD:
        assert page(files, encoded(name))[0][0] == encoded(name)


def test_rows(files: FileRoots) -> None:
    file = files.work / "file"
    file.write_bytes(b"12345")
    file.chmod(0o4751)
    os.utime(file, ns=(1, 1_700_000_000_123_456_789))
    (files.work / "directory").mkdir(mode=0o700)
    (files.work / "link").symlink_to(b"../out\xff side")
    os.mkfifo(files.work / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(files.work / "socket"))
    rows = {row[0]: row for row in page(files)[1]}
    assert rows["file"] == ["file", "file", 5, 1_700_000_000_123_456_789, 0o4751, None, files.home.user]
    assert rows["directory"][1:5:3] == ["directory", 0o700]
    assert (rows["link"][1], rows["link"][5]) == ("symlink", "../out%FF%20side")
    assert [rows[name][1] for name in ("fifo", "socket")] == ["other", "other"]
    entry, below, total = page(files, "file")
    assert (entry, below, total) == (rows["file"], [], 0)


def test_what_a_link_leads_to(files: FileRoots) -> None:
    (files.work / "a/b").mkdir(parents=True)
    (files.work / "a/b/f").write_text("x")
    (files.work / "link").symlink_to("a/b")
    (files.work / "to-file").symlink_to("a/b/f")
    entry, rows, _ = page(files, "link")
    assert (entry[:2], names(rows)) == (["link", "directory"], [b"f"])
    assert page(files, "to-file")[0][:3] == ["to-file", "file", 1]


@pytest.mark.parametrize(
    ("path", "code"),
    [("out", "forbidden"), ("up", "forbidden"), ("loop", "not_found"), ("dangling", "not_found"),
     ("no", "not_found"), ("out/secret", "forbidden"), ("f/x", "conflict"), ("proc", "forbidden")],
)  # fmt: skip
def test_refused(files: FileRoots, path: str, code: str) -> None:
    (files.work / "f").write_text("")
    for name, target in (("out", files.outside), ("up", ".."), ("loop", "loop"), ("dangling", "nothing"),
                         ("proc", "/proc/self/root")):  # fmt: skip
        (files.work / name).symlink_to(target)
    found, message = files.refused("fs.list", path=path, offset=0, limit=10)
    assert found == code
    assert message.startswith(f"{path}: ")
    rows = page(files)[1]
    assert {row[0]: row[1] for row in rows}["out"] == "symlink", "in its directory it is shown as what it is"


def test_a_root_that_is_not_there(files: FileRoots) -> None:
    assert page_of(files, "later") == []
    assert page_of(files, "fixed") == [b"model"]
    for root in ("absent", "nothing"):
        assert files.refused("fs.list", root=root, path="", offset=0, limit=10)[0] == "not_found"


def page_of(files: FileRoots, root: str) -> list[bytes]:
    """The names in a root."""
    return names(files.call("fs.list", root=root, path="", offset=0, limit=10)["rows"])


def test_pages(files: FileRoots) -> None:
    requested = sorted(f"{number % 7}-{number}".encode() for number in range(5000))
    for name in requested:
        (files.work / name.decode()).touch()
    (files.work / beneath.draft().decode()).touch()
    found: list[bytes] = []
    while True:
        _, rows, total = page(files, offset=len(found), limit=999)
        assert total == 5000, "without the unfinished upload"
        if not rows:
            break
        found += names(rows)
    assert found == requested
    assert names(page(files, offset=4998, limit=10)[1]) == requested[4998:]
    assert page(files, offset=10**9, limit=10_000)[1] == []


def test_a_page_fits_into_an_answer(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        (files.work / f"{number:02d}").symlink_to(b"\xff" * 4000)
    monkeypatch.setattr(listing, "PAGE_BYTES_MAX", 100_000)
    first = page(files)
    assert 0 < len(first[1]) < 40
    assert first[2] == 40
    rest = page(files, offset=len(first[1]))
    assert rest[1][0][0] == f"{len(first[1]):02d}"


def test_what_has_gone_is_left_out(files: FileRoots) -> None:
    fd = os.open(files.work, os.O_PATH)
    assert listing.entry(files.namespace(), fd, b"never was") is None
    os.close(fd)


def test_a_caller_that_goes_ends_it(files: FileRoots) -> None:
    for number in range(listing._CHECK_EVERY + 1):
        (files.work / str(number)).touch()
    assert files.refused("fs.list", path="", offset=0, limit=1, timeout_s=0)[0] == "timeout"


@pytest.mark.root
@pytest.mark.usefixtures("empty_work")
def test_what_the_user_may_not_see(user: User) -> None:
    """A directory of its own that is closed, one without x, and another's."""
    user.run("sh", "-c", "cd && mkdir -p work/shut work/blind && echo x > work/blind/f && chmod 0 work/shut"
             " && chmod 400 work/blind && ln -s /root work/root")  # fmt: skip
    agent = user.start_agent()
    try:
        where = {"root": "work", "offset": 0, "limit": 10}
        shut = agent.call("fs.list", path="shut", **where)
        assert (shut.code, shut.message["message"]) == ("forbidden", "shut: the Linux user may not do that")
        assert agent.call("fs.list", path="root", **where).code == "forbidden"
        blind = agent.call("fs.list", path="blind", **where).data
        assert blind["rows"] == [["f", "other", 0, 0, 0, None, None]]
        assert {row[0] for row in agent.call("fs.list", path="", **where).data["rows"]} >= {"shut", "blind"}
    finally:
        agent.close()


@pytest.mark.root
@pytest.mark.usefixtures("empty_work")
def test_files_need_no_podman(user: User) -> None:
    before = set(user.processes())  # Podman services of agents killed earlier live for five minutes
    agent = user.start_agent()
    try:
        assert agent.call("fs.roots").data["roots"][0]["id"] == "work"
        created = agent.call("fs.mkdir", root="work", path="a/b", parents=True).data["entry"]
        assert created[:2] == ["b", "directory"]
        assert agent.call("fs.list", root="work", path="", offset=0, limit=10).data["total"] == 1
        assert agent.call("fs.remove", root="work", path="a", recursive=True).data["removed"] == 2
        new = {pid: line for pid, line in user.processes().items() if pid not in before}
        assert not [line for line in new.values() if "podman" in line]
        assert agent.call("ctr.list").data == {"containers": []}, "it starts when it is wanted"
    finally:
        agent.close()
