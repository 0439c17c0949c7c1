"""The writing of reports: whatever is in them, the app can read the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from unit.configuring import configured

from svc.admin import reporting
from svc.domain import host_reports
from svc.domain.host_reports import HOST
from svc.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    configured(state_dir=str(tmp_path))
    return Settings(environ={"SVC_STATE_DIR": str(tmp_path), "SVC_DB": str(tmp_path / "svc.db")}, file={})


def test_long_and_strange_values_do_not_spoil_a_report(settings: Settings, tmp_path: Path) -> None:
    items = [
        {"code": "a", "level": "ok", "found": "x" * 10**5, "remedy": ""},
        {"code": "b", "level": "ok", "found": None, "remedy": ""},
        {"code": "c", "level": "ok", "found": "\x00\udc80", "remedy": ""},
    ]
    assert reporting.write(settings, HOST, items)
    found = {item["code"]: item["found"] for item in host_reports.read(HOST).items}
    assert found == {"a": "x" * host_reports.TEXT_MAX, "c": "\x00\\udc80"}
    assert json.loads((tmp_path / "reports" / "host.json").read_text())["format"] == 1


def test_as_many_items_as_are_read(settings: Settings) -> None:
    item = {"code": "a", "level": "ok", "found": "", "remedy": ""}
    assert reporting.write(settings, HOST, [item] * (host_reports.ITEMS_MAX + 5))
    assert len(host_reports.read(HOST).items) == host_reports.ITEMS_MAX


def test_where_nothing_can_be_written(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("no folder")
    assert not reporting.write(settings, HOST, [])
