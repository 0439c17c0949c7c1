"""What is read, promised and taken: by an agent's word, and never beyond it."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import pytest
from unit.configuring import configured
from unit.filing import FACTS, noise
from unit.serving import FarEnd

from svc.db.connect import database
from svc.domain.files import fs
from svc.domain.files import transfers as fs_transfers
from svc.domain.places import long_calls
from svc.domain.principal import Caller
from svc.errors import (
    AlreadyThere,
    EngineFailed,
    EngineTimeout,
    EngineUnavailable,
    NotFound,
    RangeUnsatisfiable,
    ReadOnly,
    SvcError,
    TooLarge,
    TooManyRequests,
)
from svc.helper.helper import TRANSFERS_PER_USER
from svc.limits import FILE_READ_MAX
from svc_helper.wire import protocol


def audited() -> tuple[str, str, str]:
    """The newest row."""
    row: tuple[str, str, str] = database.execute_sql(
        "SELECT action, outcome, detail_json FROM audit ORDER BY id DESC LIMIT 1"
    ).fetchone()
    return row


def read(caller: Caller, offset: int = 0, length: int = FILE_READ_MAX) -> dict[str, Any]:
    return fs_transfers.read(caller, "work", b"notes.txt", offset, length)


def test_a_part_of_a_file(ada: Caller, far: FarEnd) -> None:
    assert read(ada) == {"size": 5, "content": b"hello"}
    assert read(ada, 1, 3) == {"size": 5, "content": b"ell"}
    assert read(ada, 5) == {"size": 5, "content": b""}
    assert audited()[:2] == ("fs.read", "ok")
    with pytest.raises(RangeUnsatisfiable):
        read(ada, 6)
    far.files.content[b"notes.txt"] = large = noise(2 * FILE_READ_MAX)
    assert read(ada, 7)["content"] == large[7 : 7 + FILE_READ_MAX]
    assert '"bytes":1048576' in audited()[2]
    with pytest.raises(NotFound) as caught:
        fs_transfers.read(ada, "work", b"a/b", 0, 1)
    assert caught.value.hint == "svc fs ls work/a"


def test_a_file_that_ends_early(ada: Caller, far: FarEnd) -> None:
    def shrinks(call: protocol.Call, reply: socket.socket, line: socket.socket) -> bool:
        protocol.send(reply, {"progress": {"size": 10, **FACTS}})
        protocol.receive(reply)
        line.sendall(b"abc")
        line.close()
        protocol.send(reply, {"ok": True, "data": {"sent": 10}})  # it lies, too
        return True

    far.files.before = shrinks
    with pytest.raises(EngineFailed):
        read(ada)
    assert audited()[1] == "engine_failed"


def test_an_agent_without_a_word(ada: Caller, far: FarEnd, monkeypatch: pytest.MonkeyPatch) -> None:
    far.files.before = lambda call, reply, line: True
    with pytest.raises(EngineUnavailable):
        read(ada)
    monkeypatch.setattr(fs_transfers, "FILE_FACTS_S", 0.2)
    far.files.before = lambda call, reply, line: bool(far.hold()) or True
    with pytest.raises(EngineTimeout):
        read(ada)
    far.let_go()


def test_an_upload(ada: Caller, far: FarEnd, monkeypatch: pytest.MonkeyPatch) -> None:
    with fs_transfers.upload(ada, "work", b"new", 5) as place:
        assert place.transfer.stream.send(memoryview(b"12345")) == 5
        done = place.commit(5)
    assert (done["path"], done["size"], done["replaced"]) == ("new", 5, False)
    assert done["etag"] == fs.etag({"size": 5, **FACTS})
    assert far.files.content[b"new"] == b"12345"
    with pytest.raises(AlreadyThere), fs_transfers.upload(ada, "work", b"new", 5):
        pass
    with pytest.raises(SvcError), fs_transfers.upload(ada, "work", b"other", 5) as place:
        place.transfer.stream.send(memoryview(b"12345"))
        raise SvcError("cut off")
    assert b"other" not in far.files.content
    configured(upload_max=4)
    calls = len(far.asked())
    with pytest.raises(TooLarge) as caught, fs_transfers.upload(ada, "work", b"more", 5):
        pass
    assert caught.value.details == {"limit": 4, "size": 5}
    configured(file_roots={"work": True})
    with pytest.raises(ReadOnly), fs_transfers.upload(ada, "work", b"more", 1):
        pass
    assert len(far.asked()) == calls
    assert audited()[:2] == ("fs.upload", "read_only")


def test_an_archive(ada: Caller, far: FarEnd) -> None:
    with fs_transfers.archive(ada, "work", b"") as found:
        assert (found.members, found.bytes, found.skipped) == (2, 5, 1)
        found.begin()
        found.end()
    assert audited()[:2] == ("fs.archive", "ok")
    far.files.counted = {"members": 10**7, "bytes": 5, "skipped": 0}
    with pytest.raises(TooLarge) as caught, fs_transfers.archive(ada, "work", b"deep"):
        pass
    assert caught.value.details["members"] == 10**7
    assert caught.value.hint.startswith("svc fs ls work/deep")
    far.files.counted = {"members": "2"}
    with pytest.raises(EngineFailed), fs_transfers.archive(ada, "work", b"deep"):
        pass


def test_each_holds_a_place_and_gives_it_back(ada: Caller, far: FarEnd) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(TRANSFERS_PER_USER):
            held.enter_context(fs_transfers.opened(ada, "download", "work", b"notes.txt"))
        assert long_calls.of_user[ada.user_id] == TRANSFERS_PER_USER
        with pytest.raises(TooManyRequests):
            read(ada)
    assert audited()[:2] == ("fs.download", "ok")
    assert not long_calls.taken()
    assert read(ada)["content"] == b"hello"
