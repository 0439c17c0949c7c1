"""Build contexts in the database: shared, read back as they were, swept when nothing has them."""

from __future__ import annotations

import hashlib
import io
import resource
import sqlite3
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from unit.bundling import FILES, RECIPE, context, opener, written
from unit.serving import make_template, make_user

from svc.db.connect import database, write
from svc.domain.templates import bundles, contexts
from svc.domain.templates.bundles import ContextFile
from svc.errors import Conflict, QuotaExceeded
from svc.limits import BUNDLE_MEMBER_MAX

MIB = 1024 * 1024
Tree = dict[str, tuple[bytes, bool]]


def kept(files: Tree = FILES) -> str | None:
    """The name of a context that is in the database now."""
    with write():
        return contexts.store(context(files))


def content(name: str | None) -> Tree:
    """What a context has in it."""
    found = {}
    for file in contexts.files_of(name):
        with file.open() as opened:
            found[file.path] = (opened.read(), file.executable)
        assert (file.size, file.sha256) == (
            len(found[file.path][0]),
            hashlib.sha256(found[file.path][0]).hexdigest(),
        )
    return found


def rows(table: str) -> int:
    return int(database.execute_sql(f"SELECT count(*) FROM {table}").fetchone()[0])


def give(template: str, name: str | None) -> None:
    """Make a context the one of a template's revision."""
    with write():
        database.execute_sql(
            "UPDATE template_revisions SET context = ? WHERE template_id = ?", (name, template)
        )


def test_what_is_kept_is_read_back_in_order(db: str) -> None:
    assert content(kept()) == FILES
    assert [file.path for file in contexts.files_of(kept())] == sorted(FILES)
    assert contexts.totals(kept()) == (len(FILES), sum(len(data) for data, _ in FILES.values()))


def test_no_files_are_no_context(db: str) -> None:
    assert kept({}) is None
    assert (content(None), contexts.totals(None)) == ({}, (0, 0))


def test_equal_files_are_the_same_rows(db: str) -> None:
    """Whoever brings them, in whatever order; a mode or a name more is another context of equal contents."""
    first = kept()
    assert kept(dict(reversed(FILES.items()))) == first
    assert (rows("files"), rows("context_files")) == (3, 3)
    assert kept({**FILES, "run.sh": (FILES["run.sh"][0], False)}) != first
    assert kept({**FILES, "again.sh": FILES["run.sh"]}) != first
    assert (rows("files"), rows("context_files")) == (3, 3 + 3 + 4)


def test_a_bundle_is_kept_as_it_is(db: str) -> None:
    with write():
        name = contexts.store(bundles.read(io.BytesIO(written())).context())
    assert (name, content(name)) == (kept(), FILES)


def test_the_name_is_the_digest_of_the_listing(db: str) -> None:
    empty = hashlib.sha256(b"").hexdigest()
    assert kept({"ä": (b"", True)}) == hashlib.sha256(f'[["ä","{empty}",true]]'.encode()).hexdigest()


def test_a_file_that_is_not_what_was_said_of_it_is_not_kept(db: str) -> None:
    lies = ContextFile("a", False, opener(b"other"), 5, hashlib.sha256(b"alpha").hexdigest())
    for wrong in (lies, lies._replace(size=4), lies._replace(size=6), lies._replace(sha256="", size=6)):
        with pytest.raises(Conflict), write():
            contexts.store([wrong])
    assert (rows("files"), rows("context_files")) == (0, 0)


def test_a_part_of_a_file_is_read_without_the_rest(db: str) -> None:
    kept({"a": (bytes(range(256)) * 4096, False)})
    [file] = contexts.files_of(kept({"a": (bytes(range(256)) * 4096, False)}))
    with file.open() as opened:
        assert (opened.read(3), opened.read(2)) == (b"\0\1\2", b"\3\4")
        with pytest.raises(io.UnsupportedOperation):
            opened.write(b"x")
    opened.close()


def test_a_file_that_goes_while_it_is_read_is_an_error(db: str) -> None:
    [file] = contexts.files_of(kept({"a": (b"x" * MIB, False)}))
    with file.open() as opened:
        opened.read(1)
        with write():
            contexts.delete_unused()
        with pytest.raises(sqlite3.OperationalError):
            opened.read()


# --- sweeping ----------------------------------------------------------------------------


def test_what_a_revision_has_stays(db: str) -> None:
    ada = make_user("ada", 2001)
    both, one = kept(), kept({"run.sh": FILES["run.sh"]})
    give(make_template(ada.id, "one"), one)
    with write():
        contexts.delete_unused()
    assert (content(both), content(one)) == ({}, {"run.sh": FILES["run.sh"]})
    assert rows("files") == 1
    give("tpl-00000one", None)
    with write():
        contexts.delete_unused()
        contexts.delete_unused()
    assert (rows("files"), rows("context_files")) == (0, 0)


