"""Files looked at and changed: what the agent is asked, what it may say, what is written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from unit.configuring import configured
from unit.filing import ENTRY
from unit.serving import FarEnd

from svc.db.connect import database
from svc.domain import configuration
from svc.domain.files import fs
from svc.domain.principal import Caller
from svc.errors import (
    AlreadyThere,
    EngineFailed,
    FileForbidden,
    NotFound,
    ReadOnly,
    RemovalIncomplete,
    SvcError,
)


@pytest.fixture
def caller(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> Caller:
    configured(file_roots={"work": False, "models": True})
    return ada


def audited() -> list[tuple[str, str, str]]:
    return database.execute_sql("SELECT action, target, outcome FROM audit ORDER BY id").fetchall()


def test_roots(caller: Caller, far: FarEnd) -> None:
    models = {"id": "models", "path": "/srv/m%FF", "exists": False, "read_only": False,
              "free_bytes": None, "size_bytes": None}  # fmt: skip
    work = dict(far.answers["fs.roots"]["roots"][0])
    far.answers["fs.roots"] = {"roots": [models, work, {"id": "other"}]}
    found = fs.list_roots(caller)
    assert [(one["id"], one["path"], one["mounted_at"], one["read_only"]) for one in found["items"]] == [
        ("work", "/home/ada/work", "/work", False), ("models", "/srv/m\\xff", None, True),
    ]  # fmt: skip
    assert found["limits"]["upload_max_bytes"] == configuration.current.upload_max
    assert audited() == [("fs.roots", "", "begun"), ("fs.roots", "", "ok")]


def test_a_listing(caller: Caller, far: FarEnd) -> None:
    far.answers["fs.list"] = {
        "entry": ["ignored", "directory", 4096, -1, 0o2755, None, "container:999"],
        "rows": [["a%FF", "file", 7, 1_700_000_000_999_999_999, 0o4755, None, None],
                 ["l", "symlink", 1, 10**18 * 9, 0o777, "..%2F%C3%A4", "ada"]],
        "total": 9,
    }  # fmt: skip
    far.answers["fs.list"]["rows"][1][5] = "../%C3%A4"
    found = fs.list_(caller, "work", b"d\xfe", 2, 3)
    assert far.asked()[-1].args == {"root": "work", "path": "d%FE", "offset": 3, "limit": 2}
    assert found["entry"] == {
        "name": "d\\xfe", "path": "d%FE", "utf8": False, "type": "directory", "size": 4096,
        "modified_at": "1969-12-31T23:59:59.999Z", "mode": "2755", "target": None, "owner": "container:999",
    }  # fmt: skip
    assert found["items"][0] == {
        "name": "a\\xff", "path": "d%FE/a%FF", "utf8": False, "type": "file", "size": 7,
        "modified_at": "2023-11-14T22:13:20.999Z", "mode": "4755", "target": None, "owner": None,
    }  # fmt: skip
    assert found["items"][1]["target"] == "../ä"
    assert (found["total"], found["next_offset"]) == (9, 5)
    assert audited() == [("fs.list", "work/d\\xfe", "begun"), ("fs.list", "work/d\\xfe", "ok")]


def test_a_listing_comes_to_an_end(caller: Caller, far: FarEnd) -> None:
    for rows, total, expected in (([ENTRY], 1, None), ([ENTRY], 2, 1), ([], 2, None), ([], 0, None)):
        far.answers["fs.list"] = {**far.answers["fs.list"], "rows": rows, "total": total}
        assert fs.list_(caller, "work", b"", 10, 0)["next_offset"] == expected
    assert fs.list_(caller, "work", b"", 10, 0)["entry"]["name"] == "work"


LAST_OF_EXT4 = 15_032_385_535 * 10**9  # 2446-05-10, beyond 2^63 ns


@pytest.mark.parametrize(
    ("mtime_ns", "printed"),
    [(LAST_OF_EXT4, "2446-05-10T22:38:55.000Z"), (2**62 * 10**9, None), (-(2**62) * 10**9, None)],
)  # fmt: skip
def test_an_odd_date_is_one_files_alone(
    caller: Caller, far: FarEnd, mtime_ns: int, printed: str | None
) -> None:
    odd = changed(3, mtime_ns)
    far.answers["fs.list"] = {"entry": odd, "rows": [ENTRY, odd], "total": 2}
    found = fs.list_(caller, "work", b"", 10, 0)
    assert [one["modified_at"] for one in found["items"]] == ["2023-11-14T22:13:20.123Z", printed]
    assert found["entry"]["modified_at"] == printed
    far.answers |= {"fs.move": {"entry": odd}, "fs.mkdir": {"entry": odd}}
    assert fs.move(caller, "work", b"a", b"b")["modified_at"] == printed
    assert fs.mkdir(caller, "work", b"a")["modified_at"] == printed


def test_a_name_longer_than_linux_takes(caller: Caller, far: FarEnd) -> None:
    """As a file system of the user's own (FUSE) may list it."""
    far.answers["fs.list"] = {**far.answers["fs.list"], "rows": [ENTRY, changed(0, "a" * 765)], "total": 2}
    assert len(fs.list_(caller, "work", b"", 10, 0)["items"][1]["name"]) == 765


