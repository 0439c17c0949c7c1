"""Changes of a template's build context: one file, all files, several people at once, limits."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest
from unit.bundling import FILES, RECIPE, context, written
from unit.serving import make_template

from svc.db.connect import close_database, database
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import bundles, context_edits, contexts, import_export, templates
from svc.errors import Conflict, NotFound, QuotaExceeded, ReadOnly, TooLarge, ValidationFailed

SOURCE = {"type": "dockerfile", "dockerfile": RECIPE.decode()}


@pytest.fixture
def built(ada: Caller) -> str:
    """A Dockerfile template of ada's with FILES; its id."""
    return str(templates.create(ada, {"name": "trainer", "source": SOURCE}, context(FILES))["id"])


def put(caller: Caller, ref: str, path: str, content: bytes = b"new", **more: Any) -> dict[str, Any]:
    return context_edits.put(caller, ref, path, io.BytesIO(content), len(content), **more)


def files(caller: Caller, ref: str) -> dict[str, tuple[bytes, bool]]:
    """The files of a template, as the tests of bundles have them."""
    found = {}
    for one in context_edits.page_of(caller, ref, Page(limit=200))["items"]:
        content = io.BytesIO()
        context_edits.read(caller, ref, one["path"], content)
        assert len(content.getvalue()) == one["size"]
        found[one["path"]] = (content.getvalue(), one["executable"])
    return found


def test_files_are_set_and_removed(ada: Caller, built: str) -> None:
    """ "A clone has its own editable build context": each change is a revision, and disables."""
    assert files(ada, built) == FILES
    first = templates.get(ada, built)
    database.execute_sql("UPDATE templates SET status = 'enabled'")
    record = put(ada, built, "data/notes.txt")
    assert (record["revision"], record["status"]) == (2, "disabled")
    assert record["source"]["image_ref"] != first["source"]["image_ref"]
    put(ada, built, "run.sh")  # its executable bit is kept
    put(ada, built, "new/deep/file", b"", executable=True)
    context_edits.remove(ada, built, "data/empty")
    assert files(ada, built) == {
        "data/notes.txt": (b"new", False), "run.sh": (b"new", True), "new/deep/file": (b"", True),
    }  # fmt: skip
    assert put(ada, built, "run.sh", executable=False)["revision"] == 6
    assert put(ada, built, "run.sh")["revision"] == 6  # nothing has changed
    [changed] = [one for one in record["findings"] if one["code"] == "changed"]
    assert changed["message"] == "changed since revision 1: build context"
    assert "-data/notes.txt sha256:" in changed["diff"] and "run.sh sha256:" in changed["diff"]


def test_a_clone_has_its_own(ada: Caller, bob: Caller, built: str, boss: Caller) -> None:
    clone = templates.clone(ada, built, "mine")["id"]
    put(ada, clone, "run.sh")
    assert (files(ada, built), files(ada, clone)["run.sh"]) == (FILES, (b"new", True))
    for other in (bob, boss):
        for call in (put, context_edits.remove):
            with pytest.raises(NotFound):
                call(other, built, "run.sh")
        with pytest.raises(NotFound):
            context_edits.page_of(other, built, Page())


def test_what_cannot_be_changed(ada: Caller, boss: Caller, template: str) -> None:
    """ "A global template's Dockerfile is read-only", and so are its files, also for administrators."""
    make_template(None, "open", dockerfile=RECIPE.decode())
    for caller in (ada, boss):
        with pytest.raises(ReadOnly, match="build context are read-only"):
            put(caller, "open", "run.sh")
        assert files(caller, "open") == {}
    with pytest.raises(Conflict, match="no build context"):
        put(ada, template, "run.sh")
    with pytest.raises(NotFound, match="no build context"):
        context_edits.page_of(ada, template, Page())


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/x",
        "../x",
        "a/../x",
        "./a",
        "a//b",
        "a/",
        "a\\b",
        "a\nb",
        "e\u0301",
        "a" * 101,
        "a/" * 124 + "b",
    ],
)
def test_paths_are_checked(ada: Caller, built: str, path: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        put(ada, built, path)
    assert caught.value.message.isprintable() and caught.value.fields[0]["field"] == "path"


def test_a_path_is_a_file_or_a_directory(ada: Caller, built: str) -> None:
    with pytest.raises(ValidationFailed, match=r"run\.sh is a file"):
        put(ada, built, "run.sh/below")
    with pytest.raises(ValidationFailed, match="data is a directory"):
        put(ada, built, "data")
    with pytest.raises(ValidationFailed, match="data is a directory with 2 files"):
        context_edits.remove(ada, built, "data")
    with pytest.raises(NotFound, match="has no file none"):
        context_edits.remove(ada, built, "none")


def test_changes_at_the_same_time_are_all_kept(ada: Caller, built: str) -> None:
    """Each change reads and writes in one transaction."""
    failed: list[BaseException] = []

    def change(number: int) -> None:
        try:
            for part in range(4):
                put(ada, built, f"made/{number}-{part}")
        except BaseException as error:
            failed.append(error)
        finally:
            close_database()

    threads = [threading.Thread(target=change, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(files(ada, built)) == len(FILES) + 16
    assert templates.get(ada, built)["revision"] == 17


def test_all_files_are_replaced(ada: Caller, built: str) -> None:
    bundle = bundles.read(io.BytesIO(written(files={"only": (b"1", True)})))
    assert context_edits.replace(ada, built, [*bundle.context()])["source"]["context_files"] == 1
    assert files(ada, built) == {"only": (b"1", True)}
    assert context_edits.replace(ada, built, [])["source"]["context_files"] == 0
    with pytest.raises(ValidationFailed, match="both a file and a directory"):
        context_edits.replace(ada, built, context({"a": (b"", False), "a/b": (b"", False)}))


def test_a_context_can_always_be_exported(ada: Caller, built: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_edits, "FILES_MAX", len(FILES))
    with pytest.raises(TooLarge, match="would have 4 files; it may have 3"):
        put(ada, built, "more")
    monkeypatch.setattr(context_edits, "BUNDLE_MAX", 8000)
    with pytest.raises(TooLarge, match="would have 1 MiB"):
        put(ada, built, "run.sh", bytes(8000))
    monkeypatch.setattr(bundles, "BUNDLE_MAX", 8000)
    with pytest.raises(TooLarge, match="too large"):
        put(ada, built, "run.sh", bytes(4000))
    assert files(ada, built) == FILES
    import_export.export(ada, built, io.BytesIO())


def test_earlier_revisions_make_room(ada: Caller, built: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few changes of a large context do not fill a user's limit with what nobody uses."""
    monkeypatch.setattr(contexts, "CONTEXT_BYTES_PER_USER", 30_000)
    for number in range(6):
        put(ada, built, "large", bytes([number]) * 12_000)
    assert files(ada, built)["large"] == (bytes([5]) * 12_000, False)
    kept = database.execute_sql("SELECT revision FROM template_revisions ORDER BY revision").fetchall()
    assert kept[-1] == (7,) and len(kept) < 4
    with pytest.raises(QuotaExceeded):
        put(ada, built, "larger", bytes(25_000))
    assert "larger" not in files(ada, built)
