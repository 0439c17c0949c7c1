"""Ends of launchers: a process that ends is noticed, its end is told once, and only what ended by itself."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from unit.serving import FarEnd, Given, make_template, make_workspace

from svc.db.connect import database, write
from svc.domain import events
from svc.domain.workspaces import launchers
from svc.host.ids import now
from svc.worker import launchers as watching
from svc.worker import threads
from svc.worker.launchers import LauncherWatch

STARTED = {"state": "started", "exit_code": None, "started_at": "2025-01-02T03:04:05Z", "finished_at": None}
ENDED = STARTED | {"state": "exited", "exit_code": 3, "finished_at": "2025-01-02T03:05:05Z"}


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[FarEnd]:
    monkeypatch.setattr(watching, "ENDED_S", 0.0)
    far = FarEnd("worker")
    yield far
    far.close()


@pytest.fixture
def lab(owner: int) -> str:
    """A running workspace with a started launcher."""
    template = make_template(owner, launchers=[{"name": "web"}, {"name": "job"}])
    found = make_workspace(owner, template, status="running", started_at=now())
    add_event(found, "web", "started")
    return found


@pytest.fixture
def watch(far: FarEnd) -> Iterator[LauncherWatch]:
    watch = LauncherWatch(far.helper, select.poll(), lambda: None)
    yield watch
    for fd in watch.watches:
        os.close(fd)


def add_event(workspace: str, name: str, state: str, exit_code: int | None = None) -> None:
    (owner,) = database.execute_sql("SELECT owner_id FROM workspaces").fetchone()
    data = {"workspace_id": workspace, "state": state, "exit_code": exit_code}
    events.add(launchers.EVENT, owner, ("launcher", f"{workspace}/{name}", name), data)


def states() -> list[tuple[Any, ...]]:
    """Of the events, in their order."""
    return database.execute_sql(
        "SELECT subject_name, json_extract(data_json, '$.state'), json_extract(data_json, '$.exit_code')"
        " FROM events WHERE type = 'launcher.status_changed' ORDER BY id"
    ).fetchall()


def audited() -> list[tuple[Any, ...]]:
    return database.execute_sql("SELECT action, outcome, detail_json FROM audit ORDER BY id").fetchall()


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_watching(watch: LauncherWatch) -> bool:
    watch.begin()
    return bool(watch.watches)


def give(process: subprocess.Popen[bytes]) -> Callable[[Any], Given]:
    """A pidfd of this process, for each who asks."""
    return lambda _call: Given(os.pidfd_open(process.pid))


@pytest.mark.allow_commands("sleep")
def test_a_start_of_the_service_asks_few_owners_at_once(lab: str, far: FarEnd, watch: LauncherWatch) -> None:
    asked = []
    with subprocess.Popen(["sleep", "1000"]) as process:
        given = give(process)
        far.answers["launcher.watch_end"] = lambda call: asked.append(call) or given(call)
        for _ in range(threads.OWNERS_AT_ONCE):  # others are being asked
            watch.slots.acquire()
        watch.begin()
        time.sleep(0.2)
        assert watch.owners and not asked
        watch.slots.release()
        wait_for(lambda: is_watching(watch))
        process.kill()


@pytest.mark.allow_commands("sleep")
def test_an_end_is_told_once(lab: str, far: FarEnd, watch: LauncherWatch) -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        far.answers["launcher.watch_end"] = give(process)
        wait_for(lambda: is_watching(watch))
        watch.begin()  # it is watched already
        assert far.verbs() == ["launcher.watch_end"]
        assert far.calls[0].args == {"id": lab, "name": "web"}
        assert not watch.poller.poll(0)
        process.kill()
        ((fd, _),) = watch.poller.poll(30_000)
    far.answers["launcher.list"] = {"launchers": [{"name": "web", "pid": 5, **STARTED}]}
    assert watch.take_end(fd)
    wait_for(lambda: "launcher.list" in far.verbs())  # the shim reaps it a moment later
    far.answers["launcher.list"] = {"launchers": [{"name": "web", "pid": None, **ENDED}]}
    wait_for(audited)
    assert states() == [("web", "started", None), ("web", "exited", 3)]
    ((action, outcome, detail),) = audited()
    assert (action, outcome) == ("workspace.launcher_end", "exited")
    assert json.loads(detail) == {"launcher": "web", "exit_code": 3, "target_name": "lab"}
    assert not watch.watches and not launchers.started_runs()
    assert not watch.take_end(fd)


@pytest.mark.allow_commands("sleep")
def test_an_end_that_was_noticed_is_not_asked_about_beside_it(
    lab: str, far: FarEnd, watch: LauncherWatch
) -> None:
    """A moment later it is known why it has ended, which may be that the workspace has."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        far.answers["launcher.watch_end"] = give(process)
        wait_for(lambda: is_watching(watch))
        watch.tried = {run: tried - watching.RETRY_S for run, tried in watch.tried.items()}  # long ago
        process.kill()
        ((fd, _),) = watch.poller.poll(30_000)
    far.answers |= {"launcher.watch_end": "not_running", "launcher.list": "unavailable"}
    assert watch.take_end(fd)
    watch.begin()
    wait_for(lambda: not watch.owners and "launcher.list" in far.verbs())
    assert far.verbs() == ["launcher.watch_end", "launcher.list"]


