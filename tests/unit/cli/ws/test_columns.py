"""What every command that starts a workspace says of limits that the host does not keep."""

from __future__ import annotations

from typing import Any

import pytest

from svc.cli.ws.columns import COLUMNS, note_limits


def test_the_missing_ones_are_named_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    note_limits({"limits_missing": ["memory_bytes", "cpu_limit"]})
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "svc: this host cannot apply: memory_bytes, cpu_limit; for an administrator: sudo svc admin doctor\n"
    )


@pytest.mark.parametrize("record", [{}, None, [], {"limits_missing": []}, {"limits_missing": "all"}])
def test_nothing_else_is_said(record: Any, capsys: pytest.CaptureFixture[str]) -> None:
    note_limits(record)
    assert capsys.readouterr().err == ""


def test_a_hostile_name_steers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    note_limits({"limits_missing": ["\x1b[2J"]})
    assert "\x1b" not in capsys.readouterr().err


def test_a_line_has_its_eight_columns() -> None:
    assert [heading for heading, _, _ in COLUMNS] == [
        "ID", "NAME", "STATUS", "TEMPLATE", "IMAGE", "GPUS", "SINCE", "REASON",
    ]  # fmt: skip
