"""What is remembered of a workspace's container, in files that their user can exchange for anything."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_helper.agent import paths as places
from svc_helper.agent.containers import overrides
from svc_helper.agent.home import Home
from svc_helper.agent.runtime import crun, launcher_states, records
from svc_helper.agent.runtime.records import Record

WS = "ws-0000000a"
CONTAINER = "0123456789abcdef" * 4


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home without Podman."""
    created = Home(
        user="u", uid=1, home=str(tmp_path), roots={}, systemd=False, registries="", registries_conf=""
    )
    created.runtime, created.own = str(tmp_path), f"{tmp_path}/svc"
    created.prepare()
    os.makedirs(f"{tmp_path}/libpod/tmp")
    os.makedirs(places.workspace(created.home, WS))
    return created


def test_a_record_is_recalled(home: Home) -> None:
    assert records.recall(home, WS) is None
    records.remember(home, WS, CONTAINER, "/some/where")
    assert records.recall(home, WS) == Record(CONTAINER, "/some/where")
    records.forget(home, WS)
    records.forget(home, WS)
    assert records.recall(home, WS) is None


@pytest.mark.parametrize("text", ["", "\n", f"{CONTAINER}\nrelative\n", f"{CONTAINER[:-1]}g\n/x\n", "\udcff"])
def test_a_broken_one_is_none(home: Home, text: str) -> None:
    Path(f"{home.own}/containers/{WS}").write_bytes(text.encode(errors="surrogateescape"))
    assert records.recall(home, WS) is None


@pytest.mark.parametrize("written", [False, True], ids=["nobody writes", "somebody holds it open"])
def test_nothing_waits_in_a_fifo(home: Home, written: bool) -> None:
    paths: dict[str, Callable[[], object]] = {
        f"{home.own}/containers/{WS}": lambda: records.recall(home, WS),
        f"{home.runtime}/libpod/tmp/pause.pid": lambda: crun.pause_pid(home),
        f"{places.workspace(home.home, WS)}/created.json": lambda: overrides.recall(home, WS),
    }
    for path, inspect in paths.items():
        os.mkfifo(path)
        writer = os.open(path, os.O_RDWR) if written else -1
        try:
            assert inspect() is None
        finally:
            if written:
                os.close(writer)


def test_directories_in_their_places_keep_no_descriptor(home: Home) -> None:
    launchers = places.launchers(home.home, WS)
    for path in (
        f"{launchers}/web.json",
        f"{home.own}/containers/{WS}",
        f"{home.runtime}/libpod/tmp/pause.pid",
    ):
        os.makedirs(path)
    before = os.listdir("/proc/self/fd")
    assert launcher_states.read_all(launchers) == {}
    assert launcher_states.read(launchers, "web") is None
    assert records.recall(home, WS) is None
    assert crun.pause_pid(home) is None
    assert len(os.listdir("/proc/self/fd")) == len(before)
