"""`svc admin move-store` before anything is moved; the rest is tested on a real host."""

from __future__ import annotations

from typing import Any

import pytest

from svc.admin.people import move_store


def test_only_root_moves_stores(svc: Any, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 4001)
    code, _, err = svc("move-store", "ada")
    assert code == 1 and "moving stores requires root" in err


def test_without_the_setting_it_is_named(svc: Any, database: str, needs_root: None) -> None:
    code, _, err = svc("move-store", "ada")
    assert code == 1 and "SVC_STORE_DIR is not set" in err
    assert "hint: sudo editor /etc/svc/svc.env" in err
    assert move_store.ACTION == "admin.move_store"