def test_a_disk_of_any_size(caller: Caller, far: FarEnd) -> None:
    root = {**far.answers["fs.roots"]["roots"][0], "free_bytes": 2**64 - 4096, "size_bytes": 2**64}
    far.answers["fs.roots"] = {"roots": [root]}
    [found] = fs.list_roots(caller)["items"]
    assert (found["free_bytes"], found["size_bytes"]) == (2**63 - 1, 2**63 - 1)


@pytest.mark.parametrize("reply", [{}, {"entry": None}, {"entry": [*ENTRY, 1]}])
def test_a_change_is_not_denied_by_a_bad_reply(caller: Caller, far: FarEnd, reply: dict[str, Any]) -> None:
    far.answers |= {"fs.move": reply, "fs.mkdir": reply}
    for entry in (fs.move(caller, "work", b"a", b"d/b"), fs.mkdir(caller, "work", b"d/b")):
        assert (entry["name"], entry["path"], entry["type"]) == ("b", "d/b", "other")
        assert entry["modified_at"] is None
        assert audited()[-1][2] == "ok"


def changed(position: int, value: Any) -> list[Any]:
    row = list(ENTRY)
    row[position] = value
    return row


@pytest.mark.parametrize(
    "row",
    [
        None, {}, "x", [], ENTRY[:5], [*ENTRY, 1], changed(0, ""), changed(0, "a/b"), changed(0, ".."),
        changed(0, "%61"), changed(0, 5), changed(0, "a" * 4097), changed(1, "listener"), changed(1, []),
        changed(2, -1), changed(2, True), changed(2, 1.0), changed(2, 2**63), changed(3, "0"),
        changed(3, 2**128),
        changed(6, 7), changed(6, "o" * 257),
        changed(4, 0o10000), changed(4, -1), changed(5, 7), changed(5, "%zz"), changed(5, "x" * 13_000),
    ],
)  # fmt: skip
def test_a_row_that_no_agent_sends(caller: Caller, far: FarEnd, row: Any) -> None:
    far.answers["fs.list"] = {**far.answers["fs.list"], "rows": [row]}
    with pytest.raises(EngineFailed):
        fs.list_(caller, "work", b"", 10, 0)
    assert audited()[-1][2] == "engine_failed"


@pytest.mark.parametrize("answer", [{}, {"rows": []}, {"entry": ENTRY, "rows": [ENTRY] * 3, "total": 3}])
def test_a_listing_that_no_agent_sends(caller: Caller, far: FarEnd, answer: dict[str, Any]) -> None:
    far.answers["fs.list"] = answer
    with pytest.raises(EngineFailed):
        fs.list_(caller, "work", b"", 2, 0)


def test_what_is_changed(caller: Caller, far: FarEnd) -> None:
    assert fs.mkdir(caller, "work", b"a/new", parents=True)["path"] == "a/new"
    assert far.asked()[-1].args == {"root": "work", "path": "a/new", "parents": True}
    moved = fs.move(caller, "work", b"a", b"b\xff", force=True)
    assert (moved["name"], moved["path"]) == ("b\\xff", "b%FF")
    assert far.asked()[-1].args == {"root": "work", "path": "a", "to": "b%FF", "replace": True}
    far.answers["fs.remove"] = [{"removed": 100}, {"removed": 150, "remaining": 0, "kept": []}]
    assert fs.remove(caller, "work", b"a", recursive=True) == {"removed": 150}
    assert far.asked()[-1].args == {"root": "work", "path": "a", "recursive": True}
    assert [action for action, _, outcome in audited() if outcome == "ok"] == [
        "fs.mkdir",
        "fs.move",
        "fs.remove",
    ]


def test_a_removal_names_what_remains(caller: Caller, far: FarEnd) -> None:
    kept = [{"path": "a/b%FF/mnt", "reason": "a mount point"}, {"path": "a/c", "reason": "may not"}]
    far.answers["fs.remove"] = {"removed": 7, "remaining": 3, "kept": kept}
    with pytest.raises(RemovalIncomplete) as caught:
        fs.remove(caller, "work", b"a", recursive=True)
    assert caught.value.message == "3 entries remain of work/a; 7 removed"
    lines = ["work/a/b\\xff/mnt: a mount point", "work/a/c: may not", "and 1 more"]
    assert caught.value.details == {"removed": 7, "remaining": 3, "output": lines}
    assert caught.value.hint == "svc fs ls work", "a name that is not UTF-8 would have to be quoted"
    kept = [{"path": "a/d/mnt", "reason": "a mount point"}]
    far.answers["fs.remove"] = {"removed": 0, "remaining": 1, "kept": kept}
    with pytest.raises(RemovalIncomplete, match="1 entry remains") as caught:
        fs.remove(caller, "work", b"a", recursive=True)
    assert caught.value.hint == "svc fs ls work/a/d"
    [detail] = database.execute_sql(
        "SELECT detail_json FROM audit WHERE outcome = 'removal_incomplete' ORDER BY id"
    ).fetchone()
    assert '"remaining":3' in detail


