"""Operations as rows: queued once, claimed fairly, resumed after a restart, cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from svc.db.connect import database
from svc.domain import operations
from svc.domain.accounts import users
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.errors import NotFound, OperationInProgress, QuotaExceeded, StorageFull


@pytest.fixture
def ada(owner: int) -> Caller:
    return Caller("peer", owner, "ada", 2001, False, "rid-1", "", helper=None)  # type: ignore[arg-type]


def queue(caller: Caller, subject: str = "tpl-1") -> dict:
    return operations.enqueue(caller, "pull", "template", subject, {"image_ref": "r.example/a:1"})


def test_an_operation_is_queued_and_wakes_the_worker(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[bool] = []
    monkeypatch.setattr(operations, "wake", lambda: woken.append(True))
    record = queue(ada)
    assert woken and record["status"] == "queued" and record["subject"]["id"] == "tpl-1"


def test_a_second_one_on_the_same_subject_names_the_first(ada: Caller) -> None:
    first = queue(ada)
    with pytest.raises(OperationInProgress) as refused:
        queue(ada)
    assert refused.value.details["operation"]["id"] == first["id"]
    assert first["id"] in refused.value.hint
    queue(ada, "tpl-2")


def test_claim_is_oldest_first_and_leaves_a_busy_owner_alone(ada: Caller) -> None:
    first, second = queue(ada), queue(ada, "tpl-2")
    assert operations.claim({ada.user_id: 2}, per_owner=2) is None
    taken = operations.claim({}, per_owner=2)
    assert taken and taken["id"] == first["id"] and taken["owner"] == "ada"
    assert operations.claim({}, 2)["id"] == second["id"]
    assert operations.claim({}, 2) is None


def test_whoever_queues_hundreds_delays_nobody(ada: Caller) -> None:
    bob_id = users.create("bob", uid=2002, provisioning=users.READY).id
    bob = Caller("peer", bob_id, "bob", 2002, False, "rid-2", "", helper=None)  # type: ignore[arg-type]
    for number in range(110):
        queue(ada, f"tpl-{number}")
    waiting = queue(bob)
    assert operations.claim({ada.user_id: 2}, per_owner=2)["id"] == waiting["id"]


def test_one_user_has_so_many_under_way(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each set-up and each build of another Dockerfile is a row of its own: without an end, were it free."""
    monkeypatch.setattr(operations, "OPERATIONS_OPEN_PER_USER", 2)
    first = queue(ada, "tpl-1")
    queue(ada, "tpl-2")
    with pytest.raises(QuotaExceeded) as refused:
        queue(ada, "tpl-3")
    assert refused.value.details["resource"] == "operations"
    operations.cancel(ada, first["id"])
    queue(ada, "tpl-3")


def test_a_restart_queues_again_what_ran(ada: Caller) -> None:
    """ "an interrupted pull or build is resumed"."""
    record = queue(ada)
    operations.claim({}, 2)
    assert operations.recover() == 1
    assert operations.claim({}, 2)["id"] == record["id"]


def test_progress_log_and_result_are_kept(ada: Caller) -> None:
    record = queue(ada)
    operations.claim({}, 2)
    operations.report(record["id"], "pulling", {"current": 5, "total": 10, "unit": "bytes"})
    operations.add_log(record["id"], "layer one")
    operations.add_log(record["id"], "layer two")
    operations.succeed(record["id"], {"digest": "sha256:0"})
    after = operations.get(ada, record["id"])
    assert after["status"] == "succeeded" and after["result"] == {"digest": "sha256:0"}
    assert after["progress"]["current"] == 5 and after["finished_at"]
    found = operations.log(ada, record["id"])
    assert [line["text"] for line in found["lines"]] == ["layer one", "layer two"]
    assert found["ended"] is True


def test_a_log_is_resumed_by_the_number_of_a_line(ada: Caller) -> None:
    record = queue(ada)
    operations.claim({}, 2)
    assert operations.log(ada, record["id"]) == {"lines": [], "next": 0, "ended": False}
    operations.add_log(record["id"], "one", "two")
    found = operations.log(ada, record["id"])
    assert [(line["line"], line["text"]) for line in found["lines"]] == [(1, "one"), (2, "two")]
    assert operations.log(ada, record["id"], 1)["lines"] == found["lines"][1:]
    assert operations.log(ada, record["id"], found["next"]) == {"lines": [], "next": 2, "ended": False}
    operations.add_log(record["id"], "three")
    operations.succeed(record["id"], {})
    last = operations.log(ada, record["id"], 2)
    assert [line["text"] for line in last["lines"]] == ["three"]
    assert (last["next"], last["ended"]) == (3, True)
    assert operations.log(ada, record["id"], 10**9)["next"] == 10**9


