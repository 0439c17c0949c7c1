"""A file's bytes through both real listeners: whole or not at all, whoever lies, stalls or vanishes."""

from __future__ import annotations

import array
import contextlib
import os
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from unit.filing import FACTS, noise
from unit.web.gunicorn_worker.test_listeners import Shared, shared_listeners, socket_folder  # noqa: F401  (a fixture)
from unit.web.transferring import OCTETS, Way, chunked, soon

from svc.helper.transfers import DataStream
from svc.limits import ARCHIVE_BYTES_MAX, ARCHIVE_MEMBERS_MAX
from svc.web.gunicorn_worker import transfers
from svc_helper.wire import protocol

MIB = 1024 * 1024
LARGE = noise(24 * MIB + 4321)
DOWN, UP = "/api/fs/work/download?path=", "/api/fs/work/file?path="
ARCHIVE = "/api/fs/work/archive?path=deep"
READY = {"progress": {"ready": True}}
Speak = Callable[[protocol.Call, socket.socket, socket.socket], bool]


def waits(seconds: float) -> dict[str, float]:
    """How long the listener waits for a slow client or agent."""
    return {
        "svc.web.gunicorn_worker.transfers.FILE_RATE_S": seconds,
        "svc.web.gunicorn_worker.fair_worker.READING_S": seconds,
    }


def opened(kind: str, shared: Shared) -> Way:
    """One of the listeners."""
    way = Way(
        shared.start, shared.start.far, shared.settings, shared.settings.db, shared.folder, tls=kind == "tls"
    )
    if kind == "guarded unix":
        way.endpoint.let_descriptors_through()
    return way


@pytest.fixture(scope="module", params=["unix", "tls"])
def shared_way(request: Any, tmp_path_factory: Any, socket_folder: Path) -> Iterator[Way]:  # noqa: F811  (fixture)
    """A listener for all tests that neither end nor damage it."""
    with shared_listeners(
        tmp_path_factory.mktemp("shared"), socket_folder, waits(5), SVC_UPLOAD_MAX="64m"
    ) as shared:
        yield opened(request.param, shared)


@pytest.fixture
def way(shared_way: Way) -> Way:
    """That listener, of which this test has seen nothing yet."""
    shared_way.renew()
    shared_way.far.files.content[b"large"] = LARGE
    return shared_way


@pytest.fixture(params=["unix", "tls"])
def own_way(request: Any, tmp_path: Path, socket_folder: Path, timeout_s: float) -> Iterator[Way]:  # noqa: F811
    """A listener of the test's own."""
    with shared_listeners(tmp_path, socket_folder, waits(timeout_s), SVC_UPLOAD_MAX="64m") as shared:
        way = opened(request.param, shared)
        way.far.files.content[b"large"] = LARGE
        yield way


@pytest.fixture
def timeout_s() -> float:
    """For `own_way`; tests of a stall set a shorter time."""
    return 5


stalls_briefly = pytest.mark.parametrize("timeout_s", [0.3])


# Uploads are read in another way where the kernel lets descriptors through.
WAYS = ("unix", "tls", "guarded unix")
by_each_way = pytest.mark.parametrize("shared_way", WAYS, indirect=True)
by_each_own_way = pytest.mark.parametrize("own_way", WAYS, indirect=True)


def files(way: Way) -> dict[bytes, bytes]:
    return way.far.files.content


def speaks(way: Way, speak: Speak) -> None:
    """From now on the agent does this."""
    way.far.files.before = speak


def facts(size: int) -> dict[str, Any]:
    return {"progress": {"size": size, **FACTS}}


# --- what comes down --------------------------------------------------------------------


def test_a_download_is_whole_and_the_connection_goes_on(way: Way) -> None:
    files(way)[b"empty"] = b""
    with way.connected() as wire:
        for path, content in (("large", LARGE), ("notes.txt", b"hello"), ("empty", b""), ("large", LARGE)):
            got = wire.ask("GET", DOWN + path)
            assert (got.status, got.body == content, got.whole) == (200, True, True), path
        wire.send("GET", DOWN + "large", body=wire.head("GET", "/api/users/me"))  # two at once
        assert wire.got().body == LARGE
        assert wire.got().status == 200
    outcome, detail = way.outcome("fs.download")
    assert (outcome, detail["bytes"]) == ("ok", len(LARGE))
    head = got.head
    assert head["content-type"] == "application/octet-stream"
    assert head["x-content-type-options"] == "nosniff"
    assert head["accept-ranges"] == "bytes"
    assert head["content-disposition"] == "attachment; filename=\"large\"; filename*=UTF-8''large"
    assert head["last-modified"] == "Tue, 14 Nov 2023 22:13:20 GMT"


