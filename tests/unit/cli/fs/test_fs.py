"""`svc fs` besides the transfers, against a service that answers from a table."""

from __future__ import annotations

import json
import os
import sys
from base64 import b64encode
from typing import Any

import pytest
from fake_service import Service, Stream, Svc

from svc.__main__ import main
from svc.cli.fs import listing
from svc.cli.fs.fs import PIPED
from svc.commandline import output
from svc.limits import FILE_READ_MAX

LIST = "GET /api/fs/work/list?limit=1000&path="  # in a pipe
FULL = "GET /api/fs/work/list?limit=10000&path="  # on a terminal, and for --json
REST = "GET /api/fs/work/entries?offset=2&path="
READ = "GET /api/fs/work/read?path=a.txt"
DELETE = "DELETE /api/fs/work/file?path=a"
NOW = "2025-01-02T03:04:05Z"


def entry(name: str, type: str = "file", **more: Any) -> dict[str, Any]:
    return {
        "name": name, "path": name, "utf8": True, "type": type, "size": 5, "modified_at": NOW, "mode": "0644",
        "target": None, "owner": "alice",
    } | more  # fmt: skip


def lists(service: Service, *items: dict[str, Any], path: str = "", **more: Any) -> None:
    page = {"path": "", "entry": entry("work", "directory"), "items": list(items), "total": len(items)}
    for line in (LIST, FULL):
        service.answer(line + path, page | {"next_offset": None} | more)


