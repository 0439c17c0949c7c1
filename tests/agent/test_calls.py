"""Where a call waits, and where it only looks."""

from __future__ import annotations

import select
import socket
from typing import Any

import pytest

from svc_helper.agent import calls
from svc_helper.agent.calls import Call, Failure


def test_a_look_at_the_caller_does_not_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk looks every few hundred entries; a millisecond each time was half of an archive's."""
    asked: list[float] = []
    real = select.poll

    class Poll:
        """The kernel's, which notes how long it is to wait."""

        def __init__(self) -> None:
            self._poll = real()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._poll, name)

        def poll(self, timeout: float) -> Any:
            asked.append(timeout)
            return self._poll.poll(timeout)

    monkeypatch.setattr(calls.select, "poll", Poll)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        call = Call("rid", "fs.archive", 60, theirs)
        call.check()
        assert asked == [0]
        ours.close()
        with pytest.raises(Failure, match="gone"):
            call.check()
