"""Which limits are missing, and where that refuses a start; the start itself is in test_transitions.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured

from svc.domain.workspaces import missing_limits


@pytest.mark.parametrize(
    ("argument", "systemd", "refused"),
    [("auto", True, True), ("auto", False, False), ("refuse", False, True), ("allow", True, False)],
)
def test_where_it_is_refused(
    argument: str, systemd: bool, refused: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(missing_limits, "SYSTEMD", str(tmp_path if systemd else tmp_path / "none"))
    configured(missing_limits=argument)
    assert missing_limits.refused() is refused


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ({}, []),
        ({"limits_missing": None}, []),
        ({"limits_missing": "cpu_limit"}, []),
        ({"limits_missing": {"cpu_limit": 1}}, []),
        ({"limits_missing": ["pids_limit", "cpu_limit", "x", 7, [], None]}, ["cpu_limit", "pids_limit"]),
    ],
)
def test_what_an_agent_says(answer: dict[str, Any], names: list[str]) -> None:
    assert missing_limits.of(answer) == names
