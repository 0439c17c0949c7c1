"""What is no HTTP: its status, its answer, and that the log has none of its words; memory after a crowd."""

from __future__ import annotations

import json
from io import BytesIO
from types import SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.http import errors as refused
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader

from svc.log import Counted
from svc.web.gunicorn_worker import fair_worker
from svc.web.gunicorn_worker.fair_worker import CROWD, FairThreads
from svc.web.gunicorn_worker.thread_pool import IDLE_S

ARGUMENT = "svc_pat_0typed0in0the0wrong0place0"
MALFORMED = {
    f"GET /{ARGUMENT} HTTP/9.9\r\n\r\n": 400,
    f"{ARGUMENT}\r\n\r\n": 400,
    f"{ARGUMENT} / HTTP/1.1\r\n\r\n": 400,
    f"GET / HTTP/1.1\r\n{ARGUMENT} : x\r\n\r\n": 400,
    f"GET / HTTP/1.1\r\n{ARGUMENT}\r\n\r\n": 400,
    f"GET / HTTP/1.1\r\nContent-Length: {ARGUMENT}\r\n\r\n": 400,
    f"GET / HTTP/1.1\r\nTransfer-Encoding: {ARGUMENT}\r\n\r\n": 501,
    f"GET / HTTP/1.1\r\nX: {ARGUMENT}\r\n {ARGUMENT}\r\n\r\n": 400,
    f"GET /{ARGUMENT * 300} HTTP/1.1\r\n\r\n": 414,
    f"GET / HTTP/1.1\r\nX: {ARGUMENT * 300}\r\n\r\n": 431,
}


@pytest.mark.parametrize("data", MALFORMED, ids=range(len(MALFORMED)))
def test_its_words_are_not_in_the_log(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = Config()
    with pytest.raises(refused.ParseException) as raised:
        Request(config, IterUnreader(iter([data.encode()])), ("192.0.2.7", 1))
    sent = BytesIO()
    worker = SimpleNamespace(lines=Counted("tls", "malformed request", 5))
    client = SimpleNamespace(sendall=sent.write)
    FairThreads.handle_error(worker, None, client, ("192.0.2.7", 1), raised.value)  # type: ignore[arg-type]  # as much of a worker as it needs
    head, _, body = sent.getvalue().partition(b"\r\n\r\n")
    line = capsys.readouterr().err
    result = json.loads(line)
    assert int(head.split()[1]) == result["status"] == MALFORMED[data]
    assert json.loads(body)["error"]["request_id"] == result["rid"]
    assert (result["process"], result["address"], result["error"]) == (
        "tls",
        "192.0.2.7",
        type(raised.value).__name__,
    )
    assert ARGUMENT not in line
    assert ARGUMENT.encode() not in sent.getvalue()


def test_our_own_failure_is_one_and_is_traced_without_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise RuntimeError(ARGUMENT)
    except RuntimeError as error:
        worker = SimpleNamespace(lines=Counted("unix", "malformed request", 5))
        client = SimpleNamespace(sendall=lambda _: None)
        FairThreads.handle_error(worker, None, client, "", error)  # type: ignore[arg-type]  # as above
    result = json.loads(capsys.readouterr().err)
    assert (result["status"], result["level"], result["error"]) == (500, "error", "RuntimeError")
    assert "test_fair_worker.py" in result["trace"]


def test_what_a_crowd_took_is_given_back_once_when_it_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    worker = SimpleNamespace(nr_conns=0, crowded_at=0.0)

    def tick(connections: int, now: float) -> None:
        worker.nr_conns = connections
        monkeypatch.setattr(fair_worker.heaps, "give_back", lambda: given.append(now))
        FairThreads._give_back(worker, now)  # type: ignore[arg-type]  # as above

    tick(CROWD - 1, 100.0)
    tick(0, 200.0)
    assert not given, "there was none"
    tick(CROWD, 300.0)
    tick(2000, 310.0)
    tick(0, 310.0 + IDLE_S)
    assert not given, "it may come again"
    for second in range(1, 60):
        tick(1, 310.0 + IDLE_S + second)
    assert given == [311.0 + IDLE_S]
