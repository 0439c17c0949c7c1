"""One winner per transition: two of the same, or a start beside an edit or a delete (HOSTILE rows 41, 42)."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from unit.serving import CONTAINER, FarEnd, make_workspace

from svc import errors
from svc.db.connect import close_database
from svc.domain.principal import Caller
from svc.domain.workspaces import states, workspaces

WORK = 7  # the number of a call
STARTED_THEN_DELETED = ["ctr.start", "ctr.stop", "ctr.remove"]


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Run these at the same moment, each in a thread; the results or errors, in order."""
    results: list[Any] = [None] * len(acts)
    gate = threading.Barrier(len(acts))

    def run(number: int, act: Callable[[], Any]) -> None:
        gate.wait()
        try:
            results[number] = act()
        except errors.SvcError as error:
            results[number] = error
        finally:
            close_database()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_fifty_starts_at_once(ada: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template, container_id=CONTAINER)
    results = at_once(*[lambda: workspaces.start(ada, "lab")] * 50)
    assert far.verbs().count("ctr.start") == 1
    assert all(
        isinstance(result, errors.OperationInProgress) or result["status"] in ("starting", "running")
        for result in results
    )
    assert any(isinstance(result, dict) for result in results)
    assert workspaces.get(ada, "lab")["status"] == "running"


def test_fifty_creates_at_once(ada: Caller, far: FarEnd, template: str) -> None:
    """The one that gets the name keeps it, while the others' calls take up every place of their user."""

    def slow(answer: dict[str, Any]) -> Callable[[Any], dict[str, Any]]:
        chance = random.Random(1)

        def wait(_call: Any) -> dict[str, Any]:
            time.sleep(chance.uniform(0.005, 0.05))
            return answer

        return wait

    for verb in ("image.inspect", "ctr.create", "ctr.remove"):
        far.answers[verb] = slow(far.answers[verb])
    for number in range(5):
        request = {"name": f"lab-{number}", "template": "base"}
        results = at_once(*[lambda request=request: workspaces.create(ada, request)] * 50)
        assert sum(isinstance(result, dict) for result in results) == 1, results
        assert sum(isinstance(result, errors.NameTaken) for result in results) == 49, results
        assert far.verbs().count("ctr.create") == number + 1


def test_fifty_deletes_at_once(ada: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template)
    results = at_once(*[lambda: workspaces.delete(ada, "lab")] * 50)
    assert far.verbs().count("ctr.remove") == 1
    assert results.count(None) == 1
    assert all(
        result is None or isinstance(result, (errors.OperationInProgress, errors.NotFound))
        for result in results
    )


def test_a_start_beside_a_delete(ada: Caller, far: FarEnd, template: str) -> None:
    for number in range(10):
        name = f"lab-{number}"
        make_workspace(ada.user_id, template, name, id=f"ws-0000000{number}", container_id=CONTAINER)
        far.calls.clear()
        started, deleted = at_once(
            lambda name=name: workspaces.start(ada, name), lambda name=name: workspaces.delete(ada, name)
        )
        assert isinstance(started, dict) or deleted is None
        if isinstance(started, dict) and deleted is None:  # the delete came after, and stopped it
            assert [verb for verb in far.verbs() if verb in STARTED_THEN_DELETED] == STARTED_THEN_DELETED
        else:
            assert len({"ctr.start", "ctr.remove"} & set(far.verbs())) == 1


def test_a_start_beside_an_edit(ada: Caller, far: FarEnd, template: str) -> None:
    """Whichever wins, what is started is what the row says."""
    for number in range(10):
        name = f"lab-{number}"
        make_workspace(ada.user_id, template, name, id=f"ws-0000000{number}")
        far.calls.clear()
        patch = {"resources": {"pids_limit": 7}}
        started, edited = at_once(
            lambda name=name: workspaces.start(ada, name),
            lambda name=name: workspaces.edit(ada, name, patch),  # noqa: B023  the same each time
        )
        assert isinstance(started, dict)
        created = next(call for call in far.calls if call.verb.name == "ctr.create")
        assert created.args["resources"]["pids_limit"] == (7 if isinstance(edited, dict) else None)
        assert far.calls[-1].args["resources"] == created.args["resources"]
        assert isinstance(edited, (dict, errors.WorkspaceNotStopped))
        assert workspaces.get(ada, name)["resources"]["pids_limit"] == created.args["resources"]["pids_limit"]


def test_a_transition_is_taken_once(ada: Caller, template: str) -> None:
    make_workspace(ada.user_id, template)
    seen = states.find(ada, "lab")
    claimed = states.claim(seen, WORK, "starting")
    assert claimed.status == "starting"
    with pytest.raises(errors.OperationInProgress) as caught:
        states.claim(seen, WORK, "deleting")
    assert caught.value.retryable
    assert not states.move(seen, "running")
    assert states.move(claimed, "running", "user_requested")
    assert not states.move(claimed, "failed")
    states.remove(claimed)
    assert workspaces.get(ada, "lab")["status"] == "running"


def test_a_claim_of_what_is_gone(ada: Caller, template: str) -> None:
    make_workspace(ada.user_id, template)
    seen = states.find(ada, "lab")
    workspaces.delete(ada, "lab")
    assert states.of_id(seen.id) is None
    with pytest.raises(errors.OperationInProgress):
        states.claim(seen, WORK, "starting")


def test_an_id_wins_over_a_name(ada: Caller, template: str) -> None:
    first = make_workspace(ada.user_id, template, "one")
    make_workspace(ada.user_id, template, first, id="ws-00000two")
    assert states.find(ada, first).name == "one"
