"""`svc fs download` and `svc fs archive`, against a service that answers from a table."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_service import Service, Stream, Svc

from svc.__main__ import main
from svc.commandline import local_files

GET = "GET /api/fs/work/download?path=in%2Fa.txt"
ARCHIVE = "GET /api/fs/work/archive?path=in"
CONTENT = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the test stands, with nothing in it but the service's socket."""
    monkeypatch.chdir(tmp_path)


def gives(service: Service, line: str = GET, content: bytes = CONTENT, length: int | None = None) -> None:
    size = len(content) if length is None else length
    service.raw(line, f'HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nETag: "e"\r\n\r\n'.encode() + content)


def packs(service: Service, *chunks: bytes, end: bytes = b"0\r\n\r\n", skipped: int = 0) -> None:
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\nTransfer-Encoding: chunked\r\n"
        f"X-Svc-Archive-Members: 3\r\nX-Svc-Archive-Bytes: 99\r\nX-Svc-Archive-Skipped: {skipped}\r\n\r\n"
    )
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    service.raw(ARCHIVE, head.encode() + body + end)


def files(*but: str) -> set[str]:
    """What there is, besides the socket."""
    return set(os.listdir()) - {"svc.sock", *but}


# --- download --------------------------------------------------------------------------


def test_a_file_keeps_its_name(service: Service, svc: Svc) -> None:
    gives(service)
    assert svc("fs", "download", "work/in/a.txt") == (0, f"a.txt\t{len(CONTENT)}\n", "")
    assert (Path("a.txt").read_bytes(), files()) == (CONTENT, {"a.txt"})
    printed = svc("fs", "download", "work/in/a.txt", "b.txt", terminal=True)
    assert printed.out.startswith("b.txt is written (1.0 MiB")
    assert "\r\x1b[K[" in printed.err and printed.err.endswith("\r\x1b[K")
    os.mkdir("out")
    assert svc("fs", "download", "work/in/a.txt", "out/").out == f"out/a.txt\t{len(CONTENT)}\n"


@pytest.mark.parametrize("kind", ["file", "link", "dangling", "pipe"])
def test_what_is_there_stays_unless_forced(service: Service, svc: Svc, kind: str) -> None:
    """ "`fs download` to an existing local file without `--force`": refused."""
    gives(service)
    Path("other").write_text("other")
    out = Path("a.txt")
    if kind == "file":
        out.write_text("mine")
    elif kind == "pipe":
        os.mkfifo(out)
    else:
        out.symlink_to("other" if kind == "link" else "nowhere")
    refused = "svc: a.txt already exists\nhint: svc fs download work/in/a.txt --force\n"
    assert svc("fs", "download", "work/in/a.txt") == (1, "", refused)
    assert service.sent == []
    assert svc("fs", "download", "work/in/a.txt", "--force").code == 0
    assert (out.is_symlink(), out.read_bytes()) == (False, CONTENT)
    assert (Path("other").read_text(), files()) == ("other", {"a.txt", "other"})


def test_a_directory_is_never_replaced(service: Service, svc: Svc) -> None:
    gives(service)
    os.mkdir("a.txt")
    for more in ([], ["--force"]):
        assert "directory" in svc("fs", "download", "work/in/a.txt", *more).err
    assert (service.sent, os.listdir("a.txt")) == ([], [])


def test_a_root_is_no_file(service: Service, svc: Svc) -> None:
    for place in ("work", "work/"):
        outcome = svc("fs", "download", place)
        assert (outcome.code, outcome.err.endswith("hint: svc fs archive work\n")) == (2, True)
    assert service.sent == []


def test_a_slash_at_the_end_says_nothing(service: Service, svc: Svc) -> None:
    gives(service, GET)
    assert svc("fs", "download", "work/in/a.txt/").code == 0
    assert (service.sent, files()) == ([GET], {"a.txt"})


def test_a_directory_is_archived(service: Service, svc: Svc) -> None:
    service.refuse(GET, 409, "conflict", "work/in/a.txt: it is a directory")
    outcome = svc("fs", "download", "work/in/a.txt")
    assert outcome == (
        1, "", "svc: work/in/a.txt: it is a directory\nhint: svc fs archive work/in/a.txt\n"
    )  # fmt: skip


