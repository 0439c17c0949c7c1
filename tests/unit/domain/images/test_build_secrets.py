"""Secrets of builds: with the agent before the build is queued, nowhere in the database, and forgotten."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest
from unit.serving import FarEnd, make_template

from svc import errors
from svc.db.connect import database, write
from svc.domain import operations
from svc.domain.images import build_secrets
from svc.domain.images import requests as image_requests
from svc.domain.principal import Caller
from svc.worker.build_secrets import SecretWatch

VALUE = b"index-url = https://ada:hunter22@pypi.example/\n"
DOCKERFILE = (
    "FROM registry.example/debian:12\n"
    "RUN --mount=type=secret,id=pip,required=true cat /run/secrets/pip >/dev/null\n"
    "RUN --mount=type=secret,target=/etc/npmrc true\n"
)


@pytest.fixture
def made(ada: Caller) -> str:
    """ada's own template, with a Dockerfile that mounts `pip` and `npmrc`."""
    make_template(ada.user_id, "made", status="disabled", dockerfile=DOCKERFILE)
    with write():
        database.execute_sql("UPDATE template_revisions SET written_by = ?", (ada.user_id,))
    return "made"


@pytest.fixture
def worker(db: str) -> Iterator[FarEnd]:
    """The far end of the worker's pair."""
    end = FarEnd("worker")
    yield end
    end.close()


def dump() -> str:
    """All that the database holds."""
    return "\n".join(str(line) for line in database.connection().iterdump())


def test_the_agent_has_them_before_the_worker_can_begin(ada: Caller, far: FarEnd, made: str) -> None:
    operation = image_requests.build(ada, made, None, {"pip": VALUE, "npmrc": b""})
    (call,) = far.calls
    assert call.args == {
        "operation": operation["id"],
        "sizes": [{"id": "pip", "size": len(VALUE)}, {"id": "npmrc", "size": 0}],
    }
    assert far.inputs == [VALUE]
    request = json.loads(database.execute_sql("SELECT request_json FROM operations").fetchone()[0])
    assert request["secrets"] == ["npmrc", "pip"]
    assert build_secrets.arguments("op-4k2m9x7p", request) == {
        "operation": "op-4k2m9x7p",
        "ids": ["npmrc", "pip"],
    }
    assert "hunter22" not in dump()
    assert build_secrets.ended() == []


def test_a_build_in_progress_keeps_its_own(ada: Caller, far: FarEnd, made: str) -> None:
    image_requests.build(ada, made, None, {"pip": VALUE})
    with pytest.raises(errors.OperationInProgress):
        image_requests.build(ada, made, None, {"pip": b"other"})
    assert far.inputs == [VALUE]


def test_what_the_dockerfile_does_not_mount_is_refused(ada: Caller, far: FarEnd, made: str) -> None:
    with pytest.raises(errors.ValidationFailed) as caught:
        image_requests.build(ada, made, None, {"other": VALUE})
    assert caught.value.fields[0]["code"] == "undeclared"
    assert "hunter22" not in str(caught.value.body("r"))
    assert far.calls == []


def test_a_failed_call_queues_nothing(ada: Caller, far: FarEnd, made: str) -> None:
    far.answers["image.secrets"] = "unavailable"
    with pytest.raises(errors.EngineUnavailable):
        image_requests.build(ada, made, None, {"pip": VALUE})
    assert database.execute_sql("SELECT count(*) FROM operations").fetchone() == (0,)
    with write():
        database.execute_sql("UPDATE build_secrets SET created_at = '2026-01-01T00:00:00.000Z'")
    assert len(build_secrets.ended()) == 1, "what may be there is forgotten later"


def test_the_worker_forgets_what_was_cancelled_in_the_queue(
    ada: Caller, far: FarEnd, made: str, worker: FarEnd
) -> None:
    operation = image_requests.build(ada, made, None, {"pip": VALUE})
    watch = SecretWatch(worker.helper)
    watch.begin()
    operations.cancel(ada, operation["id"])
    worker.answers["image.secrets"] = "unavailable"
    watch.begin()
    wait_for(lambda: worker.calls)
    assert [one.id for one in build_secrets.ended()] == [operation["id"]]
    worker.answers["image.secrets"] = {}
    wait_for(lambda: not watch.busy)
    watch.not_before.clear()
    watch.begin()
    wait_for(lambda: not build_secrets.ended())
    assert worker.calls[-1].args == {"operation": operation["id"], "sizes": []}


def test_an_agent_that_says_nothing_is_asked_by_one_thread(ada: Caller, worker: FarEnd) -> None:
    """Each of a user's builds had a thread, however many the user had begun and cancelled."""
    with write():
        for number in range(300):
            values = (f"op-{number:08}", ada.user_id, "2026-01-01T00:00:00.000Z")
            database.execute_sql(
                "INSERT INTO build_secrets (operation_id, owner_id, created_at) VALUES (?, ?, ?)", values
            )
    silent, before = threading.Event(), threading.active_count()
    worker.answers["image.secrets"] = lambda _call: silent.wait(30) and "timeout"
    watch = SecretWatch(worker.helper)
    for _ in range(3):
        watch.begin()
        wait_for(lambda: worker.calls)
        assert threading.active_count() <= before + 2
    silent.set()
    wait_for(lambda: not watch.busy)
    watch.begin()
    assert not watch.busy
    assert len(worker.calls) == 1


def wait_for(condition: object) -> None:
    deadline = time.monotonic() + 30
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)
