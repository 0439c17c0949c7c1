"""Root's folder of updates."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from svc.admin.release import folder
from svc.errors import HostRefused, OperationInProgress, StorageFull


def test_one_at_a_time(tmp_path: Path) -> None:
    with folder.alone(str(tmp_path)) as path:
        assert path == f"{tmp_path}/update"
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o711
        with pytest.raises(OperationInProgress, match="is running"), folder.alone(str(tmp_path)):
            pass
    with folder.alone(str(tmp_path)):
        pass


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "update").symlink_to("elsewhere")
    with pytest.raises(HostRefused, match="cannot be used"), folder.alone(str(tmp_path)):
        pass


def test_what_an_interrupted_run_left_goes_but_for_its_download(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("stays")
    with folder.alone(str(tmp_path)) as path:
        place = Path(path)
        (place / "rehearsal-x/data").mkdir(parents=True)
        (place / "rehearsal-x/data/link").symlink_to(tmp_path / "outside")
        (place / "linked").symlink_to(tmp_path)
        for name in ("old.deb", "new.deb"):
            (place / name).write_text("")
        folder.clean(path, kept="new.deb")
        assert os.listdir(path) == ["new.deb"]
        folder.clean(path)
        assert os.listdir(path) == []
    assert (tmp_path / "outside").exists()


def test_a_process_that_still_writes_is_waited_for(tmp_path: Path) -> None:
    """One that a killed run has started, until it ends."""
    with folder.alone(str(tmp_path)) as path:
        place = Path(path, "rehearsal-x")
        ended = time.monotonic() + 0.5

        def write() -> None:
            while time.monotonic() < ended:
                with contextlib.suppress(
                    FileNotFoundError, FileExistsError
                ):  # removed before it was looked at
                    place.mkdir(exist_ok=True)
                    (place / f"file-{time.monotonic_ns()}").write_text("")

        writer = threading.Thread(target=write)
        writer.start()
        while writer.is_alive():
            folder.clean(path)
        writer.join()
        folder.clean(path)
        assert os.listdir(path) == []


def test_what_cannot_be_removed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "ENDING_S", 0.1)
    with pytest.raises(HostRefused, match="cannot be emptied"):
        folder.clean(f"{tmp_path}/missing")


def test_room_is_looked_for(tmp_path: Path) -> None:
    folder.require_room(str(tmp_path), 1)
    with pytest.raises(StorageFull, match=r"not enough room in .*: 1048576.0 TiB are needed"):
        folder.require_room(str(tmp_path), 2**60)
