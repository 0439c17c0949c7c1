"""The database of the installed program on a file system of its own: a small one, or one that fails."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.installation import STATE, Service

from svc.admin.own_files import HEADS

ROOM = 6 * 1024 * 1024  # bytes, besides what the database takes already
RESERVE = 16 * 1024 * 1024


@contextmanager
def moved(service: Service, mount: Callable[[Path, int], None]) -> Iterator[Path]:
    """The data directory on the file system that `mount` mounts on a path, with room for its content.

    What the test writes is lost with it, and what root remembers of the audit's end meanwhile.
    """
    data = STATE / "data"
    audit_head = STATE / HEADS
    remembered = audit_head.read_bytes() if audit_head.exists() else None
    kept = STATE / "data.kept"
    service.stop()
    try:
        data.rename(kept)
        data.mkdir(mode=0o700)
        sizes = [path.stat().st_size for path in kept.rglob("*") if path.suffix != ".reserve"]
        mount(data, ROOM + RESERVE + sum(sizes))
        shutil.copytree(kept, data, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.reserve"))
        subprocess.run(["chown", "-R", "svc:svc", data], check=True)
        service.start()
        yield data
    finally:
        service.stop()
        subprocess.run(["umount", "-l", data], check=False)
        shutil.rmtree(data, ignore_errors=True)
        kept.rename(data)
        if remembered is not None:
            audit_head.write_bytes(remembered)
        else:
            audit_head.unlink(missing_ok=True)
        service.start()


def tmpfs(path: Path, size: int) -> None:
    """Mount a tmpfs of this size."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "none", path], check=True)


def fill(directory: Path) -> Path:
    """Take all the room that is left; returns the file that has it."""
    filler = directory / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return filler