@pytest.mark.parametrize("name", ["..", "."])
def test_a_name_that_is_none(service: Service, svc: Svc, name: str) -> None:
    outcome = svc("fs", "download", f"work/{name}")
    assert (outcome.code, service.sent, files()) == (1, [], set())


def test_any_name_comes_in(service: Service, svc: Svc) -> None:
    name = os.fsdecode(b"caf\xe9\x1b[2J\n")
    gives(service, "GET /api/fs/work/download?path=caf%E9%1B%5B2J%0A")
    printed = svc("fs", "download", f"work/{name}", terminal=True)
    assert (printed.code, files()) == (0, {name})
    assert "\x1b[2J" not in printed.out
    again = svc("fs", "download", f"work/{name}")
    assert again.err.endswith("hint: svc fs download $'work/caf\\xe9\\x1b[2J\\x0a' --force\n")


def test_a_file_called_like_standard_output_is_a_file(service: Service, svc: Svc) -> None:
    gives(service, "GET /api/fs/work/download?path=in%2F-")
    assert svc("fs", "download", "work/in/-") == (0, f"./-\t{len(CONTENT)}\n", "")
    assert (Path("-").read_bytes(), files()) == (CONTENT, {"-"})


def test_standard_output_has_the_bytes(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    gives(service)
    out = Stream(terminal=False)
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["fs", "download", "work/in/a.txt", "-"]) == 0
    assert out.buffer.getvalue() == CONTENT  # type: ignore[attr-defined]
    assert files() == set()


def test_no_terminal_gets_the_bytes(service: Service, svc: Svc) -> None:
    gives(service)
    outcome = svc("fs", "download", "work/in/a.txt", "-", terminal=True)
    assert (outcome.code, outcome.out, service.sent) == (1, "", [])
    assert outcome.err.endswith("hint: svc fs download work/in/a.txt\n")


