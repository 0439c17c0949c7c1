"""`svc ws logs`: of the container, of a launcher, and followed."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from fake_service import Service, Svc

LOGS = "GET /api/workspaces/demo/logs"
RAW = "GET /api/workspaces/demo/logs/raw"
STREAM = "GET /api/workspaces/demo/logs/stream"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"event: end\ndata: {}\n\n"
MARKER = b'event: marker\ndata: {"text": "started"}\n\n'


def chunked(*parts: bytes, whole: bool = True) -> bytes:
    """An answer in these chunks; not `whole` breaks off."""
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in parts]
    return HEAD + b"".join(chunks) + (b"0\r\n\r\n" if whole else b"")


def log(text: str) -> bytes:
    return b"event: log\ndata: " + json.dumps({"text": text}).encode() + b"\n\n"


def placed(text: str, place: str) -> bytes:
    return f"id: {place}\n".encode() + log(text)


def raw(*parts: bytes, whole: bool = True, **fields: str) -> bytes:
    """Raw output in these chunks; not `whole` breaks off."""
    lines = {"X-Svc-Log-Start": "0.0", "X-Svc-Log-Older-Gone": "false", "X-Svc-Log-Markers": "[]"} | {
        f"X-Svc-Log-{name.title().replace('_', '-')}": value for name, value in fields.items()
    }
    head = HEAD.replace(b"text/event-stream", b"application/octet-stream").removesuffix(b"\r\n")
    head += "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode() + b"\r\n"
    return chunked(*parts, whole=whole).replace(HEAD, head)


def test_logs(service: Service, svc: Svc) -> None:
    service.raw(RAW, raw(b"one\n", b"two"))
    assert svc("ws", "logs", "demo") == (0, "one\ntwo", ""), "and no newline of ours"
    service.raw(f"{RAW}?tail=1", raw(b"two\n", older_gone="true"))
    done = svc("ws", "logs", "demo", "--tail", "1")
    assert (done.code, done.out) == (0, "two\n")
    assert done.err == "svc: older output is gone: the newest 64 MiB or more are kept\n"
    service.answer(f"{LOGS}?tail=5", {"text": "one\ntwo", "truncated": False, "older_gone": True})
    assert json.loads(svc("ws", "logs", "demo", "--json", "--tail", "5").out)["older_gone"]


def test_on_a_terminal(service: Service, svc: Svc) -> None:
    service.raw(RAW, raw(b"\x1b[31mr\xc3", b"\xbc\x1b[0m\xff\0\x1b[2J"))
    assert svc("ws", "logs", "demo", terminal=True).out == "\x1b[31mr\u00fc\x1b[0m\ufffd\\x00\\x1b[2J\n"


def test_of_a_launcher(service: Service, svc: Svc) -> None:
    markers = [
        {"offset": 0, "text": "started 1"},
        {"offset": 3, "text": "\x1bstarted 2"},
        {"offset": 7, "text": "x"},
    ]
    service.raw(f"{RAW}?tail=5&launcher=web", raw(b"one2\n", b"34", markers=json.dumps(markers)))
    done = svc("ws", "logs", "demo", "--launcher", "web", "--tail", "5")
    assert (done.code, done.out) == (0, "one2\n34"), "markers are no part of it"
    assert done.err == "svc: web: started 1\nsvc: web: \\x1bstarted 2\nsvc: web: x\n"


def test_what_was_cut_short_is_continued(service: Service, svc: Svc) -> None:
    """The service ends a transfer to a client that does not read, such as a pager at its first page."""
    markers = json.dumps([{"offset": 0, "text": "a"}, {"offset": 6, "text": "b"}])
    service.raw(RAW, raw(b"one\n", b"tw", whole=False, start="2.45"))
    service.raw(f"{RAW}?start=2.45&skip=6", raw(b"o\nth", whole=False, start="2.45"))
    service.raw(f"{RAW}?start=2.45&skip=10", raw(b"ree\n", start="2.45"))
    assert svc("ws", "logs", "demo") == (0, "one\ntwo\nthree\n", "")
    service.raw(f"{RAW}?launcher=web", raw(b"one\ntw", whole=False, start="0.0", markers=markers))
    service.raw(f"{RAW}?launcher=web&start=0.0&skip=6", raw(b"o", start="0.0", markers=markers))
    assert svc("ws", "logs", "demo", "--launcher", "web") == (0, "one\ntwo", "svc: web: a\nsvc: web: b\n")
    service.raw(f"{RAW}?tail=2", raw(whole=False))
    done = svc("ws", "logs", "demo", "--tail", "2")
    assert (done.code, "cut short" in done.err) == (1, True), "but not without an end"


@pytest.mark.parametrize(
    "answer",
    [
        raw(b"one\n", markers="[1]"),
        raw(b"one\n", markers="{"),
        raw(b"one\n", markers='[{"offset": null, "text": ""}]'),
        HEAD + b"zz\r\n",
        HEAD.replace(b"Transfer-Encoding: chunked", b"Content-Length: 4") + b"one\n",
        b"HTTP/1.1 500 NO\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n\x1b[2J\n\r\n0\r\n\r\n",
        b"\x1b[2J",
        b"",
    ],
)
def test_a_hostile_raw_answer_steers_nothing(service: Service, svc: Svc, answer: bytes) -> None:
    service.raw(RAW, answer)
    done = svc("ws", "logs", "demo", terminal=True)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("svc: ")
    assert "\x1b" not in done.err


def test_an_empty_one_says_what_is_not_captured(service: Service, svc: Svc) -> None:
    service.raw(f"{RAW}?launcher=web", raw())
    service.raw(RAW, raw())
    service.raw(f"{RAW}?tail=0", raw())
    done = svc("ws", "logs", "demo", "--launcher", "web")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("svc: web has written nothing; processes started by hand")
    assert "the container has written nothing" in svc("ws", "logs", "demo").err
    assert svc("ws", "logs", "demo", "--tail", "0") == (0, "", "")


def test_the_help_says_what_is_not_captured(svc: Svc) -> None:
    arguments = " ".join(svc("ws", "logs", "--help").out.split())
    assert "Manually started processes and extra-app ports are not captured" in arguments


def test_follow(service: Service, svc: Svc) -> None:
    parts = (
        log("one\nt"),
        b": still here\n\n",
        log("wo\n")[:9],
        log("wo\n")[9:] + MARKER + log("\u2028\0ü"),
        END,
    )
    service.raw(f"{STREAM}?tail=3&launcher=web", chunked(*parts))
    line = ("ws", "logs", "demo", "--follow", "--tail", "3", "--launcher", "web")
    assert svc(*line) == (0, "one\ntwo\n\u2028\0ü\n", "svc: web: started\n")
    assert service.last.fields["accept"] == "text/event-stream"
    pieces = [json.loads(each) for each in svc(*line, "--json").out.splitlines()]
    texts = ["one\nt", "wo\n", "\u2028\0ü"]
    assert pieces[:2] + pieces[3:] == [{"text": text} for text in texts]
    assert pieces[2] == {"marker": "started"}


def test_follow_on_a_terminal_keeps_colours_whole_and_escapes_the_rest(service: Service, svc: Svc) -> None:
    texts = ("\x1b[3", "1mred\x1b", "[0m \x1b]0;title\x07", "\x1b[2J", "x\x1b[")
    service.raw(STREAM, chunked(*map(log, texts), END))
    out = svc("ws", "logs", "demo", "--follow", terminal=True).out
    assert out == "\x1b[31mred\x1b[0m \\x1b]0;title\\x07\\x1b[2Jx\\x1b[\n"


RESTARTING = b"retry: 700\nevent: restarting\ndata: {}\n\n"


@pytest.mark.parametrize("last", [RESTARTING, b""], ids=["stopped", "broken"])
def test_a_stream_that_was_interrupted_is_gone_on_with(
    service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch, last: bytes
) -> None:
    monkeypatch.setattr("svc.cli.ws.logs.PAUSE_S", 0.0)
    monkeypatch.setattr("svc.cli.ws.logs.PATIENCE_S", -1.0)  # as if it had been quiet for longer
    service.raw(f"{STREAM}?tail=2", chunked(placed("one\n", "0.0.4"), placed("tw", "0.49.2-") + last))
    service.raw(f"{STREAM}?tail=2&after=0.49.2-", chunked(placed("o\n", "0.49.4"), END))
    assert svc("ws", "logs", "demo", "--follow", "--tail", "2") == (0, "one\ntwo\n", "")


def test_one_without_a_place_is_not(service: Service, svc: Svc) -> None:
    service.raw(STREAM, chunked(RESTARTING))
    done = svc("ws", "logs", "demo", "--follow")
    assert (done.code, done.out, "the service is stopping" in done.err) == (1, "", True)


def test_follow_of_nothing(service: Service, svc: Svc) -> None:
    service.raw(STREAM, chunked(END))
    done = svc("ws", "logs", "demo", "--follow")
    assert (done.code, done.out) == (0, "")
    assert "has written nothing" in done.err


def test_an_error_before_and_one_on_the_way(service: Service, svc: Svc) -> None:
    service.refuse(STREAM, 429, "too_many_requests", "you already have 8")
    assert svc("ws", "logs", "demo", "--follow") == (1, "", "svc: you already have 8\n")
    error = {"error": {"code": "maintenance", "message": "being stopped"}}
    event = b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n"
    service.raw(f"{STREAM}?tail=2", chunked(log("one"), event))
    done = svc("ws", "logs", "demo", "--follow", "--tail", "2")
    assert done == (1, "one\n", "svc: being stopped\n")


@pytest.mark.parametrize(
    "answer",
    [
        chunked(log("one"), whole=False),
        chunked(log("one")),
        HEAD.replace(b"text/event-stream", b"text/html") + b"0\r\n\r\n",
        chunked(b"event: log\ndata: \x1b[2J\n\n", END),
        chunked(b"event: log\ndata: []\n\n", END),
        chunked(*[b"x" * 60_000] * 20),
        b"\x1b[2J",
    ],
)
def test_a_hostile_answer_steers_nothing(service: Service, svc: Svc, answer: bytes) -> None:
    service.raw(STREAM, answer)
    done = svc("ws", "logs", "demo", "--follow", terminal=True)
    assert done.code == 1
    assert done.out in ("", "one\n")
    assert done.err.startswith("svc: ")
    assert "\x1b" not in done.out + done.err


def test_a_reader_that_has_enough(service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    """`svc ws logs demo --follow | head -1` ends as any program in a pipe does."""
    service.raw(STREAM, chunked(log("one\n"), log("two\n"), END))

    def closed(*_: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("svc.commandline.output.Captured.write", closed)
    assert svc("ws", "logs", "demo", "--follow").code == 141


def test_ctrl_c_ends_it_quietly(service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[bytes] = []

    def hold(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"%x\r\n%s\r\n" % (len(log("one\n")), log("one\n")))
        gone.append(connection.recv(1))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    service.raw(STREAM, hold)
    monkeypatch.setattr("svc.commandline.output.Captured.write", interrupted)
    done = svc("ws", "logs", "demo", "--follow")
    assert (done.code, done.err) == (130, "")
    service.close()
    assert gone == [b""]


def test_timestamps(service: Service, svc: Svc) -> None:
    service.answer(f"{LOGS}?tail=5&timestamps=true", {"text": "", "truncated": False, "markers": []})
    assert svc("ws", "logs", "demo", "--json", "--tail", "5", "--timestamps").code == 0
    svc("ws", "logs", "demo", "--timestamps")
    assert service.last.line == f"{RAW}?timestamps=true"
    svc("ws", "logs", "demo", "--timestamps", "--follow", "--launcher", "web")
    assert service.last.line == f"{STREAM}?launcher=web&timestamps=true"
