"""schema/current.sql is what the migrations make."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_current_sql_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from schema import generate

    assert Path(generate.TARGET).read_text() == generate.current(), "run: python -m schema.generate"
    monkeypatch.setattr(sys, "argv", ["generate", "--check"])
    assert generate.main() == 0
