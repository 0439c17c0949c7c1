"""Who acts: by thread, or by process."""

from __future__ import annotations

import threading

import pytest

from svc.db import acting


def test_a_thread_has_its_own_actor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acting, "_default", acting.Actor())
    acting.begin("ada", "socket")
    seen: list[acting.Actor] = []
    other = threading.Thread(target=lambda: seen.append(acting.current()))
    other.start()
    other.join()
    assert (acting.current(), seen) == (("ada", "socket"), [("", "")])
    acting.by_default("admin", "root")
    assert acting.current() == ("ada", "socket")
    acting.end()
    assert acting.current() == ("root", "admin")
