"""Revisions: which image each names, how many stay, what goes with them."""

from __future__ import annotations

import io

import pytest
from unit.serving import IMAGE, make_workspace

from svc import errors
from svc.db.connect import database, write
from svc.domain.principal import Caller
from svc.domain.templates import (
    contexts,
    templates,
)
from svc.domain.templates import (
    revisions as template_revisions,
)
from svc.domain.templates import (
    rows as template_rows,
)
from svc.domain.templates import (
    variables as template_variables,
)
from svc.domain.templates.bundles import ContextFile
from svc.domain.templates.rows import Source
from svc.limits import REVISIONS_KEPT
from svc_helper.wire.limits import DOCKERFILE_IMAGES_MAX

PINNED = "registry.example/x@sha256:" + "0" * 64
RECIPE = f"FROM registry.example/debian:12 AS base\nFROM {PINNED}\nCOPY --from=base /a /a\n"


def make(caller: Caller, name: str = "own", text: str = RECIPE) -> dict[str, object]:
    return templates.create(caller, {"name": name, "source": {"type": "dockerfile", "dockerfile": text}})


def with_context(caller: Caller, content: bytes, name: str = "ctx") -> str:
    file = ContextFile("a.txt", False, lambda: io.BytesIO(content), len(content))
    with write():
        source = Source("dockerfile", dockerfile=RECIPE, context=contexts.store([file]))
        return templates.insert(caller.user_id, {"name": name}, source, status="disabled")