def test_one_that_ended_before_it_was_watched(lab: str, far: FarEnd, watch: LauncherWatch) -> None:
    far.answers["launcher.watch_end"] = "not_running"
    far.answers["launcher.list"] = {"launchers": [{"name": "web", "pid": None, **ENDED}]}
    watch.begin()
    wait_for(audited)
    assert states()[-1] == ("web", "exited", 3)


def test_an_agent_that_fails_is_not_asked_at_once_again(lab: str, far: FarEnd, watch: LauncherWatch) -> None:
    far.answers |= {"launcher.watch_end": "unavailable", "launcher.list": "unavailable"}
    watch.begin()
    wait_for(lambda: not watch.owners)
    asked = len(far.calls)
    watch.begin()
    wait_for(lambda: not watch.owners)
    assert len(far.calls) == asked
    assert len(states()) == 1
    watch.tried = {run: tried - watching.RETRY_S for run, tried in watch.tried.items()}
    far.answers["launcher.list"] = {"launchers": [{"name": "web", "pid": None, **ENDED}]}
    watch.begin()
    wait_for(audited)


def test_an_agent_that_says_nothing_is_asked_once_a_round(
    lab: str, far: FarEnd, watch: LauncherWatch
) -> None:
    """Four owners whose agents were stopped took all slots for minutes: two calls for each launcher."""
    add_event(lab, "job", "started")
    far.answers |= {"launcher.watch_end": "timeout", "launcher.list": "timeout"}
    watch.begin()
    wait_for(lambda: not watch.owners)
    assert far.verbs() == ["launcher.watch_end"]
    assert watch.slots._value == threads.OWNERS_AT_ONCE


def test_what_is_waited_for(lab: str, far: FarEnd) -> None:
    """What runs in this run of a running workspace, by the newest event of each."""
    add_event(lab, "job", "started")
    add_event(lab, "job", "stopped")
    add_event("ws-other", "web", "started")
    assert [(run.workspace_id, run.name, run.owner) for run in launchers.started_runs()] == [
        (lab, "web", "ada")
    ]
    with write():
        database.execute_sql("UPDATE workspaces SET started_at = '2999-01-01T00:00:00.000Z'")
    assert launchers.started_runs() == []  # it was another run of the workspace
    with write():
        database.execute_sql(
            "UPDATE workspaces SET started_at = '2020-01-01T00:00:00.000Z', status = 'stopping'"
        )
    assert launchers.started_runs() == []


def test_the_end_of_the_workspace_is_no_end_of_a_launcher(
    lab: str, far: FarEnd, watch: LauncherWatch
) -> None:
    (run,) = launchers.started_runs()
    far.answers["launcher.list"] = {"launchers": [{"name": "web", "pid": None, **ENDED}]}
    with write():
        database.execute_sql("UPDATE workspaces SET status = 'stopping'")
    assert watch._note(run)
    assert len(states()) == 1 and not audited()


@pytest.mark.parametrize("rows", [[], [{"name": "web", "pid": None, **ENDED, "state": "stopped"}]])
def test_one_that_the_shim_does_not_know_is_stopped(
    lab: str, far: FarEnd, watch: LauncherWatch, rows: list[Any]
) -> None:
    (run,) = launchers.started_runs()
    far.answers["launcher.list"] = {"launchers": rows}
    assert watch._note(run)
    assert states()[-1][1] == "stopped" and not audited()


def test_what_is_no_pidfd_is_not_polled(lab: str, far: FarEnd, watch: LauncherWatch) -> None:
    """An agent belongs to its user: a descriptor that is always ready would keep the worker busy."""
    far.answers["launcher.watch_end"] = lambda _call: Given(os.open("/dev/null", os.O_RDONLY))
    far.answers["launcher.list"] = {"launchers": [{"name": "web", "pid": 5, **STARTED}]}
    watch.begin()
    wait_for(lambda: "launcher.list" in far.verbs() and not watch.owners)
    watch.begin()
    assert not watch.watches


def test_a_watch_ends_with_what_it_waits_for(lab: str, far: FarEnd, watch: LauncherWatch) -> None:
    """Each start of a launcher, also of a started one, has a watch: they must not add up while it runs."""
    far.answers["launcher.watch_end"] = lambda _call: Given(os.pidfd_open(os.getpid()))
    wait_for(lambda: is_watching(watch))
    (first,) = watch.watches
    add_event(lab, "web", "stopped")
    watch.begin()
    assert not watch.watches
    with pytest.raises(KeyError):
        watch.poller.unregister(first)
    for _ in range(3):
        add_event(lab, "web", "started")
        wait_for(lambda: is_watching(watch) and not watch.owners)
        watch.begin()
        assert [run.event_id for run in watch.watches.values()] == [launchers.started_runs()[0].event_id]