def test_a_list_is_ones_own_and_filtered(ada: Caller) -> None:
    bob_id = users.create("bob", uid=2002, provisioning=users.READY).id
    bob = Caller("peer", bob_id, "bob", 2002, False, "rid-2", "", helper=None)  # type: ignore[arg-type]
    pull, other = queue(ada, "r.example/a:1"), queue(bob)
    setup = operations.enqueue(
        ada, "setup", "workspace", "ws-0000demo", {"template_id": "tpl-1", "workspace": {"name": "demo"}}
    )

    def ids(*arguments: Any, **page: Any) -> list[str]:
        return [item["id"] for item in operations.page_of(ada, Page(**page), *arguments)["items"]]

    assert set(ids()) == {pull["id"], setup["id"]}
    assert operations.page_of(bob, Page())["items"] == [other]
    assert ids(("setup",)) == ids((), "demo") == ids((), "ws-0000demo") == ids(q="dem") == [setup["id"]]
    assert ids((), "r.example/a:1") == ids(("pull", "build")) == [pull["id"]]
    assert setup["subject"] == {"type": "workspace", "id": "ws-0000demo", "name": "demo"}
    operations.claim({}, 2)
    assert ids(status=("running",)) == [pull["id"]]
    assert ids(("build",)) == ids((), "nothing") == []
    page = operations.page_of(ada, Page(limit=1))
    assert (page["total"], page["next_offset"], len(page["items"])) == (2, 1, 1)


def test_a_log_has_an_end(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "LOG_TAIL", 2)
    record = queue(ada)
    for number in range(9):
        assert operations.add_log(record["id"], f"line {number}", head=1) == number + 1
    found = operations.log(ada, record["id"])
    texts = ["line 0", "... 6 lines are left out ...", "line 7", "line 8"]
    assert [line["text"] for line in found["lines"]] == texts
    assert [line["line"] for line in found["lines"]] == [1, 7, 8, 9]
    assert operations.log(ada, record["id"], 7)["lines"] == found["lines"][2:]


def test_a_queued_one_is_cancelled_at_once_a_running_one_by_the_worker(ada: Caller) -> None:
    queued, running = queue(ada, "tpl-2"), queue(ada)
    database.execute_sql("UPDATE operations SET status = 'running' WHERE id = ?", (running["id"],))
    assert operations.cancel(ada, queued["id"])["status"] == "cancelled"
    assert operations.cancel(ada, running["id"])["status"] == "running"
    assert operations.cancel_requested(running["id"])
    operations.fail(running["id"], StorageFull("cut off"), "rid-1")
    assert operations.get(ada, running["id"])["status"] == "cancelled"


def test_a_failure_carries_its_error_body(ada: Caller) -> None:
    record = queue(ada)
    operations.claim({}, 2)
    operations.fail(record["id"], StorageFull("no room", hint="svc image prune --yes"), "rid-9")
    error = operations.get(ada, record["id"])["error"]
    assert (error["code"], error["hint"], error["request_id"]) == (
        "storage_full",
        "svc image prune --yes",
        "rid-9",
    )


def test_anothers_operation_does_not_exist(ada: Caller) -> None:
    record = queue(ada)
    eve = Caller("peer", ada.user_id + 1, "eve", 2002, False, "rid-2", "", helper=None)  # type: ignore[arg-type]
    for ask in (operations.get, operations.log, operations.cancel):
        with pytest.raises(NotFound):
            ask(eve, record["id"])


# --- the audit ------------------------------------------------------------------------


def audit() -> list[tuple[str, ...]]:
    return database.execute_sql(
        "SELECT user_name, via, action, target, outcome, request_id FROM audit ORDER BY id"
    ).fetchall()


def test_an_operations_end_is_on_record_under_the_request_that_began_it(ada: Caller) -> None:
    record = queue(ada)
    operations.claim({}, 2)
    operations.succeed(record["id"], {})
    operations.succeed(record["id"], {})  # it has ended: nothing happens twice
    assert audit() == [
        ("ada", "socket", "image.pull", "tpl-1", "begun", "rid-1"),
        ("ada", "worker", "image.pull", "tpl-1", "ok", "rid-1"),
    ]
    record = queue(ada)
    operations.claim({}, 2)
    operations.fail(record["id"], StorageFull("full"), "rid-1")
    assert [row[4] for row in audit()[2:]] == ["begun", "storage_full"]


def test_a_cancellation_is_on_record_and_so_is_what_it_ended(ada: Caller) -> None:
    first, second = queue(ada), queue(ada, "tpl-2")
    operations.cancel(ada, first["id"])
    assert [row[2:5] for row in audit()[2:]] == [
        ("operation.cancel", first["id"], "ok"),
        ("image.pull", "tpl-1", "cancelled"),
    ]
    operations.claim({}, 2)
    operations.cancel(ada, second["id"])
    operations.fail(second["id"], StorageFull("full"), "rid-1")
    assert [row[2:5] for row in audit()[4:]] == [
        ("operation.cancel", second["id"], "ok"),
        ("image.pull", "tpl-2", "cancelled"),
    ]
    operations.cancel(ada, second["id"])
    assert len(audit()) == 6
