"""`svc fs upload` against a service that answers from a table."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from fake_service import Service, Svc

from svc.cli.fs import upload as fs_upload
from svc.client import sending

NEW = "PUT /api/fs/work/file?path=in%2Fa.txt"  # refused where a file is
PUT = f"{NEW}&force=true"
CONTENT = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the test stands, with a file."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_bytes(CONTENT)


def takes(service: Service, line: str = PUT, size: int = len(CONTENT), **more: Any) -> None:
    answer = {"path": "in/a.txt", "size": size, "modified_at": None, "replaced": False, "etag": "e"} | more
    service.answer(line, answer, status=201)


def test_a_file_arrives_with_its_length(service: Service, svc: Svc) -> None:
    takes(service)
    assert svc("fs", "upload", "a.txt", "work/in/a.txt") == (0, f"work/in/a.txt\t{len(CONTENT)}\tfalse\n", "")
    assert service.last.body == CONTENT
    assert service.last.fields["content-length"] == str(len(CONTENT))
    assert service.last.fields["content-type"] == "application/octet-stream"
    printed = svc("fs", "upload", "a.txt", "work/in/a.txt", terminal=True)
    assert printed.out.startswith("work/in/a.txt is uploaded (1.0 MiB")
    assert "\r\x1b[K[" in printed.err and printed.err.endswith("\r\x1b[K")
    assert json.loads(svc("fs", "upload", "a.txt", "work/in/a.txt", "--json").out)["etag"] == "e"
    assert set(service.sent) == {PUT}  # a small file needs no question first


def test_a_slash_keeps_the_local_name(service: Service, svc: Svc) -> None:
    """ "A trailing `/` on the destination keeps the local file name"."""
    takes(service)
    os.mkdir("deep")
    os.rename("a.txt", "deep/a.txt")
    assert svc("fs", "upload", "deep/a.txt", "work/in/").code == 0
    takes(service, "PUT /api/fs/work/file?path=a.txt&force=true")
    assert svc("fs", "upload", "deep/a.txt", "work/").code == 0
    refused = svc("fs", "upload", "deep/a.txt", "work")
    assert (refused.code, refused.err.endswith("hint: svc fs upload deep/a.txt work/\n")) == (2, True)
    assert service.sent == [PUT, "PUT /api/fs/work/file?path=a.txt&force=true"]


def test_what_is_replaced_is_said(service: Service, svc: Svc) -> None:
    takes(service, PUT, replaced=True)
    for force in ([], ["--force"]):
        assert svc("fs", "upload", "a.txt", "work/in/a.txt", *force).out.endswith("\ttrue\n")
    printed = svc("fs", "upload", "a.txt", "work/in/a.txt", terminal=True).out
    assert printed.startswith("work/in/a.txt is replaced (")


def test_what_is_there_stays(service: Service, svc: Svc) -> None:
    """With --no-clobber; the hint replaces it."""
    service.refuse(NEW, 409, "file_exists", "it is there", hint="something general")
    outcome = svc("fs", "upload", "a.txt", "work/in/", "--no-clobber")
    assert outcome == (1, "", "svc: it is there\nhint: svc fs upload a.txt work/in/a.txt\n")
    both = svc("fs", "upload", "a.txt", "work/in/", "--no-clobber", "--force")
    assert (both.code, "exclude each other" in both.err) == (2, True)


def test_standard_input_is_sent_in_chunks(service: Service, svc: Svc) -> None:
    takes(service)
    assert svc("fs", "upload", "-", "work/in/a.txt", stdin=CONTENT).code == 0
    assert service.last.body == CONTENT
    assert service.last.fields["transfer-encoding"] == "chunked"
    assert "content-length" not in service.last.fields
    takes(service, "PUT /api/fs/work/file?path=empty&force=true", size=0)
    assert svc("fs", "upload", "-", "work/empty").code == 0
    assert service.last.body == b""


def test_standard_input_has_no_name(service: Service, svc: Svc) -> None:
    for destination in ("work/in/", "work", "work/"):
        outcome = svc("fs", "upload", "-", destination)
        assert (outcome.code, "no name" in outcome.err) == (2, True)
    assert service.sent == []


def test_an_open_file_of_the_shell_is_sent_to_its_end(service: Service, svc: Svc) -> None:
    """As of `svc fs upload <(COMMAND) work/in/a.txt`: a pipe, which has no name to keep."""
    takes(service, size=5)
    reader, writer = os.pipe()
    os.write(writer, b"piped")
    os.close(writer)
    try:
        assert svc("fs", "upload", f"/dev/fd/{reader}", "work/in/a.txt").code == 0
        nameless = svc("fs", "upload", f"/dev/fd/{reader}", "work/in/")
    finally:
        os.close(reader)
    assert (service.last.body, service.last.fields["transfer-encoding"]) == (b"piped", "chunked")
    assert (nameless.code, "no name to keep" in nameless.err) == (2, True)
    assert svc("fs", "upload", "/dev/stdin", "work/in/a.txt", stdin=b"piped").code == 0
    assert service.last.body == b"piped"


def test_an_empty_file_has_a_length(service: Service, svc: Svc) -> None:
    takes(service, size=0)
    Path("a.txt").write_bytes(b"")
    assert svc("fs", "upload", "a.txt", "work/in/").code == 0
    assert (service.last.fields["content-length"], service.last.body) == ("0", b"")


def test_a_file_without_a_size_is_sent_to_its_end(service: Service, svc: Svc) -> None:
    """As those of /proc."""
    content = Path("/proc/version").read_bytes()
    takes(service, "PUT /api/fs/work/file?path=version&force=true", size=len(content))
    assert svc("fs", "upload", "/proc/version", "work/").code == 0
    assert service.last.body == content


def test_a_file_that_grows_is_sent_as_it_was(
    service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(service)
    real = sending.send

    def grown(*value: Any, **more: Any) -> Any:
        with open("a.txt", "ab") as file:
            file.write(b"more")
        return real(*value, **more)

    monkeypatch.setattr(sending, "send", grown)
    assert svc("fs", "upload", "a.txt", "work/in/").code == 0
    assert service.last.body == CONTENT


def test_a_file_that_shrinks_is_not_taken(
    service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(service)
    real = sending.send

    def shrunk(*value: Any, **more: Any) -> Any:
        os.truncate("a.txt", 10)
        return real(*value, **more)

    monkeypatch.setattr(sending, "send", shrunk)
    outcome = svc("fs", "upload", "a.txt", "work/in/")
    assert (outcome.code, "was truncated" in outcome.err) == (1, True)


def test_any_name_goes_out(service: Service, svc: Svc) -> None:
    """Bytes that are no UTF-8, and what an URL would take for its own."""
    name = os.fsdecode(b"caf\xe9 ?&%#\n")
    os.rename("a.txt", name)
    takes(service, "PUT /api/fs/work/file?path=caf%E9%20%3F%26%25%23%0A&force=true")
    outcome = svc("fs", "upload", name, "work/", terminal=True)
    assert outcome.code == 0
    assert outcome.out.startswith("work/caf\\xe9 ?&%#\\n is uploaded")


@pytest.mark.parametrize("name", ["pipe", "none", "a\0b", "link"])
def test_what_is_no_file_is_not_sent(service: Service, svc: Svc, name: str) -> None:
    os.mkfifo("pipe")
    os.symlink("pipe", "link")
    outcome = svc("fs", "upload", name, "work/in/")
    assert (outcome.code, outcome.err[:5]) == (1, "svc: ")
    assert service.sent == []


def test_a_directory_has_a_way_in(service: Service, svc: Svc) -> None:
    os.mkdir("my data")
    outcome = svc("fs", "upload", "my data", "work/")
    assert outcome.code == 1
    assert "hint: tar -c 'my data' | svc fs upload - 'work/my data.tar'\n" in outcome.err
    assert service.sent == []


def test_a_directory_in_its_place_has_the_file_put_into_it(service: Service, svc: Svc) -> None:
    service.refuse(PUT, 409, "conflict", "work/in/a.txt: it is a directory")
    assert svc("fs", "upload", "a.txt", "work/in/a.txt", "--force") == (
        1, "", "svc: work/in/a.txt: it is a directory\nhint: svc fs upload a.txt work/in/a.txt/ --force\n"
    )  # fmt: skip


def test_too_much_is_refused_before_a_byte_is_sent(
    service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fs_upload, "UNCHECKED_MAX", len(CONTENT) - 1)
    service.answer("GET /api/fs/roots", {"items": [], "limits": {"upload_max_bytes": len(CONTENT) - 1}})
    outcome = svc("fs", "upload", "a.txt", "work/in/")
    assert (outcome.code, service.sent) == (1, ["GET /api/fs/roots"])
    assert f"{len(CONTENT)} bytes; an upload has at most {len(CONTENT) - 1}" in outcome.err
    service.replies.clear()
    service.answer("GET /api/fs/roots", {"items": [], "limits": {"upload_max_bytes": len(CONTENT)}})
    takes(service)
    assert svc("fs", "upload", "a.txt", "work/in/").code == 0


def test_a_refusal_in_the_middle_is_heard(service: Service, svc: Svc) -> None:
    """The service answers and hangs up while most of the file is still to be sent."""
    os.truncate("a.txt", 32 * 1024 * 1024)
    service.reads_bodies = False
    service.refuse(PUT, 413, "too_large", "an upload has at most 5 bytes", details={"limit": 5})
    outcome = svc("fs", "upload", "a.txt", "work/in/")
    assert outcome == (1, "", "svc: an upload has at most 5 bytes\n")


@pytest.mark.parametrize("stdin", [False, True])
def test_a_connection_that_breaks_says_what_to_run_again(service: Service, svc: Svc, stdin: bool) -> None:
    def die(connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_RDWR)

    service.reads_bodies = False
    service.raw(NEW, die)
    local = "-" if stdin else "a.txt"
    outcome = svc("fs", "upload", local, "work/in/a.txt", "--no-clobber", stdin=CONTENT)
    assert outcome.code == 1
    assert outcome.err.endswith(f"hint: svc fs upload {local} work/in/a.txt --no-clobber\n")


def test_a_service_that_is_not_there_is_another_matter(svc: Svc) -> None:
    outcome = svc("fs", "upload", "a.txt", "work/in/")
    assert "cannot connect to the service" in outcome.err
    assert "fs upload" not in outcome.err


@pytest.mark.parametrize("size", [None, 5, "x"])
def test_a_service_that_took_something_else(service: Service, svc: Svc, size: object) -> None:
    takes(service, size=size)  # type: ignore[arg-type]  # what a broken service might say
    outcome = svc("fs", "upload", "a.txt", "work/in/")
    assert (outcome.code, outcome.out, "were sent" in outcome.err) == (1, "", True)


def test_too_many_at_once_may_be_tried_again(service: Service, svc: Svc) -> None:
    service.refuse(PUT, 429, "too_many_requests", "four transfers are under way")
    assert svc("fs", "upload", "a.txt", "work/in/").err.endswith("hint: svc fs upload a.txt work/in/a.txt\n")
    raw = svc("fs", "upload", "a.txt", "work/in/", "--json")
    assert (raw.code, json.loads(raw.out)["error"]["code"]) == (1, "too_many_requests")
