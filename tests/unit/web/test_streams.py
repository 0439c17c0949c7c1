"""Server-sent events: what they say, what they hold, how they end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.serving import ROW, checked
from unit.streaming import until

from svc.domain.accounts import sessions, users
from svc.domain.places import long_calls, streams
from svc_helper.wire import log_frames

PATH = "/api/workspaces/{}/logs/stream"


def get(listeners: Any, path: str, method: str = "GET", **options: Any) -> Any:
    """As ada, over TLS: her connection stays open while the answer is read."""
    _, secrets = sessions.begin(users.get("ada").id, "192.0.2.7")
    return listeners.ask(None, method, path, session=secrets, **options)


def events(response: Any) -> list[tuple[str, Any]]:
    """What a stream said."""
    assert response.status_code == 200
    found = []
    for block in response.get_data(as_text=True).split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def test_a_log_as_events(listeners: Any, lab: str) -> None:
    text, note = ROW + "\u2028\0\u00fc\x85\n".encode(), ROW.replace(b"stdout", b"marker") + b"started\n"
    listeners.far.frames = [log_frames.rows(1, 45, 0, text + note), log_frames.END]
    response = get(listeners, PATH.format("lab") + "?tail=7")
    assert response.headers["Content-Type"].startswith("text/event-stream")
    time = ROW[log_frames.TIME].decode()
    assert events(response) == [
        ("log", {"text": "\u2028\0\u00fc\x85\n", "time": time, "stream": "stdout"}),
        ("marker", {"text": "started", "time": None, "stream": None}), ("end", {}),
    ]  # fmt: skip
    asked = {"id": lab, "launcher": None, "tail": 7, "start": None, "skip": 0}
    assert listeners.far.calls[-1].args == asked
    get(listeners, PATH.format(lab) + "?launcher=ada").close()


def test_a_client_that_comes_back(listeners: Any, lab: str) -> None:
    for path, headers in (
        ("?after=3.45.6", {}),
        ("", {"Last-Event-ID": "3.45.6"}),
        ("?after=1.2.3-", {"Last-Event-ID": "3.45.6"}),
    ):
        response = get(listeners, PATH.format("lab") + path, headers=headers)
        assert events(response)[-1] == ("end", {})
        args = listeners.far.calls[-1].args
        assert (args["start"], args["skip"]) == ({"number": 3, "offset": 45}, 6)
        assert b"id: 0.0.6\n" in response.get_data()
    checked(get(listeners, PATH.format("lab"), headers={"Last-Event-ID": "17"}), 422, "validation_failed")


def test_what_is_wrong_is_an_ordinary_error(listeners: Any, lab: str) -> None:
    checked(get(listeners, PATH.format("none")), 404, "not_found")
    checked(get(listeners, PATH.format(lab) + "?launcher=none"), 404, "not_found")
    for query in (
        "tail=-1",
        "tail=1000000000001",
        "tail=x",
        "launcher=../x",
        "follow=1",
        "after=5",
        "after=",
    ):
        checked(get(listeners, f"{PATH.format(lab)}?{query}"), 422, "validation_failed")
    assert "ctr.follow" not in listeners.far.verbs()
    listeners.far.answers["ctr.follow"] = "unavailable"
    checked(get(listeners, PATH.format(lab)), 503, "engine_unavailable")
    assert streams.taken() == 0


def test_what_never_ran_is_empty(listeners: Any, lab: str) -> None:
    listeners.far.answers["ctr.follow"] = "not_found"
    assert events(get(listeners, PATH.format(lab))) == [("end", {})]


RAW = "/api/workspaces/lab/logs/raw"


def test_raw_output(listeners: Any, lab: str) -> None:
    files = listeners.far.files
    files.output = bytes(range(256)) * 5000
    files.kept |= {"start": [2, 45], "older_gone": True, "markers": [[7, "started \r\n\x1b"]]}
    response = get(listeners, f"{RAW}?launcher=ada")
    assert (response.status_code, response.data) == (200, files.output)
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["X-Svc-Log-Start"] == "2.45"
    assert response.headers["X-Svc-Log-Older-Gone"] == "true"
    markers = json.loads(response.headers["X-Svc-Log-Markers"])
    assert markers == [{"offset": 7, "text": "started \r\n\x1b"}]
    rest = get(listeners, f"{RAW}?start=2.45&skip=1000000")
    assert rest.data == files.output[1_000_000:]
    assert listeners.far.calls[-1].args["start"] == {"number": 2, "offset": 45}
    head = get(listeners, RAW, method="HEAD")
    assert (head.status_code, head.data) == (200, b"")
    for answer in (response, rest, head):
        answer.close()
    for query in ("tail=-1", "start=2", "start=2.45x", "skip=-1", "most=5"):
        checked(get(listeners, f"{RAW}?{query}"), 422, "validation_failed")
    checked(get(listeners, f"{RAW}?launcher=none"), 404, "not_found")
    assert not long_calls.taken()


def test_an_error_on_the_way_is_an_event(listeners: Any, lab: str) -> None:
    listeners.far.frames = [log_frames.rows(0, 0, 0, ROW + b"a\n"), b"rubbish"]
    response = get(listeners, PATH.format(lab))
    [(name, _), (last, data)] = events(response)
    assert (name, last, data["error"]["code"]) == ("log", "error", "engine_unavailable")
    assert data["error"]["request_id"] == response.headers["X-Request-Id"]


def test_it_is_counted_as_a_stream(listeners: Any, lab: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "per_user", 2)
    listeners.far.frames = []
    answers = [get(listeners, PATH.format(lab), buffered=False) for _ in range(2)]
    checked(get(listeners, PATH.format(lab)), 429, "too_many_requests")
    assert not long_calls.taken()
    for answer in answers:
        answer.close()
    until(lambda: streams.taken() == 0)


def test_a_head_request_holds_nothing(listeners: Any, lab: str) -> None:
    get(listeners, PATH.format(lab), method="HEAD").close()
    assert streams.taken() == 0
    assert "ctr.follow" not in listeners.far.verbs()


def test_times_go_before_the_lines(listeners: Any, lab: str) -> None:
    [(_, log), _] = events(get(listeners, PATH.format("lab") + "?timestamps=true"))
    assert log["text"] == f"{ROW[log_frames.TIME].decode()} hello\n"
    response = listeners.ask("ada", "GET", "/api/workspaces/lab/logs?timestamps=yes")
    assert response.status_code == 422
