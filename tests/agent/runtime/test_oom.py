"""Whether the kernel ended a container for its memory: the notes and the comparison."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from svc_helper.agent.runtime import oom

ID = "ws-aaaaaaaa"


@pytest.fixture
def home(tmp_path: Path) -> Any:
    """A user of systemd whose cgroups are files of the test."""
    group = str(tmp_path / "cgroup/user@4242.service")
    return SimpleNamespace(home=str(tmp_path / "home"), manager_group=group, systemd=True, environment={})


def events_of(home: Any) -> Path:
    """The file in which the kernel counts for the workspace; its directory is made."""
    directory = Path(home.manager_group) / "svc.slice" / "svc-wsaaaaaaaa.slice"
    directory.mkdir(parents=True, exist_ok=True)
    return directory / "memory.events"


def counted(home: Any, kills: int) -> None:
    """Have the kernel's count say so much."""
    events_of(home).write_text(f"low 0\nhigh 0\nmax 19\noom 7\noom_kill {kills}\noom_group_kill 0\n")


def test_the_first_start_has_no_slice_yet(home: Any) -> None:
    oom.note(home, ID)
    assert not oom.happened(home, ID)
    counted(home, 0)
    assert not oom.happened(home, ID)
    counted(home, 1)
    assert oom.happened(home, ID)


def test_only_what_was_killed_since_the_start_counts(home: Any) -> None:
    counted(home, 3)
    oom.note(home, ID)
    assert not oom.happened(home, ID)
    counted(home, 4)
    assert oom.happened(home, ID)
    oom.note(home, ID)
    assert not oom.happened(home, ID)


def test_after_a_reboot_the_count_begins_anew(home: Any) -> None:
    counted(home, 3)
    oom.note(home, ID)
    events_of(home).unlink()
    assert not oom.happened(home, ID)


def test_a_note_that_the_user_spoiled_stops_nothing(home: Any) -> None:
    counted(home, 1)
    oom.note(home, ID)
    note = Path(home.home, ".local/state/svc/workspaces", ID, "oom_kills")
    for arguments in ("", "many\n", "\xff", "9" * 5000):
        note.write_text(arguments)
        assert oom.happened(home, ID) is ("9" not in arguments)
    note.unlink()
    os.mkfifo(note)
    assert oom.happened(home, ID), "an empty FIFO is not waited for"
    oom.note(home, ID)
    assert not oom.happened(home, ID)


def test_without_systemd_nothing_is_kept(home: Any) -> None:
    home.systemd = False
    oom.note(home, ID)
    assert not oom.happened(home, ID)
    oom.forget(home, ID)
    assert not Path(home.home).exists()


def test_a_slice_has_one_level() -> None:
    assert oom.slice_of(ID) == "svc-wsaaaaaaaa.slice"