@pytest.mark.parametrize(
    "kept", [None, [[]], [{"path": 1, "reason": ""}], [{"path": "a"}], [{"path": "a", "reason": "r"}] * 21]
)
def test_a_removal_that_no_agent_reports(caller: Caller, far: FarEnd, kept: Any) -> None:
    far.answers["fs.remove"] = {"removed": 0, "remaining": 1, "kept": kept}
    with pytest.raises(EngineFailed):
        fs.remove(caller, "work", b"a", recursive=True)


def test_a_removal_that_is_cut_off_tells_how_far_it_came(caller: Caller, far: FarEnd) -> None:
    far.answers["fs.remove"] = [{"removed": 100}, "conflict"]
    with pytest.raises(SvcError):
        fs.remove(caller, "work", b"a", recursive=True)
    [detail] = database.execute_sql("SELECT detail_json FROM audit WHERE outcome = 'conflict'").fetchone()
    assert '"removed":100' in detail


WRITES: list[Callable[[Caller, str], Any]] = [
    lambda caller, root: fs.mkdir(caller, root, b"a"),
    lambda caller, root: fs.move(caller, root, b"a", b"b"),
    lambda caller, root: fs.remove(caller, root, b"a"),
]


@pytest.mark.parametrize("write", WRITES)
def test_a_read_only_root_and_one_that_is_none(caller: Caller, far: FarEnd, write: Any) -> None:
    for root, kind in (("models", ReadOnly), ("other", NotFound)):
        with pytest.raises(kind) as caught:
            write(caller, root)
        assert caught.value.hint == "svc fs roots"
        assert audited()[-1][2] == kind.code
    assert far.asked() == []
    with pytest.raises(NotFound):
        fs.list_(caller, "other", b"", 1, 0)
    fs.list_(caller, "models", b"", 1, 0)


@pytest.mark.parametrize(
    ("code", "kind", "path", "hint"),
    [
        ("not_found", NotFound, b"a/b", "svc fs mkdir work/a/b --parents"),
        ("not_found", NotFound, b"\xff/b", "svc fs ls work"),
        ("forbidden", FileForbidden, b"\xff/b", "svc fs ls work"),
        ("exists", AlreadyThere, b"a/b", "svc fs ls work/a/b  # --force replaces a file"),
        ("conflict", SvcError, b"a", ""),
    ],
)  # fmt: skip
def test_the_way_out(caller: Caller, far: FarEnd, code: str, kind: Any, path: bytes, hint: str) -> None:
    far.answers["fs.mkdir"] = code
    with pytest.raises(kind) as caught:
        fs.mkdir(caller, "work", path)
    assert caught.value.hint == hint


def test_what_is_in_the_way_above_is_listed_by_its_parent(caller: Caller, monkeypatch: Any) -> None:
    def ask(_caller: object, _verb: str, _arguments: object) -> None:
        raise AlreadyThere("odd/fifo: it exists and is not a directory")

    monkeypatch.setattr(type(caller), "ask", ask)
    with pytest.raises(AlreadyThere) as caught:
        fs.mkdir(caller, "work", b"odd/fifo/x", parents=True)
    assert caught.value.message == "work/odd/fifo: it exists and is not a directory"
    assert caught.value.hint == "svc fs ls work/odd"


def test_the_way_out_of_a_move_names_what_is_in_the_way(caller: Caller, far: FarEnd) -> None:
    far.answers["fs.move"] = "exists"
    with pytest.raises(AlreadyThere) as caught:
        fs.move(caller, "work", b"big.bin", b"dir")
    assert caught.value.hint == "svc fs ls work/dir  # --force replaces a file"


@pytest.mark.parametrize(
    ("mtime_ns", "printed"),
    [(0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
     (2**63 - 1, "2262-04-11T23:47:16.854Z"), (LAST_OF_EXT4, "2446-05-10T22:38:55.000Z"),
     (10**25, None), (-(10**25), None), (10**40, None)],
)  # fmt: skip
def test_a_files_time(mtime_ns: int, printed: str | None) -> None:
    assert fs.moment(mtime_ns) == printed


def test_another_content_has_another_tag() -> None:
    facts = {"device": 1, "inode": 2, "size": 3, "mtime_ns": 4}
    tags = {fs.etag(facts), *(fs.etag(facts | {key: 9}) for key in facts)}
    assert len(tags) == 5
    assert fs.etag(facts | {"inode": 2**64 - 1, "mtime_ns": LAST_OF_EXT4}) not in tags
    assert all(tag.isalnum() for tag in tags)


def test_a_message_names_a_file_with_its_root(caller: Caller, far: FarEnd) -> None:
    """The agent knows paths below the root only."""
    for named, said in (("a/b", "work/a/b: gone"), ("c d", "work/c d: gone"), ("x", "x: gone")):
        with pytest.raises(NotFound) as caught, fs.audited(caller, "move", "work", b"a/b", to="work/c d"):
            raise NotFound(f"{named}: gone")
        assert caught.value.message == said
