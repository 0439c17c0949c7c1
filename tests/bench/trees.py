"""Many files: archives and listings of 10,000 and of 200,000, beside `tar czf`, `tar | pigz` and `ls -l`.

On the same files as the same user. Half of each file is text and half is noise. A list goes to a pipe, as
`ls -l` does; an archive to a file.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench import busy
from bench.pairs import Row, Shell, pair
from bench.stage import USER
from e2e import files
from e2e.installation import SVC

MANY, SIZE = 10_000, 10_800  # 108 MB
MOST, SMALL = 200_000, 1_024
PER_DIRECTORY = 1_000  # of MOST, in the archive
ROUNDS, FEW_ROUNDS = 7, 3


def rows(shell: Shell) -> Iterator[Row]:
    """All of them."""
    work = files.work(USER)
    yield from _many(shell, work)
    yield from _most(shell, work)


def _fill(tree: Path, count: int, size: int, per_directory: int) -> None:
    """Files of this size; with a size of 0 they are empty."""
    with busy.paused():
        _write(tree, count, size, per_directory)


def _write(tree: Path, count: int, size: int, per_directory: int) -> None:
    words = [f"{number:x}".encode() for number in range(4000)]
    chance = random.Random(6)
    for number in range(count):
        directory = tree / f"{number // per_directory:03}"
        if number % per_directory == 0:
            directory.mkdir(mode=0o755, parents=True)
        text = b" ".join(chance.choices(words, k=size // 8))[: size // 2]
        (directory / f"file-{number:06}.txt").write_bytes(text + chance.randbytes(size - len(text)))
    subprocess.run(["chown", "-R", f"{USER}:", tree], check=True)


def _many(shell: Shell, work: Path) -> Iterator[Row]:
    """10,000 files in one directory."""
    _fill(work / "many", MANY, SIZE, MANY)
    out, other = str(work / "ours.tgz"), str(work / "theirs.tgz")
    yield _archive(shell, work, "many", "fs archive, 10,000 files", ROUNDS, 0.35)
    if shutil.which("pigz"):
        tar = shell.side("tar", "-C", str(work), "-I", "pigz", "-cf", other, "many")
        ours = shell.side(str(SVC), "fs", "archive", "work/many", out, "--force")
        yield pair("fs archive, 10,000 files | tar, pigz", ours, tar, rounds=ROUNDS)
    sizes = [os.stat(path).st_size / 1e6 for path in (out, other)]
    yield Row("size of that archive | tar", sizes[0], sizes[1], sizes[0] / sizes[1], None, "MB")
    yield _list(shell, work, "many/000", "fs ls, 10,000 entries", ROUNDS)
    _remove(work, "many")


def _most(shell: Shell, work: Path) -> Iterator[Row]:
    """200,000 small files: archived from 200 directories, listed in one."""
    _fill(work / "most", MOST, SMALL, PER_DIRECTORY)
    yield _archive(shell, work, "most", "fs archive, 200,000 files of 1 KiB", FEW_ROUNDS, 0.6)
    _remove(work, "most")
    _fill(work / "flat", MOST, 0, MOST)
    yield _archive(shell, work, "flat", "fs archive, 200,000 empty files", FEW_ROUNDS, None)
    yield _list(shell, work, "flat/000", "fs ls, 200,000 entries", FEW_ROUNDS, 2.0)
    _remove(work, "flat")


def _remove(work: Path, name: str) -> None:
    with busy.paused():
        subprocess.run(["rm", "-rf", work / name, work / "ours.tgz", work / "theirs.tgz"], check=True)


def _archive(shell: Shell, work: Path, name: str, what: str, rounds: int, reach: float | None) -> Row:
    """Into a new file: where one is replaced, svc has it on the disk first, which `tar` leaves out."""
    out, other = work / "ours.tgz", work / "theirs.tgz"
    away = partial(out.unlink, missing_ok=True), partial(other.unlink, missing_ok=True)
    ours = shell.side(str(SVC), "fs", "archive", f"work/{name}", str(out), before=away[0])
    theirs = shell.side("tar", "-C", str(work), "-czf", str(other), name, before=away[1])
    bar = None if reach is None else 1.0
    return pair(f"{what} | tar czf", ours, theirs, bar=bar, reach=reach, rounds=rounds)


def _list(shell: Shell, work: Path, name: str, what: str, rounds: int, bar: float | None = None) -> Row:
    ours = shell.side(str(SVC), "fs", "ls", f"work/{name}")
    return pair(f"{what} | ls -l", ours, shell.side("ls", "-l", str(work / name)), bar=bar, rounds=rounds)