def goes_on(service: Service, *chunks: bytes, end: bytes = b"0\r\n\r\n") -> None:
    """The answer of lines behind the first page."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/jsonl\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    service.raw(REST, head + body + end)


def line_of(name: str, **more: Any) -> bytes:
    return json.dumps(entry(name, **more)).encode() + b"\n"


# --- roots -----------------------------------------------------------------------------


def test_roots_and_their_limits(service: Service, svc: Svc) -> None:
    root = {
        "id": "work", "path": "/home/alice/work", "mounted_at": "/work", "exists": True, "read_only": False,
        "free_bytes": 2**30, "size_bytes": 2**31,
    }  # fmt: skip
    limits = {
        "upload_max_bytes": 2**36, "read_max_bytes": 2**20, "archive_max_members": 1000000,
        "archive_max_bytes": 2**38,
    }  # fmt: skip
    service.answer("GET /api/fs/roots", {"items": [root], "limits": limits})
    assert svc("fs", "roots").out == f"work\t/work\tfalse\t{2**30}\t{2**31}\t/home/alice/work\n"
    printed = svc("fs", "roots", terminal=True).out
    assert "an upload has at most 64.0 GiB" in printed and "1000000 members" in printed
    assert json.loads(svc("fs", "roots", "--json").out)["limits"] == limits


# --- ls --------------------------------------------------------------------------------


def test_ls_alone_lists_the_roots(service: Service, svc: Svc) -> None:
    service.answer("GET /api/fs/roots", {"items": [], "limits": {}})
    assert svc("fs", "ls", terminal=True).out.startswith("No file roots.\n")


def test_a_directory(service: Service, svc: Svc) -> None:
    lists(service, entry("a.txt"), entry("link", "symlink", target="a.txt"))
    assert svc("fs", "ls", "work").out == (
        f"file\t0644\t5\t{NOW}\ta.txt\t\talice\nsymlink\t0644\t5\t{NOW}\tlink\ta.txt\talice\n"
    )
    printed = svc("fs", "ls", "work/", terminal=True).out.splitlines()
    assert printed[0].split() == ["TYPE", "MODE", "OWNER", "SIZE", "MODIFIED", "NAME"]
    assert printed[2].endswith("link -> a.txt")
    assert json.loads(svc("fs", "ls", "work", "--json").out)["total"] == 2
    assert set(service.sent) == {LIST, FULL}


def test_a_file_of_a_user_inside_a_container(service: Service, svc: Svc) -> None:
    lists(service, entry("data", "directory", owner="container:999"))
    assert "container:999" in svc("fs", "ls", "work", terminal=True).out


def names(printed: str) -> list[str]:
    return [line.split("\t")[4] for line in printed.splitlines()]


@pytest.mark.parametrize("terminal", [False, True])
def test_the_rest_of_a_large_directory(service: Service, svc: Svc, terminal: bool) -> None:
    """Lines come in pieces that end anywhere; what may not be printed is escaped as ever."""
    lists(service, entry("a"), entry("b"), next_offset=2)
    odd = entry("l", "symlink", target="x\ty", owner=None)
    content = line_of("c") + line_of("\x1b[2J\n") + json.dumps(odd).encode() + b"\n"
    goes_on(service, content[:30], content[30:200], content[200:])
    printed = svc("fs", "ls", "work", terminal=terminal).out
    if terminal:
        assert printed.splitlines()[-1].endswith("l -> x\\ty")
    else:
        assert names(printed) == ["a", "b", "c", "\\x1b[2J\\n", "l"]
        assert printed.splitlines()[-1] == f"symlink\t0644\t5\t{NOW}\tl\tx\\ty\t"


@pytest.mark.parametrize(
    "more",
    [
        {}, {"size": 0}, {"modified_at": None}, {"owner": None}, {"target": "t"}, {"name": "ä"},
        {"name": "a\tb"}, {"name": "a\nb"}, {"owner": "\x1b[31m"}, {"name": "\u202eb"}, {"name": "\udc80"},
    ],
)  # fmt: skip
def test_many_at_once_are_printed_as_one_by_one(
    capsys: pytest.CaptureFixture[str], more: dict[str, Any]
) -> None:
    found = [entry("x"), entry("y") | more]
    listing.show(found, PIPED)
    at_once = capsys.readouterr().out
    output.table(PIPED, found, "")
    assert capsys.readouterr().out == at_once


@pytest.mark.parametrize(
    "content",
    [line_of("c")[:-1], line_of("c") + b"{", b"}\n", b'"' + b"x" * 70_000, b"[" * 5000 + b"\n", b"\xff\n"],
)
def test_an_odd_rest_is_an_error(service: Service, svc: Svc, content: bytes) -> None:
    lists(service, entry("a"), entry("b"), next_offset=2)
    goes_on(service, content)
    done = svc("fs", "ls", "work")
    assert done.code == 1
    assert names(done.out)[:2] == ["a", "b"]
    assert done.err.startswith("svc: the service's answer")


def test_a_rest_that_is_cut_off(service: Service, svc: Svc) -> None:
    lists(service, entry("a"), entry("b"), next_offset=2)
    goes_on(service, line_of("c"), end=b"")
    assert "cut short" in svc("fs", "ls", "work").err


def test_page_by_page_beside_too_many_long_calls(service: Service, svc: Svc) -> None:
    lists(service, entry("a"), entry("b"), next_offset=2)
    service.refuse(REST, 429, "too_many_requests", "you already have 8 long calls in progress")
    further = "GET /api/fs/work/list?limit=10000&offset={}&path="
    service.answer(further.format(2), {"items": [entry("c")], "next_offset": 3})
    service.answer(further.format(3), {"items": [entry("d")], "next_offset": None})
    assert names(svc("fs", "ls", "work").out) == ["a", "b", "c", "d"]


def test_a_file_is_shown_alone(service: Service, svc: Svc) -> None:
    lists(service, path="a.txt", entry=entry("a.txt", size=7))
    assert svc("fs", "ls", "work/a.txt").out == f"file\t0644\t7\t{NOW}\ta.txt\t\talice\n"


def test_an_empty_directory(service: Service, svc: Svc) -> None:
    lists(service, path="d")
    assert svc("fs", "ls", "work/d").out == ""
    assert svc("fs", "ls", "work/d", terminal=True).out == "work/d is empty.\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_names_steer_no_terminal(service: Service, svc: Svc, terminal: bool) -> None:
    names = ["a\nb", "\x1b[2J", "tab\tbed", "-rf", "\u202eabc", "<img onerror>"]
    lists(service, *(entry(name) for name in names), entry("l", "symlink", target="\x1b]0;x\x07"))
    printed = svc("fs", "ls", "work", terminal=terminal).out
    assert len(printed.splitlines()) == len(names) + 1 + terminal
    for mark in ("\x1b[2J", "\x1b]", "\u202e", "\x07"):
        assert mark not in printed
    assert all(name in printed for name in ("a\\nb", "\\x1b[2J", "-rf", "\\u202eabc", "<img onerror>"))


def test_bytes_that_are_no_text_are_asked_for(service: Service, svc: Svc) -> None:
    lists(service, entry("x"), path="caf%E9%2Fa%20b")
    assert svc("fs", "ls", "work/" + os.fsdecode(b"caf\xe9/a b/")).code == 0


@pytest.mark.parametrize("page", [{}, {"items": 5}, {"items": [5, None, "x"]}, {"items": [], "entry": 5}])
def test_an_odd_answer_is_no_crash(service: Service, svc: Svc, page: object) -> None:
    service.answer(LIST, page)
    service.answer(FULL, page)
    for terminal in (False, True):
        assert svc("fs", "ls", "work", terminal=terminal).code in (0, 1)


# --- read ------------------------------------------------------------------------------


def reads(service: Service, content: bytes, line: str = READ, **more: Any) -> None:
    answer = {"path": "a.txt", "size": len(content), "offset": 0, "truncated": False}
    service.answer(line, answer | {"content": b64encode(content).decode()} | more)


def test_a_pipe_has_the_bytes(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(256))
    reads(service, content)
    out = Stream(terminal=False)
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["fs", "read", "work/a.txt"]) == 0
    assert out.buffer.getvalue() == content  # type: ignore[attr-defined]


def test_a_terminal_is_not_steered(service: Service, svc: Svc) -> None:
    reads(service, b"one\ttwo\r\n\x1b[31mred\x1b[0m\rover\xff")
    printed = svc("fs", "read", "work/a.txt", terminal=True)
    assert printed.out == "one\ttwo\n\\x1b[31mred\\x1b[0m\\rover\\xff\n"


def test_what_is_left_out_is_told(service: Service, svc: Svc) -> None:
    reads(service, b"abc", size=10, offset=4, truncated=True, line=f"{READ}&offset=4&length=3")
    outcome = svc("fs", "read", "work/a.txt", "--offset", "4", "--length", "3")
    assert (outcome.code, outcome.out) == (0, "abc")
    assert outcome.err == (
        "svc: the output ends at byte 7 of 10\nhint: svc fs read work/a.txt --offset 7 --length 3\n"
    )  # fmt: skip


@pytest.mark.parametrize("content", [None, 5, "YQ", "Y!==", "YQ==YQ=="])
def test_content_that_is_none(service: Service, svc: Svc, content: object) -> None:
    service.answer(READ, {"content": content, "size": 1})
    outcome = svc("fs", "read", "work/a.txt")
    assert (outcome.code, outcome.out, "the file's content" in outcome.err) == (1, "", True)


def test_a_length_is_checked_before(service: Service, svc: Svc) -> None:
    outcome = svc("fs", "read", "work/a.txt", "--length", str(FILE_READ_MAX + 1))
    assert (outcome.code, str(FILE_READ_MAX) in outcome.err, service.sent) == (2, True, [])


def test_a_directory_is_listed(service: Service, svc: Svc) -> None:
    service.refuse(READ, 409, "conflict", "work/a.txt: it is a directory")
    assert svc("fs", "read", "work/a.txt/").err.endswith("hint: svc fs ls work/a.txt\n")
    assert service.sent == [READ]
    root = svc("fs", "read", "work")
    assert (root.code, root.err.endswith("hint: svc fs ls work\n"), len(service.sent)) == (2, True, 1)


def test_a_directory_cannot_be_read(service: Service, svc: Svc) -> None:
    service.refuse(READ, 409, "conflict", "it is not a regular file", hint="svc fs ls work/a.txt")
    assert svc("fs", "read", "work/a.txt") == (
        1, "", "svc: it is not a regular file\nhint: svc fs ls work/a.txt\n"
    )  # fmt: skip


# --- mkdir, mv -------------------------------------------------------------------------


def test_a_directory_is_made(service: Service, svc: Svc) -> None:
    service.answer("POST /api/fs/work/mkdir?path=a%2Fb", entry("b", "directory"), status=201)
    assert svc("fs", "mkdir", "work/a/b/").out == f"directory\t0644\t5\t{NOW}\tb\n"
    assert service.last.json == {"parents": False}
    assert svc("fs", "mkdir", "work/a/b", "--parents", terminal=True).out == "work/a/b is created.\n"
    assert service.last.json == {"parents": True}


def test_a_directory_that_is_there(service: Service, svc: Svc) -> None:
    service.refuse("POST /api/fs/work/mkdir?path=a", 409, "file_exists", "a is there", hint="--force")
    assert svc("fs", "mkdir", "work/a").err == "svc: a is there\nhint: svc fs ls work/a\n"
    said = "work/odd/fifo: it exists and is not a directory"
    service.refuse("POST /api/fs/work/mkdir?path=odd%2Ffifo%2Fx", 409, "file_exists", said)
    done = svc("fs", "mkdir", "work/odd/fifo/x", "-p")
    assert done.err == f"svc: {said}\nhint: svc fs ls work/odd\n", "below it is nothing"


def test_a_move(service: Service, svc: Svc) -> None:
    service.answer("POST /api/fs/work/move?path=a%20b", entry("c"))
    assert svc("fs", "mv", "work/a b", "work/x/c").code == 0
    assert service.last.json == {"to": "x/c", "force": False}
    printed = svc("fs", "mv", "work/a b", "work/x/", "--force", terminal=True)
    assert printed.out == "work/a b is now work/x/a b.\n"
    assert service.last.json == {"to": "x/a%20b", "force": True}


def test_a_move_onto_something(service: Service, svc: Svc) -> None:
    service.refuse("POST /api/fs/work/move?path=a", 409, "file_exists", "b is there")
    assert svc("fs", "mv", "work/a", "work/b").err.endswith("hint: svc fs mv work/a work/b --force\n")


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_move_onto_a_directory(service: Service, svc: Svc, force: list[str]) -> None:
    """Whoever knows mv means into it: the hint is the command that does that."""
    message = "d: a directory of that name exists already; a / at its end moves into it"
    service.refuse("POST /api/fs/work/move?path=a", 409, "file_exists", message)
    refused = svc("fs", "mv", "work/a", "work/d", *force)
    assert (refused.code, refused.err) == (1, f"svc: {message}\nhint: svc fs mv work/a work/d/\n")


def test_a_move_between_roots(service: Service, svc: Svc) -> None:
    outcome = svc("fs", "mv", "work/a", "data/")
    assert (outcome.code, service.sent) == (2, [])
    assert outcome.err.endswith("hint: svc fs download work/a - | svc fs upload - data/a\n")


# --- rm --------------------------------------------------------------------------------


def test_a_removal_needs_a_word(service: Service, svc: Svc) -> None:
    """ "`ws delete`, `image prune`, `fs rm` take `--yes`; aborting a confirmation exits with code 1"."""
    service.answer(DELETE, {"removed": 1})
    service.answer(f"{DELETE}&recursive=true", {"removed": 12})
    outcome = svc("fs", "rm", "work/a", "--recursive")
    assert (outcome.code, service.sent) == (1, [])
    assert outcome.err.endswith("hint: svc fs rm work/a --recursive --yes\n")
    assert svc("fs", "rm", "work/a", terminal=True, stdin=b"n\n").code == 1
    assert service.sent == []
    assert svc("fs", "rm", "work/a", "--yes") == (0, "", "")
    printed = svc("fs", "rm", "work/a/", "--recursive", terminal=True, stdin=b"y\n")
    assert (printed.out, "Remove work/a and its content?" in printed.err) == (
        "work/a is removed, 12 in all.\n", True
    )  # fmt: skip
    assert json.loads(svc("fs", "rm", "work/a", "--yes", "--json").out) == {"removed": 1}
    assert service.sent == [DELETE, f"{DELETE}&recursive=true", DELETE]


def test_a_question_steers_no_terminal(service: Service, svc: Svc) -> None:
    printed = svc("fs", "rm", "work/\x1b[2J", terminal=True, stdin=b"n\n")
    assert "\x1b[2J" not in printed.err


def test_a_directory_needs_recursive(service: Service, svc: Svc) -> None:
    service.refuse(DELETE, 409, "conflict", "work/a: the directory is not empty")
    assert svc("fs", "rm", "work/a", "--yes").err.endswith("hint: svc fs rm work/a --yes --recursive\n")


@pytest.mark.parametrize("line", ["ls /etc", "ls ../x", "rm", "read work/a --offset -1", "mv work/a"])
def test_wrong_usage(service: Service, svc: Svc, line: str) -> None:
    assert (svc("fs", *line.split()).code, service.sent) == (2, [])


def test_another_host_is_wrong_usage(service: Service, svc: Svc) -> None:
    """ "a remote server URL is a usage error"."""
    for line in ("ls https://host/work", "upload a https://host/work/a", "download https://host/work/a"):
        outcome = svc("fs", *line.split())
        assert (outcome.code, "this host only" in outcome.err, service.sent) == (2, True, [])
