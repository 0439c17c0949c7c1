"""All entries of a directory as lines: the same as the API makes of the rows of pages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from agent.file_roots import FileRoots
from agent.transfers import Transfer

from svc.domain.files import fs
from svc_helper.agent.files import entries


def sent(files: FileRoots, path: str = "", offset: int = 0) -> tuple[list[Any], dict[str, Any]]:
    """The objects of the lines, and what the agent says besides."""
    with Transfer(files, "fs.entries", path=path, offset=offset) as transfer:
        said = transfer.next_message()
        transfer.send_message(go=True)
        content = transfer.receive()
        said |= transfer.end()
    assert content.isascii()
    return [json.loads(line) for line in content.splitlines()], said


@pytest.fixture
def odd(files: FileRoots) -> Path:
    """A directory with a bit of everything."""
    top = files.work / "a b"
    (top / "below").mkdir(parents=True)
    for name in (
        b"\xff\xfe",
        b"new\nline",
        b"-rf",
        b"\x1b[31m",
        "\u202e".encode(),
        b'"',
        b"\\",
        "ä".encode(),
    ):
        with open(os.fsencode(top) + b"/" + name, "wb") as file:
            file.write(name)
    (top / "link").symlink_to(b"\xff\n")
    os.mkfifo(top / "fifo")
    for number, seconds in enumerate((0, -1, -(2**31), 2**33, 1_700_000_000)):
        path = top / f"{number}"
        path.write_bytes(b"x" * number)
        path.chmod(0o640 + number)
        os.utime(path, ns=(0, seconds * 10**9 + 987_654_321))
    (top / ".svc-upload-0123456789abcdef").touch()
    return top


def test_a_line_says_what_the_api_makes_of_a_row(files: FileRoots, odd: Path) -> None:
    rows = files.call("fs.list", path="a%20b", offset=0, limit=1000)["rows"]
    lines, said = sent(files, "a%20b")
    assert lines == fs._entries(rows, b"a b", 1000)
    assert list(lines[0]) == list(fs._entries(rows, b"a b", 1000)[0])
    assert said == {"total": len(rows), "entries": len(rows)}
    assert sent(files, "a%20b", 3)[0] == lines[3:]
    assert sent(files, "a%20b", 300)[0] == []
    assert [line["path"] for line in sent(files)[0]] == ["a%20b"]


@pytest.mark.parametrize("mtime_ns", [10**9 * 253_402_300_800, -(10**9) * 62_135_596_801, 2**63 - 1])
def test_a_year_of_no_calendar(mtime_ns: int) -> None:
    assert json.loads(entries._moment(mtime_ns)) == fs.moment(mtime_ns)


def test_many(files: FileRoots) -> None:
    for number in range(3000):
        (files.work / f"{number:04}").touch()
    lines, said = sent(files)
    assert [line["name"] for line in lines] == [f"{number:04}" for number in range(3000)]
    assert said == {"total": 3000, "entries": 3000}


def test_what_is_removed_meanwhile_is_left_out(files: FileRoots, odd: Path) -> None:
    with Transfer(files, "fs.entries", path="a%20b", offset=0) as transfer:
        total = transfer.next_message()["total"]
        (odd / "fifo").unlink()
        transfer.send_message(go=True)
        assert len(transfer.receive().splitlines()) == total - 1
        assert transfer.end() == {"entries": total - 1}


def test_what_is_refused(files: FileRoots) -> None:
    (files.work / "file").touch()
    (files.work / "out").symlink_to(files.outside)
    for path, code in (("file", "conflict"), ("x", "not_found"), ("out", "forbidden")):
        with Transfer(files, "fs.entries", path=path, offset=0) as transfer:
            assert transfer.code() == code
            assert transfer.receive() == b""


@pytest.mark.parametrize("way", ["cancel", "hang up", "close the stream"])
def test_a_caller_that_goes_ends_it(files: FileRoots, way: str) -> None:
    for number in range(3000):
        (files.work / f"{number:04}{'x' * 200}").touch()
    with Transfer(files, "fs.entries", path="", offset=0) as transfer:
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