def test_a_part_of_a_file(way: Way) -> None:
    with way.connected() as wire:
        whole = wire.ask("HEAD", DOWN + "large")
        assert (whole.status, whole.head["content-length"]) == (200, str(len(LARGE)))
        etag = whole.head["etag"]
        got = wire.ask("GET", DOWN + "large", "Range: bytes=5-1048580", f"If-Range: {etag}")
        assert (got.status, got.body == LARGE[5:1048581]) == (206, True)
        assert got.head["content-range"] == f"bytes 5-1048580/{len(LARGE)}"
        assert wire.ask("GET", DOWN + "large", f"Range: bytes={len(LARGE) - 3}-").body == LARGE[-3:]
        assert wire.ask("GET", DOWN + "large", "Range: bytes=-3").body == LARGE[-3:]
        assert wire.ask("GET", DOWN + "large", "Range: bytes=0-3", 'If-Range: "other"').status == 200
        assert wire.ask("HEAD", DOWN + "large", "Range: bytes=0-3").head["content-length"] == "4"
        got = wire.ask("GET", DOWN + "large", f"If-None-Match: {etag}")
        assert (got.status, got.body, got.head["etag"]) == (304, b"", etag)
        got = wire.ask("GET", DOWN + "large", f"Range: bytes={len(LARGE)}-")
        assert (got.status, got.code) == (416, "range_unsatisfiable")
        assert got.head["content-range"] == f"bytes */{len(LARGE)}"
        assert wire.ask("GET", "/api/users/me").status == 200
    outcomes = [outcome for outcome, _ in way.audit("fs.download") if outcome != "begun"]
    assert outcomes.count("range_unsatisfiable") == 1
    assert outcomes.count("ok") == len(outcomes) - 1


def test_a_file_that_ends_early_is_not_filled_up(way: Way) -> None:
    def shrinks(call: protocol.Call, reply: socket.socket, line: socket.socket) -> bool:
        protocol.send(reply, facts(MIB))
        assert protocol.receive(reply).message == {"go": [0, MIB]}
        line.sendall(bytes(1000))
        line.close()
        arguments = "the file became shorter while it was read"
        protocol.send(reply, {"ok": False, "code": "conflict", "message": arguments})
        return True

    speaks(way, shrinks)
    got = way.ask("GET", DOWN + "notes.txt")
    assert (got.status, got.whole) == (200, False)
    outcome, detail = way.outcome("fs.download")
    assert (outcome, detail["cut_off"]) == ("conflict", "the file became shorter while it was read")
    assert detail["bytes"] == len(got.body) <= 1000


def test_more_than_was_promised_is_not_sent(way: Way) -> None:
    def grows(call: protocol.Call, reply: socket.socket, line: socket.socket) -> bool:
        protocol.send(reply, facts(10))
        protocol.receive(reply)
        line.sendall(b"0123456789HTTP/1.1 200 OK\r\n\r\n")
        with contextlib.suppress(EOFError, OSError):
            protocol.receive(reply)  # until the app has gone
        return True

    speaks(way, grows)
    with way.connected() as wire:
        assert wire.ask("GET", DOWN + "notes.txt").body == b"0123456789"
        assert wire.ask("GET", "/api/users/me").json["name"]


@pytest.mark.parametrize(
    "said",
    [
        {"size": -1, **FACTS}, {"size": "5", **FACTS}, {"size": 5}, {"size": 2**63, **FACTS},
        {"ready": True}, {},
    ],
)  # fmt: skip
def test_nonsense_about_a_file(way: Way, said: dict[str, Any]) -> None:
    def lies(call: protocol.Call, reply: socket.socket, line: socket.socket) -> bool:
        protocol.send(reply, {"progress": said})
        with contextlib.suppress(EOFError, OSError):
            protocol.receive(reply)
        return True

    speaks(way, lies)
    got = way.ask("GET", DOWN + "notes.txt")
    assert (got.status, got.code) == (502, "engine_failed")
    assert way.outcome("fs.download")[0] == "engine_failed"
    if said != {"ready": True}:
        assert way.put(UP + "new", b"x").code == "engine_failed"


