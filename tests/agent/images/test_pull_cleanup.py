"""Old temporary directories of Podman's are removed; nothing else is."""

from __future__ import annotations

import os
import time
from pathlib import Path

from svc_helper.agent.images import pull_cleanup


def created(path: Path, *, old: bool, fresh_inside: bool = False) -> Path:
    path.mkdir()
    layer = path / "1"
    layer.write_bytes(b"layer")
    past = time.time() - pull_cleanup.OLD_S - 60
    for one in (layer, path) if old else ():
        os.utime(one, (past, past))
    if fresh_inside:
        os.utime(layer)
    return path


def test_only_old_directories_of_podmans_go(tmp_path: Path) -> None:
    gone = created(tmp_path / "storage123", old=True)
    kept = [
        created(tmp_path / "storage124", old=False),
        created(tmp_path / "storage125", old=True, fresh_inside=True),
        created(tmp_path / "storage", old=True),
        created(tmp_path / "storage-of-mine", old=True),
        created(tmp_path / "other9", old=True),
    ]
    target = created(tmp_path / "target", old=True)
    link = tmp_path / "storage7"
    link.symlink_to(target)
    pull_cleanup.remove_stale(str(tmp_path))
    assert not gone.exists()
    assert all((path / "1").exists() for path in [*kept, target])
    assert link.is_symlink()


def test_another_users_stay(tmp_path: Path) -> None:
    theirs = created(tmp_path / "storage8", old=True)
    os.chown(theirs, 65534, 65534)
    pull_cleanup.remove_stale(str(tmp_path))
    assert theirs.exists()


def test_no_directory_is_no_fault(tmp_path: Path) -> None:
    pull_cleanup.remove_stale(str(tmp_path / "missing"))
