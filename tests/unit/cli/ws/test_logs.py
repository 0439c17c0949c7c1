"""`svc ws logs`: of the container, of a launcher, and followed."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from fake_service import Service, Svc

LOGS = "GET /api/workspaces/demo/logs"
OF_WEB = "GET /api/workspaces/demo/launchers/web/logs"
STREAM = "GET /api/workspaces/demo/logs/stream"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"event: end\ndata: {}\n\n"


def chunked(*parts: bytes, whole: bool = True) -> bytes:
    """An answer in these chunks; not `whole` breaks off."""
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in parts]
    return HEAD + b"".join(chunks) + (b"0\r\n\r\n" if whole else b"")


def log(text: str) -> bytes:
    return b"event: log\ndata: " + json.dumps({"text": text}).encode() + b"\n\n"


def test_logs(service: Service, svc: Svc) -> None:
    service.answer(LOGS, {"text": "one\ntwo", "truncated": False})
    service.answer(f"{LOGS}?tail=1", {"text": "two\n", "truncated": True})
    assert svc("ws", "logs", "demo") == (0, "one\ntwo\n", "")
    done = svc("ws", "logs", "demo", "--tail", "1")
    assert (done.code, done.out) == (0, "two\n")
    assert "older lines" in done.err
    assert json.loads(svc("ws", "logs", "demo", "--json").out)["text"] == "one\ntwo"


def test_of_a_launcher(service: Service, svc: Svc) -> None:
    service.answer(f"{OF_WEB}?tail=5", {"text": "served\n", "truncated": False})
    assert svc("ws", "logs", "demo", "--launcher", "web", "--tail", "5") == (0, "served\n", "")


def test_an_empty_one_says_what_is_not_captured(service: Service, svc: Svc) -> None:
    service.answer(OF_WEB, {"text": "", "truncated": False})
    service.answer(LOGS, {"text": "", "truncated": False})
    done = svc("ws", "logs", "demo", "--launcher", "web")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("svc: web has written nothing; processes started by hand")
    assert "the container has written nothing" in svc("ws", "logs", "demo").err


def test_the_help_says_what_is_not_captured(svc: Svc) -> None:
    arguments = " ".join(svc("ws", "logs", "--help").out.split())
    assert "Manually started processes and extra-app ports are not captured" in arguments


def test_follow(service: Service, svc: Svc) -> None:
    parts = (log("one\nt"), b": still here\n\n", log("wo\n")[:9], log("wo\n")[9:] + log("\u2028\0ü"), END)
    service.raw(f"{STREAM}?tail=3&launcher=web", chunked(*parts))
    line = ("ws", "logs", "demo", "--follow", "--tail", "3", "--launcher", "web")
    assert svc(*line) == (0, "one\ntwo\n\u2028\0ü\n", "")
    assert service.last.fields["accept"] == "text/event-stream"
    pieces = [json.loads(each)["text"] for each in svc(*line, "--json").out.splitlines()]
    assert pieces == ["one\nt", "wo\n", "\u2028\0ü"]


def test_follow_on_a_terminal_keeps_colours_whole_and_escapes_the_rest(service: Service, svc: Svc) -> None:
    texts = ("\x1b[3", "1mred\x1b", "[0m \x1b]0;title\x07", "\x1b[2J", "x\x1b[")
    service.raw(STREAM, chunked(*map(log, texts), END))
    out = svc("ws", "logs", "demo", "--follow", terminal=True).out
    assert out == "\x1b[31mred\x1b[0m \\x1b]0;title\\x07\\x1b[2Jx\\x1b[\n"


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

    monkeypatch.setattr("svc.cli.output.Captured.write", closed)
    monkeypatch.setattr("svc.__main__._discard_output", lambda: None)
    assert svc("ws", "logs", "demo", "--follow").code == 141


def test_ctrl_c_ends_it_quietly(service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[bytes] = []

    def hold(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"%x\r\n%s\r\n" % (len(log("one\n")), log("one\n")))
        gone.append(connection.recv(1))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    service.raw(STREAM, hold)
    monkeypatch.setattr("svc.cli.output.Captured.write", interrupted)
    done = svc("ws", "logs", "demo", "--follow")
    assert (done.code, done.err) == (130, "")
    service.close()
    assert gone == [b""]