def test_an_agent_that_ends_at_once_or_sends_descriptors(way: Way) -> None:
    speaks(way, lambda call, reply, line: True)
    assert way.ask("GET", DOWN + "notes.txt").code == "engine_unavailable"
    assert way.put(UP + "new", b"x").code == "engine_unavailable"
    sockets = way.open_sockets()

    def gives(call: protocol.Call, reply: socket.socket, line: socket.socket) -> bool:
        protocol.send(reply, facts(5))
        protocol.receive(reply)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [line.fileno(), reply.fileno()]))]
        with contextlib.suppress(OSError):  # refused where the kernel can
            line.sendmsg([b"hello"], rights)
        return True

    speaks(way, gives)
    for _ in range(5):
        assert not way.ask("GET", DOWN + "notes.txt").whole
    assert soon(lambda: way.open_sockets() <= sockets)


@stalls_briefly
def test_an_agent_that_stalls(own_way: Way) -> None:
    def stalls(call: protocol.Call, reply: socket.socket, line: socket.socket) -> bool:
        protocol.send(
            reply, {"progress": {"ready": True}} if call.verb.name == "fs.write" else facts(2 * MIB)
        )
        with contextlib.suppress(EOFError, OSError):
            while True:  # until the app has had enough
                protocol.receive(reply)
        return True

    speaks(own_way, stalls)
    got = own_way.ask("GET", DOWN + "notes.txt")
    assert (got.status, got.whole) == (200, False)
    assert own_way.outcome("fs.download")[0] == "engine_timeout"
    got = own_way.put(UP + "new", LARGE)
    assert got.status in (504, 0)  # the client may still be sending when the connection ends
    assert own_way.outcome("fs.upload")[0] == "engine_timeout"


@stalls_briefly
def test_a_client_that_stops_reading(own_way: Way) -> None:
    with own_way.connected() as wire:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.send("GET", DOWN + "large")
        outcome, detail = own_way.outcome("fs.download")
    assert outcome == "conflict"
    assert "client moved fewer than" in detail["cut_off"]
    assert 0 < detail["bytes"] < len(LARGE)


@pytest.mark.parametrize("timeout_s", [1.0])
def test_a_client_that_reads_slowly(own_way: Way) -> None:
    """Fast enough by the rule, while the kernel calls the socket too full to be written to."""
    part = 64 * 1024
    with own_way.connected() as wire:
        wire.send("GET", DOWN + "large")
        assert wire.begun()[0] == 200
        for _ in range(40):
            time.sleep(0.1)
            assert len(wire.file.read(part)) == part
        rest = len(LARGE) - 40 * part
        assert len(wire.file.read(rest)) == rest
    assert own_way.outcome("fs.download")[0] == "ok"


def test_a_client_that_goes(way: Way) -> None:
    sockets = way.open_sockets()
    for _ in range(6):  # more than one may have at once
        with way.connected() as wire:
            wire.send("GET", DOWN + "large")
            assert wire.begun()[0] == 200
            wire.file.read(100_000)
        outcome, detail = way.outcome("fs.download")
        assert (outcome, detail["cut_off"]) == ("conflict", "the caller has gone")
    assert soon(lambda: way.open_sockets() <= sockets)


def slowly(call: protocol.Call, reply: socket.socket, line: socket.socket) -> bool:
    """A file of 100 MiB that comes at leisure."""
    protocol.send(reply, facts(100 * MIB))
    protocol.receive(reply)
    with contextlib.suppress(OSError):
        while True:
            line.sendall(bytes(64 * 1024))
            time.sleep(0.05)
    return True


def test_who_may_not_read_any_more_gets_no_more(own_way: Way) -> None:
    speaks(own_way, slowly)
    with own_way.connected() as wire:
        wire.send("GET", DOWN + "notes.txt")
        assert wire.begun()[0] == 200
        own_way.sql("UPDATE users SET disabled = 1")
        while wire.file.read(10_000):  # to its early end
            pass
    outcome, detail = own_way.outcome("fs.download")
    assert outcome in ("account_disabled", "unauthenticated")
    assert detail["bytes"] < 100 * MIB


