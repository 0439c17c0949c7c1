"""A launcher whose requests meet: who gets which reply, with an ending that the test decides."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_helper.agent.calls import Failure
from svc_helper.agent.home import Home
from svc_helper.agent.runtime.crun import Running
from svc_helper.agent.runtime.launcher_states import EXITED, State
from svc_helper.shim import launcher
from svc_helper.shim.launcher import Launcher
from svc_helper.shim.loop import Loop
from svc_helper.shim.workspace import Workspace


class Request:
    """A request that keeps its replies."""

    def __init__(self) -> None:
        self.replies: list[Any] = []

    def answer(self, data: dict[str, Any]) -> None:
        """Keep the state."""
        self.replies.append(data["state"])

    def fail(self, failure: Failure) -> None:
        """Keep the code."""
        self.replies.append(failure.code)


@pytest.fixture
def endings(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[bool], None]]:
    """What ends each ending that has begun."""
    begun: list[Callable[[bool], None]] = []

    class Ending:
        def __init__(self, *parts: Any) -> None:
            self.done = parts[-1]

        def begin(self, grace_s: float) -> None:
            begun.append(self.done)

    def start(*_: Any) -> None:
        raise Failure("unavailable", "nothing is started here")

    monkeypatch.setattr(launcher, "Ending", Ending)
    monkeypatch.setattr(launcher, "start", start)
    return begun


@pytest.fixture
def exited(tmp_path: Path) -> Iterator[Launcher]:
    """One that has exited and may have left processes."""
    home = Home(
        user="u", uid=1, home=str(tmp_path), roots={}, systemd=False, registries="", registries_conf=""
    )
    workspace = Workspace("ws-00000000", home, Running("c", 1, 1, "/b", "", 1), Loop())
    os.makedirs(workspace.launchers)
    yield Launcher(workspace, State("web", EXITED, 0, run=workspace.run, mark="m"))
    workspace.loop.close()


@pytest.mark.parametrize(("clean", "codes"), [(True, ["exited", "unavailable"]), (False, ["failed"] * 2)])
def test_a_stop_while_a_start_ends_the_last_run_is_answered(
    exited: Launcher, endings: list[Callable[[bool], None]], clean: bool, codes: list[str]
) -> None:
    started, stopped = Request(), Request()
    exited.start(started, ["sh"], {})  # type: ignore[arg-type]  # as far as it is used
    exited.stop(stopped, 1)  # type: ignore[arg-type]  # likewise
    assert (len(endings), started.replies, stopped.replies) == (1, [], [])
    endings.pop()(clean)
    assert stopped.replies + started.replies == codes


def test_a_start_during_a_stop_waits_for_it(exited: Launcher, endings: list[Callable[[bool], None]]) -> None:
    stopped, started = Request(), Request()
    exited.stop(stopped, 1)  # type: ignore[arg-type]  # as far as it is used
    exited.start(started, ["sh"], {})  # type: ignore[arg-type]  # likewise
    assert (len(endings), started.replies, stopped.replies) == (1, [], [])
    endings.pop()(True)
    assert (started.replies, stopped.replies) == (["unavailable"], ["exited"])
