"""What is kept of files that conmon replaces: with a process that does to them what conmon does."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from svc_helper.agent import paths
from svc_helper.agent.calls import Failure
from svc_helper.agent.runtime import conmon_log
from svc_helper.agent.runtime.log_files import Files

WS = "ws-00000000"


class Conmon:
    """Opens its log as conmon does, appends, and replaces it."""

    def __init__(self, home: Any) -> None:
        self.path = conmon_log.path(home, WS)
        self.fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, text: str) -> None:
        os.write(self.fd, text.encode() + b"\n")

    def replace(self, text: str) -> None:
        """Begin another file with this text."""
        os.close(self.fd)
        self.fd = os.open(f"{self.path}.tmp", os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o640)
        os.rename(f"{self.path}.tmp", self.path)
        self.write(text)


@pytest.fixture
def home(tmp_path: Path) -> Any:
    return SimpleNamespace(home=str(tmp_path))


def kept(home: Any) -> tuple[int, str]:
    """The number of the first file, and what all have."""
    directory = paths.output(home.home, WS)
    conmon_log.arrange(directory)
    with Files(directory, conmon_log.NAME) as files:
        parts = b"\n".join(files.forward(files.first, files.end))
    return files.first.number, parts.decode().replace("\n", " ").strip()


def test_a_full_file_and_its_successors_are_kept(home: Any) -> None:
    conmon_log.prepare(home, WS)
    conmon = Conmon(home)
    assert kept(home) == (0, "")
    conmon.write("a")
    assert kept(home) == (0, "a")
    conmon.replace("b")
    assert kept(home) == (0, "a b")
    conmon.replace("c")
    assert kept(home) == (1, "b c"), "the oldest goes when somebody asks"
    conmon.write("d")
    for text in "ef":  # nobody asks in between
        conmon.replace(text)
    first, text = kept(home)
    assert (first > 2, text) == (True, "f"), "never with a hole that does not show"
    conmon.replace("g")
    assert kept(home) == (first, "f g")
    os.close(conmon.fd)


def test_each_start_continues_and_a_large_file_is_left(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conmon_log, "_FULL", 6)
    seen = []
    for text in ("one", "two", "three", "four", "five"):
        conmon_log.prepare(home, WS)
        conmon = Conmon(home)
        conmon.write(text)
        os.close(conmon.fd)
        seen.append(kept(home))
    assert seen[:3] == [(0, "one"), (0, "one two"), (0, "one two three")]
    assert seen[3:] == [(0, "one two three four"), (1, "three four five")]


def test_what_is_in_the_way_changes_only_what_is_kept(home: Any) -> None:
    directory = Path(paths.output(home.home, WS))
    conmon_log.arrange(str(directory))
    assert not directory.exists()
    directory.mkdir(parents=True)
    (directory / "output.log.tmp").touch()  # by a conmon that was killed
    (directory / "output.7.log").mkdir()
    conmon_log.prepare(home, WS)
    conmon = Conmon(home)
    conmon.write("a")
    assert kept(home) == (8, "a")
    conmon.replace("b")
    assert kept(home) == (8, "a b"), "the one that is there is used: conmon may have it open"
    os.close(conmon.fd)
    Path(home.home, "file").touch()
    with pytest.raises(Failure):
        conmon_log.prepare(SimpleNamespace(home=f"{home.home}/file"), WS)
