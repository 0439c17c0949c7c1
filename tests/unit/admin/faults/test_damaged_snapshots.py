"""Fault tests 5 and 7: a snapshot that is torn, cut off or has a flipped bit; a log of another database."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from depths import rounds
from unit.admin.conftest import Svc
from unit.admin.rows import ask, leave_log

TIMES = rounds(8, 8, 200)
PAGE = 4096
KINDS = ("cut off", "bit", "page of zeros", "torn page", "two pages exchanged", "tail of zeros")


def spoil(content: bytes, kind: str, chance: random.Random) -> bytes:
    """The content with one fault, never the same as before."""
    spoilt = bytearray(content)
    page = PAGE * chance.randrange(len(content) // PAGE)
    if kind == "cut off":
        return content[: chance.randrange(len(content))]
    if kind == "bit":
        spoilt[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif kind == "page of zeros":
        spoilt[page : page + PAGE] = bytes(PAGE)
    elif kind == "torn page":  # the disk wrote the first sectors of it only
        at = page + 512 * chance.randrange(1, 8)
        spoilt[at : page + PAGE] = chance.randbytes(page + PAGE - at)
    elif kind == "two pages exchanged":
        other = (page + PAGE) % (len(content) - PAGE)
        spoilt[page : page + PAGE], spoilt[other : other + PAGE] = (
            content[other : other + PAGE],
            content[page : page + PAGE],
        )
    else:
        spoilt[page:] = bytes(len(content) - page)
    return bytes(spoilt)


def files_of(database: str) -> dict[str, bytes]:
    """All files beside the database but the lock, and their content."""
    return {
        path.name: path.read_bytes()
        for path in Path(database).parent.iterdir()
        if not path.name.endswith(".lock")
    }


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_refused_and_the_database_is_byte_for_byte_the_same(
    svc: Svc, database: str, snapshot: str, recovery: Path, kind: str
) -> None:
    content, before = Path(snapshot).read_bytes(), files_of(database)
    chance = random.Random(kind)
    for _ in range(TIMES):
        spoilt = spoil(content, kind, chance)
        if spoilt == content:  # zeros that were zeros
            continue
        Path(snapshot).write_bytes(spoilt)
        code, _, err = svc("restore", snapshot, "--yes")
        assert code == 1, err
        assert "cannot be restored, and nothing was changed: " in err
        assert "Traceback" not in err
        assert files_of(database) == before
        assert not list(recovery.iterdir())
    Path(snapshot).write_bytes(content)
    assert svc("restore", snapshot, "--yes")[0] == 0


def test_without_its_side_file_structure_alone_can_be_judged(svc: Svc, database: str, snapshot: str) -> None:
    """No digest is known then: what is restored all the same passes every check of SQLite."""
    Path(f"{snapshot}.json").unlink()
    content = Path(snapshot).read_bytes()
    chance = random.Random(5)
    refused = 0
    for number in range(TIMES):
        before = Path(database).read_bytes()
        Path(snapshot).write_bytes(spoil(content, KINDS[number % len(KINDS)], chance))
        code, _, err = svc("restore", snapshot, "--yes")
        assert "Traceback" not in err
        assert ask(database, "PRAGMA integrity_check") == [("ok",)]
        assert ask(database, "PRAGMA foreign_key_check") == []
        if code:
            refused += 1
            assert Path(database).read_bytes() == before
    assert refused


def test_a_log_of_another_database_is_never_applied(svc: Svc, database: str, snapshot: str) -> None:
    """Neither one beside the snapshot nor the one that the killed service left beside the database."""
    leave_log(database)
    assert "svc.db-wal" in files_of(database)
    assert ask(database, "SELECT count(*) FROM users WHERE name = 'late'") == [(1,)]
    assert ask(snapshot, "SELECT count(*) FROM users WHERE name = 'late'") == [(0,)]
    for suffix in ("-wal", "-shm"):
        Path(snapshot + suffix).write_bytes(files_of(database)[f"svc.db{suffix}"])
    code, _, err = svc("restore", snapshot, "--yes")
    assert code == 0, err
    assert ask(database, "SELECT count(*) FROM users WHERE name = 'late'") == [(0,)]
    assert ask(database, "PRAGMA integrity_check") == [("ok",)]
