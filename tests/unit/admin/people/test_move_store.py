"""`svc admin move-store` before anything is moved; the rest is tested on a real host."""

from __future__ import annotations

from typing import Any

import pytest

from svc.db.lock import hold


def test_only_root_moves_stores(svc: Any, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 4001)
    code, _, err = svc("move-store", "ada")
    assert code == 1 and "moving stores requires root" in err


def test_without_the_setting_it_is_named(svc: Any, database: str, needs_root: None) -> None:
    code, _, err = svc("move-store", "ada")
    assert code == 1 and "SVC_STORE_DIR is not set" in err
    assert "hint: sudo editor /etc/svc/svc.env" in err


def test_a_server_that_has_just_started_is_found_by_its_lock(
    svc: Any, database: str, monkeypatch: pytest.MonkeyPatch, needs_root: None
) -> None:
    """It has no socket yet, and takes no notice of a copy that is under way but for this lock."""
    monkeypatch.setenv("SVC_STORE_DIR", "/var/lib/svc-stores/%u")
    with hold(database):
        code, _, err = svc("move-store", "ada")
    assert code == 1 and f"{database} is in use by svc server" in err
    assert "stop that process first" in err or "systemctl stop svc" in err