@by_each_own_way
def test_who_is_disabled_while_they_upload_leaves_nothing(own_way: Way) -> None:
    with own_way.connected() as wire:
        wire.send("PUT", UP + "new", OCTETS, "Content-Length: 10", body=b"12345")
        assert soon(lambda: own_way.audit("fs.upload"))
        own_way.sql("UPDATE users SET disabled = 1")
        time.sleep(0.2)  # longer than what counts as at once
        wire.sock.sendall(b"67890")
        assert wire.got().code in ("account_disabled", "unauthenticated")
    assert b"new" not in files(own_way)
    assert own_way.outcome("fs.upload")[0] in ("account_disabled", "unauthenticated")


# --- what goes up -----------------------------------------------------------------------


@by_each_way
def test_an_upload_is_whole_and_the_connection_goes_on(way: Way) -> None:
    with way.connected() as wire:
        for number, content in enumerate((LARGE, b"", b"x" * 20_000, LARGE)):
            length = f"Content-Length: {len(content)}"
            got = wire.ask("PUT", f"{UP}new{number}", OCTETS, length, body=content)
            assert (got.status, got.json["size"], got.json["replaced"]) == (201, len(content), False)
            assert files(way)[b"new%d" % number] == content
        # The body in the same packet as the head, and another request behind it.
        both = b"body" + wire.head("GET", "/api/users/me")
        assert wire.ask("PUT", UP + "small", OCTETS, "Content-Length: 4", body=both).status == 201
        assert wire.got().status == 200
        assert files(way)[b"small"] == b"body"
    assert way.outcome("fs.upload")[0] == "ok"


