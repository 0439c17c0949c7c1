from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from svc.admin.backup import snapshots
from svc.admin.backup.target import Target

DATABASE = "/var/lib/svc/data/svc.db"


def put(folder: Path, name: str, number: int, database: str = DATABASE, size: int = 3, host: str = "") -> str:
    (folder / name).write_bytes(b"abc")
    (folder / f"{name}.host.tar").write_bytes(b"")
    side = {"format": 1, "database": database, "size_bytes": size, "number": number}
    side["host"] = host or socket.gethostname()
    (folder / f"{name}.json").write_text(json.dumps(side))
    return name


def at(text: str) -> str:
    return f"svc-{text}T030000.000Z.db"


def left(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".db"))


def test_the_newest_are_kept(target: Target, folder: Path) -> None:
    names = [put(folder, at(f"2026010{day}"), day) for day in range(1, 6)]
    assert snapshots.prune(target, DATABASE, 2, names[-1]) == names[:3]
    assert left(folder) == names[3:]
    assert len(os.listdir(folder)) == 6, "what lay beside them went too"


def test_the_clock_does_not_say_which_is_newer(target: Target, folder: Path) -> None:
    """A snapshot of a clock that was 400 days ahead must not push out each new one."""
    ahead = put(folder, at("20271231"), 1)
    second, newest = put(folder, at("20260102"), 2), put(folder, at("20250101"), 3)
    assert [one.name for one in snapshots.complete(target, DATABASE)] == [ahead, second, newest]
    assert snapshots.prune(target, DATABASE, 1, newest) == [ahead, second]


def test_equal_times_of_the_files(target: Target, folder: Path) -> None:
    """Copied to another disk all of them have one time; the numbers say which is newer."""
    names = [put(folder, at(f"2026010{day}"), 9 - day) for day in range(1, 6)]
    for path in folder.iterdir():
        os.utime(path, (1_000_000_000, 1_000_000_000))
    assert snapshots.prune(target, DATABASE, 2, names[0]) == [names[4], names[3], names[2]]
    assert left(folder) == names[:2]


def test_equal_numbers_and_one(target: Target, folder: Path) -> None:
    """From two directories that were put together: `newest` is kept even if it sorts first."""
    names = [put(folder, at(f"2026010{day}"), 1) for day in (1, 2, 3)]
    assert snapshots.prune(target, DATABASE, 1, names[0]) == names[1:]
    assert left(folder) == names[:1]


def test_only_complete_ones_of_this_database_are_counted_and_removed(
    target: Target, folder: Path, needs_root: None
) -> None:
    ours = [put(folder, at(f"2026010{day}"), 10 + day) for day in (1, 2, 3)]
    others = [
        put(folder, at("20250101"), 1, database="/srv/other/svc.db"),
        put(folder, at("20250102"), 1, size=4),  # cut off
        put(folder, "svc-20250103.db", 1),
        put(folder, "svc.db", 1),
        put(folder, at("20250104") + "x", 1),
    ]
    (folder / at("20250105")).write_bytes(b"no side file")
    (folder / at("20250106")).symlink_to(folder / ours[0])
    (folder / f"{at('20250106')}.json").write_bytes((folder / f"{ours[0]}.json").read_bytes())
    put(folder, at("20250107"), 1)
    os.chown(folder / at("20250107"), 1234, 1234)
    put(folder, at("20250108"), 1)
    os.chown(folder / f"{at('20250108')}.json", 1234, 1234)
    put(folder, at("20250109"), 1)
    os.link(folder / at("20250109"), folder / "second name")
    (folder / at("20250110")).mkdir()
    (folder / f"{at('20250110')}.json").write_text("[" * 5000)
    before = set(os.listdir(folder))
    assert snapshots.prune(target, DATABASE, 2, ours[2]) == ours[:1]
    gone = before - set(os.listdir(folder))
    assert gone == {ours[0], f"{ours[0]}.json", f"{ours[0]}.host.tar"}
    assert not gone & set(others)


def test_another_host_in_the_same_directory(target: Target, folder: Path) -> None:
    """Its database has the same path; its snapshots are neither counted nor removed."""
    theirs = [put(folder, at(f"2026010{day}"), day, host="another.example") for day in (1, 2, 5)]
    ours = [put(folder, at(f"2026010{day}"), day) for day in (3, 4, 6)]
    assert [one.name for one in snapshots.complete(target, DATABASE)] == ours
    assert snapshots.prune(target, DATABASE, 1, ours[2]) == ours[:2]
    assert left(folder) == [*theirs, ours[2]]


def test_what_another_host_is_about_to_complete_stays(target: Target, folder: Path) -> None:
    """The side file has its name before the snapshot has, which is a draft until then."""
    with target.draft(at("20260101")) as draft:
        put(folder, at("20260101"), 1)
        (folder / at("20260101")).unlink()
        snapshots.remove_stale(target)
        draft.write(b"abc")
        draft.rename(at("20260101"))
    assert [one.name for one in snapshots.complete(target, DATABASE)] == [at("20260101")]


def test_a_link_as_side_file_is_not_followed(target: Target, folder: Path) -> None:
    name = put(folder, at("20260101"), 1)
    (folder / f"{name}.json").rename(folder / "elsewhere.json")
    (folder / f"{name}.json").symlink_to(folder / "elsewhere.json")
    assert snapshots.complete(target, DATABASE) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 2}', b"\xff", b"[" * 60000])
def test_a_side_file_that_is_none(target: Target, folder: Path, content: bytes) -> None:
    name = put(folder, at("20260101"), 1)
    (folder / f"{name}.json").write_bytes(content)
    assert snapshots.read_side(target, name) is None


def test_names_are_free_and_of_the_pattern(target: Target, folder: Path) -> None:
    name = snapshots.new_name(target)
    assert snapshots.NAME.fullmatch(name)
    put(folder, name, 1)
    assert snapshots.new_name(target) != name


def test_what_lies_beside_no_snapshot_is_removed(target: Target, folder: Path) -> None:
    """A run that was killed between the names of its files, or while it removed an old snapshot."""
    whole, gone = put(folder, at("20260101"), 1), put(folder, at("20260102"), 2)
    (folder / gone).unlink()
    (folder / "mine.db.json").write_text("{}")
    (folder / f".{at('20260103')}.0123abcd.partial").write_bytes(b"x")
    snapshots.remove_stale(target)
    assert sorted(os.listdir(folder)) == ["mine.db.json", whole, f"{whole}.host.tar", f"{whole}.json"]
