"""A child that ends is started again: at once if it ran for long, else later each time."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from svc.__main__ import main
from svc.errors import DatabaseRefused, HostRefused, SettingInvalid, StorageFailed, SvcError, UsageError
from svc.server import restart, supervisor
from svc.server.restart import UNUSABLE, Child, reap
from svc.settings import Settings


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(restart.time, "monotonic", lambda: now[0])
    return now


def test_the_delay_doubles_up_to_a_limit_and_ends_with_a_steady_run(clock: list[float]) -> None:
    starts: list[float] = []

    def start() -> int:
        starts.append(clock[0])
        return 4242

    child = Child("test", "child", start)
    delays = []
    for _ in range(8):
        child.ensure()
        child.ended(256)
        delays.append(round(child.not_before - clock[0], 3))
        child.ensure()
        assert child.pid == 0, "started before its delay was over"
        clock[0] = child.not_before
    assert child.early_ends == 8
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    child.ensure()
    clock[0] += restart.STEADY_S + 1
    child.ended(0)
    child.ensure()
    assert starts[-1] == clock[0]
    assert child.early_ends == 0


def test_ends_are_recorded_and_strangers_are_reaped() -> None:
    def start() -> int:
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        return pid

    child = Child("test", "child", start)
    assert reap([child]) is False
    child.ensure()
    assert reap([child]) is True and child.pid
    stranger = start()
    os.kill(stranger, signal.SIGKILL)
    assert reap([child], options=0) is True and child.pid
    child.signal(signal.SIGKILL)
    assert reap([child], options=0) is True and not child.pid
    child.signal(signal.SIGKILL)  # of what has ended: nothing
    assert reap([child]) is False


def test_a_child_that_cannot_use_the_database_is_known() -> None:
    child = Child("test", "child", lambda: 4242)
    child.ensure()
    child.ended(restart.UNUSABLE << 8)
    assert child.exit_code == restart.UNUSABLE


def test_systemd_does_not_start_again_what_a_start_cannot_mend() -> None:
    unit = Path(__file__).parents[3] / "systemd/svc.service"
    [statuses] = [
        line for line in unit.read_text().splitlines() if line.startswith("RestartPreventExitStatus=")
    ]
    assert {UsageError.exit_code, UNUSABLE} == {int(one) for one in statuses.partition("=")[2].split()}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DatabaseRefused("it is missing", hint="sudo svc admin migrate"), UNUSABLE),
        (SettingInvalid("SVC_PORT is no port"), UNUSABLE),
        (DatabaseRefused("it is in use", retry_after_s=5), 1),
        (HostRefused("cannot listen on port 24680"), 1),
        (StorageFailed("the disk fails"), 1),
    ],
)
def test_the_exit_status_of_a_refused_start(
    error: SvcError, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_settings: Settings, **_options: object) -> int:
        raise error

    monkeypatch.setattr(supervisor, "serve", refuse)
    assert main(["server"]) == code
    assert f"svc: {error.message}" in capsys.readouterr().err
