"""The last lines of tests/run: what its suites took, and what a depth has left out."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[1] / "run.d/summary.py"


@pytest.fixture
def summary() -> Any:
    """The module, which no package has."""
    spec = importlib.util.spec_from_file_location("summary", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Reports of unit and e2e: three tests, of which one is skipped."""
    for suite, cases in (("unit", 2), ("e2e", 1)):
        case = '<testcase classname="c" name="n" time="1"/>' * (cases - 1)
        last = '<testcase classname="c" name="last" time="1"><skipped message="no root"/></testcase>'
        last = last if suite == "unit" else '<testcase classname="c" name="last" time="1"/>'
        (tmp_path / f"{suite}.xml").write_text(
            f'<testsuites><testsuite time="{cases}">{case}{last}</testsuite></testsuites>'
        )
        (tmp_path / f"{suite}.processor").write_text("100400")
    (tmp_path / "e2e.left-out").write_text(json.dumps({"merge": 7, "release": 1}))
    (tmp_path / "unit.left-out").write_text(json.dumps({"merge": 2}))
    return tmp_path


def test_a_green_run(summary: Any, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert summary.main(str(results), "change", "60", "unit=0", "e2e=0") == 0
    out = capsys.readouterr().out
    assert "skipped: c::last: no root\n" in out
    assert "e2e: 1 tests, 0 failed, 0 skipped, 1 s, 100 s of processor time\n" in out
    assert "all suites: 60 s, 201 s of processor time\n" in out
    assert "left out at depth change: --depth merge adds unit 2, e2e 7; --depth release adds e2e 1\n" in out
    assert out.endswith("2 passed, 0 failed, 1 skipped\n")


def test_processor_time_over_its_limit_is_a_failure(
    summary: Any, results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "PROCESSOR_LIMITS_S", {"unit": 99, "all suites": 250})
    assert summary.main(str(results), "change", "60", "unit=0", "e2e=0") == 1
    out = capsys.readouterr().out
    assert "failed: unit took 100 s of processor time, more than its limit of 99 s\n" in out
    assert out.endswith("2 passed, 1 failed, 1 skipped\n")
    assert summary.main(str(results), "merge", "60", "unit=0", "e2e=0") == 0


def test_a_suite_without_a_report(summary: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert summary.main(str(tmp_path), "release", "60", "release=0") == 0
    assert summary.main(str(tmp_path), "release", "60", "release=2") == 1
    assert "failed: the suite release ended with exit status 2\n" in capsys.readouterr().out