def count(table: str) -> int:
    return int(database.execute_sql(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_the_image_is_named_by_what_it_is_built_from(ada: Caller) -> None:
    make(ada)
    first = template_rows.find(ada, "own")
    digest = contexts.source_digest(RECIPE.encode(), None)
    assert first.image_ref == f"localhost/svc/{first.id}:{digest[:16]}"
    templates.edit(ada, "own", {"description": "x"})
    second = template_rows.find(ada, "own")
    assert (second.revision, second.image_ref) == (2, first.image_ref)
    templates.edit(ada, "own", {"source": {"dockerfile": "FROM scratch\n"}})
    third = template_rows.find(ada, "own")
    assert third.image_ref != first.image_ref
    assert template_revisions.image_of(first.id) == third.image_ref
    make(ada, "other")
    assert template_rows.find(ada, "other").image_ref != first.image_ref


def test_what_a_build_takes_from_registries_is_on_record(ada: Caller) -> None:
    make(ada)
    images = template_rows.find(ada, "own").images
    assert images == ["registry.example/debian:12", PINNED]


def test_a_dockerfile_that_cannot_be_read_names_its_line_and_leaves_nothing(ada: Caller) -> None:
    with pytest.raises(errors.ValidationFailed) as caught:
        make(ada, text="FROM scratch\nNONSENSE x\n")
    assert caught.value.fields[0]["field"] == "source.dockerfile"
    assert "line 2" in caught.value.message
    assert count("templates") == count("template_revisions") == 0


def test_a_build_takes_so_many_images(ada: Caller) -> None:
    """Each is looked up in the policy whenever the template is shown; all go to an agent in one message."""
    sources = (f"r{number}.example/a:1" for number in range(DOCKERFILE_IMAGES_MAX))
    copied = "".join(f"COPY --from={source} a b\n" for source in sources)
    with pytest.raises(errors.ValidationFailed) as caught:
        make(ada, text=f"FROM registry.example/a:1\n{copied}")
    assert caught.value.fields[0]["code"] == "too_many"
    make(ada, text=f"FROM scratch\n{copied}")


def test_the_oldest_go_but_for_those_that_workspaces_have(ada: Caller) -> None:
    templates.create(ada, {"name": "py", "source": {"image_ref": IMAGE}})
    template_id = template_rows.find(ada, "py").id
    templates.edit(ada, "py", {"description": "second"})
    make_workspace(ada.user_id, template_id, template_revision=2)
    for number in range(REVISIONS_KEPT + 3):
        templates.edit(ada, "py", {"description": f"more {number}"})
    rows = database.execute_sql("SELECT revision FROM template_revisions ORDER BY revision")
    newest = REVISIONS_KEPT + 5
    assert [row[0] for row in rows] == [2, *range(newest - REVISIONS_KEPT + 1, newest + 1)]


def test_all_revisions_of_one_user_have_a_limit(
    ada: Caller, boss: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred templates with twenty large revisions each were gigabytes."""
    monkeypatch.setattr(template_revisions, "REVISION_BYTES_PER_USER", 100_000)
    text = f"FROM scratch\n# {'x' * 40_000}\n"
    make(ada, text=text)
    templates.edit(ada, "own", {"description": "another revision"})
    with pytest.raises(errors.QuotaExceeded) as caught:
        templates.edit(ada, "own", {"description": "and another"})
    assert caught.value.details["resource"] == "revision_bytes"
    assert templates.get(ada, "own")["revision"] == 2
    with pytest.raises(errors.QuotaExceeded):
        templates.clone(ada, "own", "clone")
    assert count("templates") == 1
    for name in ("one", "two", "three"):
        source = {"type": "dockerfile", "dockerfile": text}
        templates.create(boss, {"name": name, "scope": "global", "source": source})


def test_what_was_found_in_an_earlier_revision_is_not_kept(ada: Caller) -> None:
    make(ada)
    for number in range(3):
        templates.edit(ada, "own", {"description": f"{number}"})
    rows = database.execute_sql("SELECT findings_json = '[]' FROM template_revisions ORDER BY revision")
    assert [row[0] for row in rows] == [1, 1, 1, 0]


def test_what_becomes_secret_is_sealed_in_earlier_revisions_too(ada: Caller) -> None:
    """It was written in the clear; from now on neither the database nor a backup has it so."""
    templates.create(ada, {"name": "py", "source": {"image_ref": IMAGE}})
    templates.edit(ada, "py", {"env": [{"name": "KEY", "value": "the-first"}, {"name": "A", "value": "1"}]})
    templates.edit(ada, "py", {"env": [{"name": "KEY", "value": "the-last"}, {"name": "A", "value": "1"}]})
    templates.edit(ada, "py", {"env": [{"name": "KEY", "secret": True}, {"name": "A", "value": "2"}]})
    stored = database.execute_sql("SELECT group_concat(spec_json || findings_json) FROM template_revisions")
    [text] = stored.fetchone()
    assert "the-first" not in text and "the-last" not in text
    template_id = template_rows.find(ada, "py").id
    values = [
        template_variables.values_of(template_rows.at_revision(template_id, number))
        for number in (1, 2, 3, 4)
    ]
    assert values == [
        {}, {"KEY": "the-first", "A": "1"}, {"KEY": "the-last", "A": "1"}, {"KEY": "the-last", "A": "2"},
    ]  # fmt: skip
    sealed = [template_rows.at_revision(template_id, number).sealed for number in (3, 4)]
    assert sealed[0] == sealed[1]  # the same value: a review says that nothing has changed


def test_contexts_go_with_the_last_revision_that_has_them(ada: Caller) -> None:
    with_context(ada, b"one")
    record = templates.get(ada, "ctx")["source"]
    assert (record["context_files"], record["context_bytes"]) == (1, 3)
    templates.clone(ada, "ctx", "clone")
    templates.edit(ada, "clone", {"source": {"dockerfile": "FROM scratch\n"}})
    assert templates.get(ada, "clone")["source"]["context_files"] == 1
    templates.delete(ada, "ctx")
    assert (count("context_files"), count("files")) == (1, 1)
    templates.delete(ada, "clone")
    assert (count("context_files"), count("files")) == (0, 0)


def test_a_clone_of_a_shared_context_counts_for_its_owner(
    ada: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_context(ada, b"12345")
    with write():
        database.execute_sql("UPDATE templates SET owner_id = NULL, status = 'enabled'")
    monkeypatch.setattr(contexts, "CONTEXT_BYTES_PER_USER", 4)
    with pytest.raises(errors.QuotaExceeded):
        templates.clone(ada, "ctx", "clone")
    assert count("templates") == 1


def test_source_of_gives_back_what_was_added(ada: Caller) -> None:
    make(ada)
    source = template_revisions.source_of(template_rows.find(ada, "own"))
    assert source == Source("dockerfile", dockerfile=RECIPE, written_by=ada.user_id)
    assert not template_revisions.is_another(source, source._replace(written_by=None, bundle_digest="x"))
    assert template_revisions.is_another(source, source._replace(local_only=True))