def test_sweeping_is_undone_with_its_transaction(db: str) -> None:
    name = kept()
    with pytest.raises(ZeroDivisionError), write():
        contexts.delete_unused()
        raise ZeroDivisionError
    assert content(name) == FILES


def test_what_others_have_is_not_gone_through(db: str) -> None:
    """An edit of anybody's sweeps, with the write lock: it looks at each context, not at each file."""
    listed = {f"{number}": (b"", False) for number in range(2000)}
    give(make_template(make_user("ada", 2001).id, "one"), kept(listed))
    steps: list[int] = []
    with write():
        database.connection().set_progress_handler(lambda: steps.append(1), 100)
        contexts.delete_unused()
        database.connection().set_progress_handler(None, 0)
    assert len(steps) < 10 and rows("context_files") == 2000


# --- how much ------------------------------------------------------------------------------


def test_one_user_has_a_limit(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ada, bob = make_user("ada", 2001), make_user("bob", 2002)
    for name in ("one", "two"):  # what they share counts once
        give(make_template(ada.id, name), kept({"a": (b"x" * 1000, False)}))
    used = 1000 + contexts.ROW_BYTES
    monkeypatch.setattr(contexts, "CONTEXT_BYTES_PER_USER", used)
    contexts.require_room(ada.id)
    monkeypatch.setattr(contexts, "CONTEXT_BYTES_PER_USER", used - 1)
    with pytest.raises(QuotaExceeded) as caught:
        contexts.require_room(ada.id)
    assert caught.value.details == {
        "resource": "context_bytes", "limit": used - 1, "used": used, "requested": 0,
    }  # fmt: skip
    contexts.require_room(bob.id)
    contexts.require_room(None)


def test_files_without_content_take_room_too(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their paths and digests: thousands of empty files in each of many templates are no gift."""
    ada = make_user("ada", 2001)
    give(make_template(ada.id, "one"), kept({f"{number}": (b"", False) for number in range(100)}))
    monkeypatch.setattr(contexts, "CONTEXT_BYTES_PER_USER", 100 * contexts.ROW_BYTES)
    contexts.require_room(ada.id)
    monkeypatch.setattr(contexts, "CONTEXT_BYTES_PER_USER", 100 * contexts.ROW_BYTES - 1)
    with pytest.raises(QuotaExceeded):
        contexts.require_room(ada.id)


def test_the_largest_file_is_never_held_whole(db: str, tmp_path: Path) -> None:
    """Kept, read back and put into an archive in pieces; SQLite's own cache is 2 MB of it."""
    with open(tmp_path / "big", "w+b") as big, open(tmp_path / "tar", "w+b") as tar:
        big.truncate(BUNDLE_MEMBER_MAX)
        file = ContextFile("big", False, lambda: (tmp_path / "big").open("rb"), BUNDLE_MEMBER_MAX)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        tracemalloc.start()
        with write():
            name = contexts.store([file])
        contexts.archive(tar, RECIPE, name)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
        tracemalloc.stop()
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 24 * 1024
        assert tar.tell() > BUNDLE_MEMBER_MAX


# --- for a build ---------------------------------------------------------------------------


def test_the_archive_of_a_build(db: str) -> None:
    def archived(name: str | None) -> bytes:
        file = io.BytesIO()
        contexts.archive(file, RECIPE, name)
        return file.getvalue()

    found: dict[str, Any] = {}
    with tarfile.open(fileobj=io.BytesIO(archived(kept())), mode="r:") as packed:
        for info in packed:
            found[info.name] = (packed.extractfile(info).read(), info.mode)
    assert list(found) == ["Dockerfile", *(f"context/{path}" for path in sorted(FILES))]
    assert found["Dockerfile"] == (RECIPE, 0o644) and found["context/run.sh"] == (b"#!/bin/sh\n", 0o755)
    assert archived(kept()) == archived(kept())
    with tarfile.open(fileobj=io.BytesIO(archived(None)), mode="r:") as packed:
        assert packed.getnames() == ["Dockerfile"]


def test_the_digest_of_a_source(db: str) -> None:
    """Another recipe, another context and where one ends and the other begins: all are another source."""
    name = str(kept())
    digests = {
        contexts.source_digest(RECIPE, name), contexts.source_digest(RECIPE + b"#", name),
        contexts.source_digest(RECIPE, None), contexts.source_digest(RECIPE + name.encode(), None),
        contexts.source_digest(b"", None),
    }  # fmt: skip
    assert len(digests) == 5 and all(len(digest) == 64 for digest in digests)
