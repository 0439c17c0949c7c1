"""A migrated database, two accounts, an administrator, and a helper that answers from a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured
from unit.domain.gpu_rows import Gpus, host
from unit.serving import FarEnd, caller_of, copy_of_migrated, make_template, make_user

from svc.db import connect
from svc.domain import operations
from svc.domain.principal import Caller


@pytest.fixture
def db(tmp_path: Path) -> Iterator[str]:
    path = copy_of_migrated(str(tmp_path / "svc.db"))
    connect.open_database(path)
    yield path
    connect.close_database()


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the registry policy: ``policy({"host": ...})``; registry.example is allowed to begin with."""
    configured(registries_path=str(tmp_path / "registries.json"))

    def allow(*entries: dict[str, Any]) -> None:
        full = [{"path_prefix": "", "insecure": False} | entry for entry in entries]
        (tmp_path / "registries.json").write_text(json.dumps({"registries": full}))

    allow({"host": "registry.example"})
    return allow


@pytest.fixture
def wakes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that the worker was woken."""
    woken: list[int] = []
    monkeypatch.setattr(operations, "wake", lambda: woken.append(1))
    return woken


@pytest.fixture
def far(db: str, policy: Any, wakes: list[int]) -> Iterator[FarEnd]:
    end = FarEnd("unix")
    yield end
    end.close()


@pytest.fixture
def ada(far: FarEnd) -> Caller:
    return caller_of(make_user("ada", 2001), far)


@pytest.fixture
def bob(far: FarEnd) -> Caller:
    return caller_of(make_user("bob", 2002), far)


@pytest.fixture
def boss(far: FarEnd) -> Caller:
    """A superuser who is not root."""
    return caller_of(make_user("boss", 2003, superuser=True), far)


@pytest.fixture
def template(ada: Caller) -> str:
    """A private template of ada's; its id."""
    return make_template(ada.user_id)


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpus]:
    """A host of four fake GPUs."""
    with host(tmp_path, monkeypatch) as four:
        yield four
