"""Reports of root's: believed in exactly one form, else as if there were none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured

from svc.domain import host_reports
from svc.domain.host_reports import HOST
from svc.domain.pages import Page
from svc.errors import ValidationFailed
from svc.host.ids import after, now

ITEM = {"code": "disk", "level": "ok", "found": "plenty", "remedy": ""}


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write the doctor's report with these changes, or these bytes."""
    configured(state_dir=str(tmp_path))
    path = Path(host_reports.path_of(str(tmp_path), HOST))
    path.parent.mkdir()

    def write(content: bytes | None = None, **changes: Any) -> Path:
        document = {"format": 1, "report": "host", "written_at": now(), "items": [ITEM]} | changes
        path.write_bytes(json.dumps(document).encode() if content is None else content)
        path.chmod(0o640)
        return path

    return write


def test_a_report_and_its_age(put: Callable[..., Path]) -> None:
    put(written_at=after(now(), -3600))
    report = host_reports.read(HOST)
    assert report.items == [ITEM]
    assert 3600 <= report.about["age_s"] < 3700
    assert (report.about["old"], report.about["command"]) == (False, "sudo svc admin doctor")
    put(written_at=after(now(), -host_reports.OLD_S - 60))
    assert host_reports.read(HOST).about["old"]
    put(written_at=after(now(), 3600))  # the clock was set back
    assert host_reports.read(HOST).about["age_s"] == 0


def test_without_a_report(put: Callable[..., Path]) -> None:
    assert host_reports.read(HOST) == (HOST, None, [])
    assert host_reports.page_of(HOST, Page())["report"] == {
        "written_at": None, "age_s": None, "old": True, "command": "sudo svc admin doctor",
    }  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"content": b""},
        {"content": b"[]"},
        {"content": b"\xff"},
        {"content": b"{" * 100_000},
        {"content": b'{"a": 1, "a": 2}'},
        {"content": b" " * (host_reports.FILE_MAX + 1)},
        {"format": 2},
        {"report": "backups"},
        {"more": 1},
        {"written_at": "yesterday"},
        {"written_at": 1},
        {"items": {}},
        {"items": [ITEM] * (host_reports.ITEMS_MAX + 1)},
        {"items": [ITEM | {"more": 1}]},
        {"items": [ITEM | {"found": 1}]},
        {"items": [ITEM | {"found": None}]},
        {"items": [ITEM | {"found": "x" * (host_reports.TEXT_MAX + 1)}]},
        {"items": [{"code": "disk"}]},
        {"items": ["disk"]},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_any_other_form_is_none(put: Callable[..., Path], changes: dict[str, Any]) -> None:
    put(**changes)
    assert host_reports.read(HOST) == (HOST, None, [])


def test_a_file_that_others_may_write_is_none(put: Callable[..., Path], tmp_path: Path) -> None:
    path = put()
    path.chmod(0o660)
    assert host_reports.read(HOST).items == []
    path.chmod(0o640)
    assert host_reports.read(HOST).items == [ITEM]
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert host_reports.read(HOST).items == []
    path.unlink()
    os.mkfifo(path)
    assert host_reports.read(HOST).items == []  # without waiting


def test_a_page_of_one(put: Callable[..., Path]) -> None:
    found = [
        ITEM | {"code": code, "level": level} for code, level in (("b", "ok"), ("a", "fail"), ("c", "ok"))
    ]
    put(items=found)

    def codes(**page: Any) -> str:
        return "".join(item["code"] for item in host_reports.page_of(HOST, Page(**page))["items"])

    assert (codes(), codes(sort="code"), codes(sort="-code")) == ("bac", "abc", "cba")
    assert (codes(q="FAIL"), codes(limit=2), codes(offset=2)) == ("a", "ba", "c")
    with pytest.raises(ValidationFailed):
        codes(sort="size")
