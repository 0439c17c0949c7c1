"""Root's record of what was seen."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from pathlib import Path

import pytest

from svc.admin.release import record
from svc.errors import HostRefused

CHECKED = {"at": "2026-01-02T00:00:00.000Z", "source": "/srv/releases", "problem": ""}


def test_parts_are_replaced_one_by_one(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    assert record.read(state) == {"seen": None, "checked": None, "applied": None}
    record.change(state, checked=CHECKED)
    seen = {name: kind() for name, kind in record.SEEN.items()}
    record.change(state, seen=seen)
    assert record.read(state) == {"seen": seen, "checked": CHECKED, "applied": None}
    assert stat.S_IMODE(os.stat(record.path_of(state)).st_mode) == 0o644
    assert sorted(os.listdir(state)) == ["update.json", "update.json.lock"]


def test_nobody_else_can_hold_its_lock(tmp_path: Path) -> None:
    """It was the directory itself, which everybody may open: `flock /var/lib/svc sleep inf` ended updates."""
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        change = threading.Thread(
            target=record.change, args=(str(tmp_path),), kwargs={"checked": CHECKED}, daemon=True
        )
        change.start()
        change.join(10)
        assert not change.is_alive()
    finally:
        os.close(directory)
    assert record.read(str(tmp_path))["checked"] == CHECKED
    assert stat.S_IMODE(os.stat(tmp_path / "update.json.lock").st_mode) == 0o600


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"{}", b"\0", b'{"format": 1}',
        b'{"format": 2, "seen": null, "checked": null, "applied": null}',
        b'{"format": 1, "seen": {}, "checked": null, "applied": null}',
    ],
)  # fmt: skip
def test_what_it_did_not_write_is_refused_and_stays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "update.json"
    path.write_bytes(content)
    with pytest.raises(HostRefused, match="is not what svc wrote"):
        record.change(str(tmp_path), checked=CHECKED)
    assert path.read_bytes() == content


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "update.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HostRefused, match="cannot be read"):
        record.read(str(tmp_path))