@by_each_way
def test_an_upload_in_pieces_with_a_request_behind_it(way: Way) -> None:
    with way.connected() as wire:
        wire.send("PUT", UP + "new", OCTETS, f"Content-Length: {3 * MIB}")
        for at in range(0, 3 * MIB, MIB // 2):
            wire.sock.sendall(LARGE[at : at + MIB // 2])
            time.sleep(0.02)
        wire.send("GET", "/api/users/me")
        assert wire.got().status == 201
        assert wire.got().status == 200
    assert files(way)[b"new"] == LARGE[: 3 * MIB]


@by_each_way
def test_the_end_of_a_body_comes_with_the_next_request(way: Way) -> None:
    """In one TLS record, whose rest stays for the server's own reader."""
    with way.connected() as wire:
        for _ in range(2):
            wire.send("PUT", UP + "new&force=true", OCTETS, f"Content-Length: {MIB}", body=LARGE[: MIB - 9])
            time.sleep(0.02)
            wire.sock.sendall(LARGE[MIB - 9 : MIB] + wire.head("GET", "/api/users/me"))
            assert wire.got().status == 201
            assert wire.got().status == 200
    assert files(way)[b"new"] == LARGE[:MIB]


@by_each_way
def test_an_upload_in_chunks(way: Way) -> None:
    with way.connected() as wire:
        parts = (LARGE[:MIB], LARGE[MIB : MIB + 3], LARGE[MIB + 3 :])
        wire.send(
            "PUT", UP + "new", OCTETS, "Transfer-Encoding: chunked", body=chunked(*parts) + b"0\r\n\r\n"
        )
        assert wire.got().status == 201
        assert wire.ask("GET", "/api/users/me").status == 200
    assert files(way)[b"new"] == LARGE
    with way.connected() as wire:
        wire.send("PUT", UP + "more", OCTETS, "Transfer-Encoding: chunked")
        with contextlib.suppress(ConnectionResetError, BrokenPipeError, ssl.SSLError):
            for _ in range(100):
                wire.sock.sendall(chunked(bytes(MIB)))
    outcome, detail = way.outcome("fs.upload")
    assert (outcome, b"more" in files(way)) == ("too_large", False)
    assert detail["bytes"] <= 64 * MIB


@pytest.mark.parametrize("cut", ["length", "chunk", "no end", "no chunk"])
@by_each_way
def test_a_body_that_is_cut_short_leaves_nothing(way: Way, cut: str) -> None:
    with way.connected() as wire:
        if cut == "length":
            wire.send("PUT", UP + "new", OCTETS, f"Content-Length: {2 * MIB}", body=LARGE[:MIB])
        else:
            body = (
                chunked(LARGE[:MIB]) + {"chunk": b"100000\r\nabc", "no end": b"", "no chunk": b"zz\r\n"}[cut]
            )
            wire.send("PUT", UP + "new", OCTETS, "Transfer-Encoding: chunked", body=body)
        if not way.tls:
            wire.sock.shutdown(socket.SHUT_WR)
            assert wire.got().code == "invalid_request"
    assert way.outcome("fs.upload")[0] == "invalid_request"
    assert b"new" not in files(way)


@stalls_briefly
@by_each_own_way
def test_a_client_that_stops_sending(own_way: Way) -> None:
    with own_way.connected() as wire:
        wire.send("PUT", UP + "new", OCTETS, "Content-Length: 100", body=b"x")
        outcome, _ = own_way.outcome("fs.upload")
    assert outcome in ("conflict", "invalid_request")
    assert b"new" not in files(own_way)


@by_each_way
def test_an_upload_that_is_refused_is_refused_before_its_body(way: Way) -> None:
    too_large = ("PUT", UP + "new", OCTETS, f"Content-Length: {64 * MIB + 1}")
    with way.connected() as wire:
        wire.send(*too_large)
        got = wire.got()
        assert (got.code, got.json["error"]["details"]) == (
            "too_large", {"limit": 64 * MIB, "size": 64 * MIB + 1},
        )  # fmt: skip
    assert way.ask("PUT", UP + "notes.txt", OCTETS, "Content-Length: 100").code == "file_exists"
    form = way.ask("PUT", UP + "x", "Content-Type: text/plain", "Content-Length: 9")
    assert form.code == ("cross_site" if way.tls else "invalid_request")
    assert way.ask("PUT", UP + "x", OCTETS).code == "invalid_request"
    assert way.put(UP + "notes.txt&force=true", b"newer").json["replaced"] is True
    assert files(way)[b"notes.txt"] == b"newer"


@pytest.mark.parametrize(
    "how", ["Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked\r\nContent-Encoding: gzip"]
)
def test_a_body_that_is_encoded_is_refused(way: Way, how: str) -> None:
    got = way.ask("PUT", UP + "new", OCTETS, how, body=chunked(b"hello") + b"0\r\n\r\n")
    assert (got.status, got.code, b"new" in files(way)) == (400, "invalid_request", False)
    plain = way.ask(
        "PUT", UP + "new", OCTETS, "Transfer-Encoding: Chunked", body=chunked(b"hello") + b"0\r\n\r\n"
    )
    assert (plain.status, files(way)[b"new"]) == (201, b"hello")


@pytest.mark.parametrize("framing", ["Content-Length: 8388608", "Transfer-Encoding: chunked"])
@by_each_way
def test_an_agent_that_fails_while_nothing_is_sent_is_heard(way: Way, framing: str) -> None:
    def full(call: protocol.Call, reply: socket.socket, line: socket.socket) -> bool:
        protocol.send(reply, READY)
        line.recv(1000)
        protocol.send(reply, {"ok": False, "code": "storage_full", "message": "no space is left"})
        return True

    speaks(way, full)
    body = bytes(2 * transfers.BODY_PART)
    with way.connected() as wire:
        wire.send("PUT", UP + "new", OCTETS, framing, body=chunked(body) if "chunked" in framing else body)
        assert wire.got().code == "storage_full"


@by_each_way
def test_an_agent_that_fails_during_an_upload_is_heard_at_once(way: Way) -> None:
    def full(call: protocol.Call, reply: socket.socket, line: socket.socket) -> bool:
        protocol.send(reply, READY)
        line.recv(1000)
        protocol.send(reply, {"ok": False, "code": "storage_full", "message": "no space is left"})
        return True

    speaks(way, full)
    with way.connected() as wire:
        wire.send("PUT", UP + "new", OCTETS, f"Content-Length: {8 * MIB}", body=LARGE[:MIB])
        assert wire.got().code == "storage_full"
    assert way.outcome("fs.upload")[0] == "storage_full"


@pytest.mark.parametrize("size", [4, 6])
def test_an_agent_that_says_it_took_another_size(way: Way, size: int) -> None:
    def lies(call: protocol.Call, reply: socket.socket, line: socket.socket) -> bool:
        protocol.send(reply, READY)
        while line.recv(1000):
            pass
        assert protocol.receive(reply).message == {"commit": 5}
        protocol.send(reply, {"ok": True, "data": {"size": size, **FACTS, "replaced": False}})
        return True

    speaks(way, lies)
    assert way.put(UP + "new", b"12345").code == "engine_failed"


# --- archives ---------------------------------------------------------------------------


def test_an_archive_comes_in_chunks(way: Way) -> None:
    way.far.files.archived = LARGE
    with way.connected() as wire:
        got = wire.ask("GET", ARCHIVE)
        assert (got.status, got.body == LARGE, got.whole) == (200, True, True)
        assert wire.ask("GET", "/api/users/me").status == 200
        head = wire.ask("HEAD", ARCHIVE).head
        assert (head["x-svc-archive-members"], "content-length" in head) == ("2", False)
        assert wire.ask("GET", "/api/users/me").status == 200
    assert got.head["content-type"] == "application/gzip"
    assert 'filename="deep.tar.gz"' in got.head["content-disposition"]
    assert (got.head["x-svc-archive-bytes"], got.head["x-svc-archive-skipped"]) == ("5", "1")
    outcome, detail = way.audit("fs.archive")[1]
    assert (outcome, detail["bytes"], detail["members"]) == ("ok", len(LARGE), 2)


def test_too_much_for_an_archive_is_said_before_it_begins(way: Way) -> None:
    for key, most in (("members", ARCHIVE_MEMBERS_MAX), ("bytes", ARCHIVE_BYTES_MAX)):
        way.far.files.counted = {"members": 1, "bytes": 1, "skipped": 0} | {key: most + 1}
        got = way.ask("GET", ARCHIVE)
        assert (got.status, got.json["error"]["details"]) == (413, {"limit": most, key: most + 1})


def test_an_archive_that_fails_has_no_end(way: Way) -> None:
    def fails(call: protocol.Call, reply: socket.socket, line: socket.socket) -> bool:
        protocol.send(reply, {"progress": {"members": 1, "bytes": 1, "skipped": 0}})
        protocol.receive(reply)
        line.sendall(b"something")
        line.close()
        protocol.send(reply, {"ok": False, "code": "failed", "message": "the compressor failed"})
        return True

    speaks(way, fails)
    got = way.ask("GET", ARCHIVE)
    assert (got.status, got.whole) == (200, False)
    assert way.outcome("fs.archive")[0] == "engine_failed"


def test_an_archive_needs_chunks(way: Way) -> None:
    with way.connected() as wire:
        wire.sock.sendall(wire.head("GET", ARCHIVE).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        assert wire.got().code == "invalid_request"


# --- the end of the listener ----------------------------------------------------------------


UPLOADS = ("up", "idle", "sent")


@pytest.mark.parametrize("which", ["down", *UPLOADS, "unread"])
@by_each_own_way
def test_a_transfer_ends_with_the_listener(own_way: Way, which: str) -> None:
    def stalls(call: protocol.Call, reply: socket.socket, line: socket.socket) -> bool:
        protocol.send(reply, READY if which in UPLOADS else facts(2 * MIB))
        with contextlib.suppress(EOFError, OSError):
            while True:
                protocol.receive(reply)
        return True

    if which != "unread":
        speaks(own_way, stalls)
    with own_way.connected() as wire:
        if which == "up":
            wire.send("PUT", UP + "new", OCTETS, f"Content-Length: {len(LARGE)}", body=LARGE[:MIB])
        elif which == "idle":
            wire.send("PUT", UP + "new", OCTETS, "Transfer-Encoding: chunked", body=chunked(b"some"))
        elif which == "sent":  # all of it, which the agent does not say to be there
            wire.send("PUT", UP + "new", OCTETS, "Content-Length: 5", body=b"hello")
        else:
            wire.send("GET", DOWN + "large")
        assert soon(lambda: any(call.verb.name.startswith("fs.") for call in own_way.far.calls))
        began = time.monotonic()
        os.kill(own_way.endpoint.pid, signal.SIGTERM)
        if which in UPLOADS:
            assert wire.got().code == "maintenance"
        has_ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
        assert soon(lambda: os.waitid(os.P_PID, own_way.endpoint.pid, has_ended), 20)
        assert time.monotonic() - began < 10
    _, detail = own_way.outcome("fs.upload" if which in UPLOADS else "fs.download")
    assert detail.get("cut_off") != "the caller has gone"  # the listener did


def test_an_old_kernel_splices_nothing_into_the_data_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """There a splice waits for whoever reads the far end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        incoming = object.__new__(transfers.Incoming)
        incoming.stream, incoming.detail, incoming.count = DataStream(ours, lambda fds: None), {}, 0
        incoming.pace = transfers.Pace()
        incoming.stream.may_splice = False
        monkeypatch.delattr("os.splice")
        reader, writer = os.pipe()
        os.write(writer, b"hello")
        incoming._drain(reader, 5)
        assert (theirs.recv(10), incoming.count) == (b"hello", 5)
        os.close(reader)
        os.close(writer)
