"""The verbs of files while another process exchanges directories for links that lead out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.file_roots import FileRoots, names

from svc_helper.agent.calls import Failure

SECONDS = float(os.environ.get("SVC_TEST_SECONDS", "2"))
PATIENCE_S = 60  # until both something has worked and something was refused
EXCHANGER = Path(__file__).parents[2] / "hostile/attackers/exchanger.py"
Calls = Callable[[str, int], list[tuple[str, dict[str, Any]]]]


@pytest.fixture
def outside(files: FileRoots) -> Iterator[Path]:
    """A directory beside the root that looks as those in it do, and stays the same; the race is on."""
    created = files.outside / "private"
    (created / "deep/more").mkdir(parents=True)
    for name in ("f", "deep/f", "deep/more/f"):
        (created / name).write_text("canary")
        (created / name).with_name("only-outside").touch()
    before = snapshot(created)
    targets = ["../../../outside/private", str(created), "../../../home/../outside/private"]
    argv = [sys.executable, "-I", str(EXCHANGER), str(files.work / "race"), *targets]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as exchanger:
        assert exchanger.stdout is not None
        assert exchanger.stdout.readline() == "ready\n"
        yield created
        exchanger.terminate()
        assert int(exchanger.stdout.readline()) > 0
    assert snapshot(created) == before


def snapshot(directory: Path) -> list[tuple[str, int, int, int, str]]:
    """All below a directory: which file it is, when it was changed, and what is in it."""
    found = []
    for path in sorted([directory, *directory.rglob("*")]):
        status = path.lstat()
        content = path.read_text() if path.is_file() else ""
        found.append((str(path), status.st_ino, status.st_mtime_ns, status.st_mode, content))
    return found


RACES: dict[str, Calls] = {
    "list": lambda spot, _: [
        ("fs.list", {"path": path, "offset": 0, "limit": 100}) for path in (spot, f"{spot}/deep")
    ],
    "mkdir": lambda spot, turn: [
        ("fs.mkdir", {"path": f"{spot}/deep/new{turn}", "parents": False}),
        ("fs.mkdir", {"path": f"{spot}/deep/a{turn}/b", "parents": True}),
    ],
    "move": lambda spot, turn: [
        ("fs.move", {"path": f"{spot}/deep/f", "to": f"race/mine{turn}", "replace": False}),
        ("fs.move", {"path": f"race/mine{turn}", "to": f"{spot}/deep/more/f", "replace": True}),
        ("fs.move", {"path": f"{spot}/f", "to": f"{spot}/g", "replace": True}),
    ],
    "remove": lambda spot, _: [
        ("fs.remove", {"path": f"{spot}/deep/more", "recursive": True}),
        ("fs.remove", {"path": f"{spot}/deep/f", "recursive": False}),
        ("fs.remove", {"path": spot, "recursive": True}),
    ],
}


@pytest.mark.parametrize("race", RACES)
def test_nothing_outside_is_touched(files: FileRoots, outside: Path, race: str) -> None:
    until = time.monotonic() + SECONDS
    codes: Counter[str] = Counter()
    turn = 0
    while time.monotonic() < until or not (codes["ok"] and codes["forbidden"]):
        turn += 1
        assert time.monotonic() < until + PATIENCE_S, codes
        for verb, args in RACES[race](f"race/spot{turn % 3}", turn):
            try:
                data = files.call(verb, **args)
            except Failure as failure:
                codes[failure.code] += 1
            else:
                codes["ok"] += 1
                assert b"only-outside" not in names(data.get("rows", []))
    assert set(codes) <= {"ok", "forbidden", "not_found", "conflict", "exists"}, codes