def test_a_reader_that_has_enough_is_no_broken_connection(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `svc fs download work/big - | head`."""
    gives(service)
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(["fs", "download", "work/in/a.txt", "-"]) == 141
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_download_that_is_cut_short_is_no_file(service: Service, svc: Svc, force: list[str]) -> None:
    gives(service, length=len(CONTENT) + 1)
    if force:
        Path("a.txt").write_text("mine")
    outcome = svc("fs", "download", "work/in/a.txt", "a.txt", *force)
    command = " ".join(["svc fs download work/in/a.txt a.txt", *force])
    assert (outcome.code, outcome.err) == (1, f"svc: the service's answer was cut short\nhint: {command}\n")
    assert files() == ({"a.txt"} if force else set())
    assert not force or Path("a.txt").read_text() == "mine"


def test_no_more_than_was_promised_is_kept(service: Service, svc: Svc) -> None:
    gives(service, length=10)
    assert svc("fs", "download", "work/in/a.txt").code == 0
    assert Path("a.txt").read_bytes() == CONTENT[:10]


@pytest.mark.parametrize(
    "head", ["", "Content-Length: -1\r\n", "Content-Length: x\r\n", f"Content-Length: {'9' * 40}\r\n"]
)
def test_a_file_whose_end_nobody_could_tell(service: Service, svc: Svc, head: str) -> None:
    service.raw(GET, f"HTTP/1.1 200 OK\r\n{head}\r\nxx".encode())
    assert (svc("fs", "download", "work/in/a.txt").code, files()) == (1, set())


def test_ctrl_c_leaves_nothing(service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    gives(service)
    real = local_files.save
    seen: set[str] = set()

    def interrupted(parts: Any, *value: Any) -> None:
        def first() -> Any:
            yield next(parts)
            seen.update(files())
            raise KeyboardInterrupt

        real(first(), *value)

    monkeypatch.setattr(local_files, "save", interrupted)
    outcome = svc("fs", "download", "work/in/a.txt", terminal=True)
    assert (outcome.code, len(seen), files()) == (130, 1, set())
    assert outcome.err.endswith("\r\x1b[K")


def test_what_the_service_refuses(service: Service, svc: Svc) -> None:
    service.refuse(GET, 404, "not_found", "no such file \x1b[2J", hint="svc fs ls work/in")
    outcome = svc("fs", "download", "work/in/a.txt", terminal=True)
    assert outcome == (1, "", "svc: no such file \\x1b[2J\nhint: svc fs ls work/in\n")
    assert files() == set()


def test_a_download_has_no_json(service: Service, svc: Svc) -> None:
    """ "`fs download` and `fs archive`, which write a local file and do not accept `--json`"."""
    for command in ("download", "archive"):
        outcome = svc("fs", command, "work/in/a.txt", "--json")
        assert (outcome.code, service.sent, "--json" in outcome.err) == (2, [], True)


def test_a_service_that_is_not_there(svc: Svc) -> None:
    outcome = svc("fs", "download", "work/in/a.txt")
    assert "cannot connect to the service" in outcome.err and "fs download" not in outcome.err
    assert files() == set()


# --- archive ---------------------------------------------------------------------------


def test_an_archive_comes_in_chunks(service: Service, svc: Svc) -> None:
    packs(service, CONTENT, b"x", CONTENT)
    size = 2 * len(CONTENT) + 1
    assert svc("fs", "archive", "work/in/") == (0, f"in.tar.gz\t{size}\t3\t0\n", "")
    assert Path("in.tar.gz").read_bytes() == CONTENT + b"x" + CONTENT
    printed = svc("fs", "archive", "work/in", "b.tgz", terminal=True)
    assert printed.out.startswith("b.tgz is written (3 members, 2.0 MiB")
    assert printed.err.endswith("\r\x1b[K")
    assert files() == {"in.tar.gz", "b.tgz"}


def test_a_root_s_archive_has_the_root_s_name(service: Service, svc: Svc) -> None:
    service.refuse("GET /api/fs/work/archive?path=", 413, "too_large", "1000001 members; at most 1000000")
    outcome = svc("fs", "archive", "work/")
    assert outcome == (1, "", "svc: 1000001 members; at most 1000000\n")
    Path("work.tar.gz").touch()
    assert "work.tar.gz already exists\nhint: svc fs archive work --force" in svc("fs", "archive", "work").err


def test_what_is_left_out_is_told(service: Service, svc: Svc) -> None:
    packs(service, b"x", skipped=2)
    outcome = svc("fs", "archive", "work/in")
    assert (outcome.code, outcome.out) == (0, "in.tar.gz\t1\t3\t2\n")
    assert outcome.err.startswith("svc: 2 entries of work/in are left out: sockets")


def test_a_path_that_is_too_long_is_told(service: Service, svc: Svc) -> None:
    packs(service, b"x", skipped=1)
    said = svc("fs", "archive", "work/in").err
    assert said.startswith("svc: 1 entry of work/in is left out: ")
    assert "paths over 3,839 bytes, with all below them" in said


@pytest.mark.parametrize("end", [b"", b"100\r\nx", b"zz\r\n", b"5\r\nabcde"])
def test_an_archive_that_breaks_off_is_no_file(service: Service, svc: Svc, end: bytes) -> None:
    packs(service, CONTENT, end=end)
    outcome = svc("fs", "archive", "work/in", "b.tgz")
    assert outcome.code == 1
    assert outcome.err.endswith("hint: svc fs archive work/in b.tgz\n")
    assert files() == set()


def test_an_archive_to_standard_output(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    packs(service, CONTENT)
    out = Stream(terminal=False)
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["fs", "archive", "work/in", "-"]) == 0
    assert out.buffer.getvalue() == CONTENT  # type: ignore[attr-defined]


def test_a_silent_end_is_told(service: Service, svc: Svc) -> None:
    def die(connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_RDWR)

    service.raw(ARCHIVE, die)
    assert svc("fs", "archive", "work/in").err.endswith("hint: svc fs archive work/in\n")
    assert files() == set()
