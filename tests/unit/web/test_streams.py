"""Server-sent events: what they say, what they hold, how they end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from unit.serving import checked

from svc import limits
from svc.db.connect import database
from svc.domain import long_calls
from svc.domain.accounts import sessions, users
from svc.domain.workspaces import logs
from svc.web.api import streams
from svc.web.gunicorn_worker import shutdown

PATH = "/api/workspaces/{}/logs/stream"


@pytest.fixture
def prepared() -> Iterator[None]:
    """As in a process that serves."""
    shutdown.prepare()
    yield
    for end in shutdown._pair or ():
        end.close()
    shutdown._pair = None


def get(listeners: Any, path: str, method: str = "GET", **options: Any) -> Any:
    """As ada, over TLS: her connection stays open while the answer is read."""
    _, secrets = sessions.begin(users.get("ada").id, "192.0.2.7")
    return listeners.ask(None, method, path, session=secrets, **options)


def events(response: Any) -> list[tuple[str, Any]]:
    """What a stream said, comments as ("", text)."""
    assert response.status_code == 200
    found = []
    for block in response.get_data(as_text=True).split("\n\n")[:-1]:
        if block.startswith(":"):
            found.append(("", block))
            continue
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_a_log_as_events(listeners: Any, lab: str) -> None:
    listeners.far.answers["ctr.follow"] = [
        {"text": "a\nevent: end\n\r"},
        {"marker": "started"},
        {"text": "\u2028\0ü"},
        {"ended": True},
    ]
    response = get(listeners, PATH.format("lab") + "?tail=7")
    assert response.headers["Content-Type"].startswith("text/event-stream")
    assert events(response) == [
        ("log", {"text": "a\nevent: end\n\r"}), ("marker", {"text": "started"}),
        ("log", {"text": "\u2028\0ü"}), ("end", {}),
    ]  # fmt: skip
    assert listeners.far.calls[-1].args == {"id": lab, "launcher": None, "tail": 7, "times": False}
    get(listeners, PATH.format(lab) + "?launcher=ada").close()


def test_what_is_wrong_is_an_ordinary_error(listeners: Any, lab: str) -> None:
    checked(get(listeners, PATH.format("none")), 404, "not_found")
    checked(get(listeners, PATH.format(lab) + "?launcher=none"), 404, "not_found")
    for query in ("tail=-1", "tail=1000000000001", "tail=x", "launcher=../x", "follow=1"):
        checked(get(listeners, f"{PATH.format(lab)}?{query}"), 422, "validation_failed")
    assert "ctr.follow" not in listeners.far.verbs()


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
    assert not +long_calls._running


def test_an_error_on_the_way_is_an_event(listeners: Any, lab: str) -> None:
    listeners.far.answers["ctr.follow"] = [{"text": "a"}, None]
    response = get(listeners, PATH.format(lab))
    [log, (name, data)] = events(response)
    assert log == ("log", {"text": "a"})
    assert (name, data["error"]["code"]) == ("error", "engine_unavailable")
    assert data["error"]["request_id"] == response.headers["X-Request-Id"]


def test_it_holds_one_of_the_callers_long_calls_to_its_end(listeners: Any, lab: str) -> None:
    answers = [get(listeners, PATH.format(lab)) for _ in range(limits.LONG_CALLS_PER_USER)]
    checked(get(listeners, PATH.format(lab)), 429, "too_many_requests")
    answers.pop().close()
    again = get(listeners, PATH.format(lab))
    assert again.status_code == 200
    for answer in (*answers, again):
        answer.close()
    assert not +long_calls._running


def test_a_head_request_holds_nothing(listeners: Any, lab: str) -> None:
    get(listeners, PATH.format(lab), method="HEAD").close()
    assert not +long_calls._running


def test_silence_is_a_heartbeat_and_the_servers_stop_an_end(
    listeners: Any, lab: str, prepared: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "HEARTBEAT_S", 0.01)
    listeners.far.answers["ctr.follow"] = lambda call: listeners.far.hold()
    response = get(listeners, PATH.format(lab), buffered=False)
    parts = response.iter_encoded()
    assert next(parts) == streams.HEARTBEAT.encode()
    shutdown.begin()
    rest = b"".join(parts).decode()
    assert "event: error\n" in rest
    assert '"maintenance"' in rest
    response.close()
    listeners.far.let_go()


def test_a_reader_who_may_no_longer_read_is_cut(
    listeners: Any, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "ACCESS_RECHECK_S", -1.0)
    listeners.far.answers["ctr.follow"] = [*[{"text": "a"}] * 5, {"ended": True}]
    response = get(listeners, PATH.format(lab), buffered=False)
    parts = response.iter_encoded()
    assert b"event: log" in next(parts)
    database.execute_sql("UPDATE users SET disabled = 1 WHERE name = 'ada'")
    rest = b"".join(parts)
    assert b"account_disabled" in rest
    assert b"event: log" not in rest
    response.close()


def test_times_are_asked_for(listeners: Any, lab: str) -> None:
    listeners.far.answers["ctr.follow"] = [{"ended": True}]
    events(get(listeners, PATH.format("lab") + "?timestamps=true"))
    assert listeners.far.calls[-1].args["times"] is True
    response = listeners.ask("ada", "GET", "/api/workspaces/lab/logs?timestamps=yes")
    assert response.status_code == 422
