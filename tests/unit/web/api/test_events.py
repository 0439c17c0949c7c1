"""The event stream and the list, over HTTP."""

from __future__ import annotations

import json
from typing import Any

from unit.serving import checked, make_template

from svc.db.connect import database
from svc.domain.accounts import sessions, users


def blocks(response: Any, count: int) -> list[dict[str, str]]:
    """The first events of a stream."""
    found: list[dict[str, str]] = []
    text = ""
    for part in response.iter_encoded():
        text += part.decode()
        *whole, text = text.split("\n\n")
        fields = [dict(line.split(": ", 1) for line in block.split("\n")) for block in whole]
        found += [block for block in fields if "event" in block]
        if len(found) >= count:
            break
    return found


def test_a_stream(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id, "one")
    response = listeners.ask("ada", "GET", "/api/events?after=0", buffered=False)
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/event-stream")
    assert response.headers["X-Accel-Buffering"] == "no"
    [event] = blocks(response, 1)
    record = json.loads(event["data"])
    assert (event["event"], record["type"], event["id"]) == ("template.created",) * 2 + (str(record["id"]),)
    assert set(record) == {"id", "ts", "type", "owner", "actor", "subject", "reason", "data"}
    response.close()
    make_template(people["ada"].id, "two")
    headers = {"Last-Event-ID": event["id"]}
    again = listeners.ask("ada", "GET", "/api/events?after=0", headers=headers, buffered=False)
    [event] = blocks(again, 1)
    assert json.loads(event["data"])["subject"]["name"] == "two"
    again.close()
    head = listeners.ask("ada", "HEAD", "/api/events")
    assert (head.status_code, head.data) == (200, b"")


def test_the_list(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id, "one")
    listeners.ask("ada", "POST", "/api/templates/one/disable", json={})
    page = listeners.ask("ada", "GET", "/api/events/history").get_json()
    assert [item["type"] for item in page["items"]] == ["template.disabled", "template.created"]
    assert page["items"][0]["actor"] == {"user": "ada", "via": "socket"}
    one = listeners.ask("ada", "GET", "/api/events/history?type=template.created&subject=one").get_json()
    assert one["total"] == 1
    assert listeners.ask("bob", "GET", "/api/events/history").get_json()["total"] == 0
    whole = listeners.ask("boss", "GET", "/api/events/history?all=true").get_json()
    assert (whole["total"], whole["items"][0]["data"]) == (2, None)


def test_what_is_wrong_is_refused(listeners: Any, people: Any) -> None:
    for query in ("after=-1", "after=x", "type=none", "all=maybe", "since=1"):
        checked(listeners.ask("ada", "GET", f"/api/events?{query}"), 422, "validation_failed")
    for header in ("x", "-1", "9" * 30, "1.5"):
        response = listeners.ask("ada", "GET", "/api/events", headers={"Last-Event-ID": header})
        checked(response, 422, "validation_failed")
    checked(listeners.ask("ada", "GET", "/api/events?all=true"), 403, "admin_only")


def test_an_open_stream_is_no_use_of_a_session(listeners: Any, people: Any) -> None:
    session, secrets = sessions.begin(users.get("ada").id, "192.0.2.7")
    database.execute_sql(
        "UPDATE sessions SET last_used_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 hour') WHERE id = ?",
        (session,),
    )
    before = sessions.get(session)["last_used_at"]
    listeners.ask(None, "GET", "/api/events", session=secrets, buffered=False).close()
    assert sessions.get(session)["last_used_at"] == before
    listeners.ask(None, "GET", "/api/events/history", session=secrets)
    assert sessions.get(session)["last_used_at"] > before
