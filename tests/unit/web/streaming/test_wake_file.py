"""The file that writers touch: waiting for it, its removal, hosts without inotify."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from svc.db import events
from svc.web.streaming import wake_file
from svc.web.streaming.wake_file import WakeFile


def test_a_touch_wakes(tmp_path: Path) -> None:
    database = str(tmp_path / "svc.db")
    file = WakeFile(database)
    for _ in range(3):
        woken = threading.Thread(target=file.wait, args=(60,))
        woken.start()
        events.announce(database)
        woken.join(20)
        assert not woken.is_alive()
    os.unlink(f"{database}{events.SUFFIX}")
    assert file.wait(20)
    assert os.path.exists(f"{database}{events.SUFFIX}")
    file.wait(0)  # what its removal and its return said
    woken = threading.Thread(target=file.wait, args=(60,))
    woken.start()
    events.announce(database)
    woken.join(20)
    assert not woken.is_alive()
    file.close()
    assert not file.wait(60)
    file.release()


def test_without_inotify_it_waits_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_file, "FALLBACK_S", 0.01)
    monkeypatch.setattr(wake_file.WakeFile, "_watch", lambda _self: None)
    file = WakeFile(str(tmp_path / "svc.db"))
    assert file.wait(60)
    file.close()
    assert not file.wait(60)
    file.release()
