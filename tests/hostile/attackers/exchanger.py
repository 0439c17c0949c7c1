"""A program that exchanges directories and files for links that lead out, until it is ended.

    python3 exchanger.py DIRECTORY TARGET...

It makes DIRECTORY: in it, for each TARGET (a directory outside), `spotN` with `f`,
`deep/f` and so on, and `decoyN`, a link to the target; these two change places all
the time, and so do `f` and a link to the target's `f`. What is removed comes back.
It says "ready", and at the end how often it has exchanged.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HERE, EXCHANGE = -100, 2
NOFOLLOW = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
EVERY = 64  # exchanges between looks at what is missing

libc = ctypes.CDLL(None)
count = 0


def exchange(directory: int, name: str, other: str) -> None:
    """Let two names change places, if both are there."""
    global count
    if libc.renameat2(directory, name.encode(), directory, other.encode(), EXCHANGE) == 0:
        count += 1


@contextmanager
def opened(directory: int, name: str) -> Iterator[int]:
    """A directory that is no link; never one of the targets."""
    fd = os.open(name, NOFOLLOW, dir_fd=directory)
    try:
        yield fd
    finally:
        os.close(fd)


def fresh(base: Path, number: int, target: str) -> Path:
    """A directory as `spotN` is to be, under a name of its own."""
    created = base / f"fresh-{number}-{os.urandom(4).hex()}"
    (created / "deep/more").mkdir(parents=True)
    for name in ("f", "deep/f", "deep/more/f"):
        (created / name).write_text("inside")
    (created / "link").symlink_to(f"{target}/f")
    (created / "up").symlink_to("deep/../f")
    return created


def kind(path: Path) -> str:
    """What is there: "directory", "link" or nothing."""
    with suppress(FileNotFoundError):
        return "link" if stat.S_ISLNK(path.lstat().st_mode) else "directory"
    return ""


def mend(base: Path, number: int, target: str) -> None:
    """Put back what was removed: of `spotN` and `decoyN` one is a directory and one the link."""
    spot, decoy = base / f"spot{number}", base / f"decoy{number}"
    for path, other in ((spot, decoy), (decoy, spot)):
        if kind(path):
            continue
        if kind(other) == "link":
            fresh(base, number, target).rename(path)
        else:
            path.symlink_to(target)
    real = spot if kind(spot) == "directory" else decoy
    with suppress(OSError), opened(HERE, str(real)) as fd:
        if {"f", "link", "up"} <= set(os.listdir(f"/proc/self/fd/{fd}")):
            with opened(fd, "deep") as deep:
                os.stat("f", dir_fd=deep, follow_symlinks=False)
            return
    with suppress(OSError):
        away = base / f"fresh-{number}-{os.urandom(4).hex()}"
        real.rename(away)
        if kind(away) == "directory":
            shutil.rmtree(away)
        else:
            away.unlink()


def main() -> None:
    """Exchange until SIGTERM."""
    base, targets = Path(sys.argv[1]), sys.argv[2:]
    base.mkdir()
    signal.signal(signal.SIGTERM, lambda *_: (print(count, flush=True), os._exit(0)))
    for number, target in enumerate(targets):
        for _ in range(2):
            mend(base, number, target)
    print("ready", flush=True)
    for turn in itertools.count():
        with suppress(OSError), opened(HERE, str(base)) as top:
            for number, target in enumerate(targets):
                if turn % EVERY == number:
                    mend(base, number, target)
                exchange(top, f"spot{number}", f"decoy{number}")
                with suppress(OSError), opened(top, f"spot{number}") as spot:
                    exchange(spot, "f", "link")
                    exchange(spot, "deep", "up")


main()
