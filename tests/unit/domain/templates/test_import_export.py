"""Export and import: what goes into a bundle, what comes out of one, under the rules of templates."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from unit.bundling import FILES, RECIPE, context
from unit.serving import IMAGE, copy_of_migrated, make_template, make_user

from svc.db import connect
from svc.db.connect import database
from svc.domain.principal import Caller
from svc.domain.templates import bundles, contexts, import_export, templates
from svc.domain.templates import rows as template_rows
from svc.errors import AdminOnly, NotFound, QuotaExceeded, RootNotAllowed, ValidationFailed
from svc.limits import CONTEXT_BYTES_PER_USER
from svc.web.schemas.loading import load
from svc.web.schemas.templates import TemplateCreate

MIB = 1024 * 1024
REGISTRY = {"name": "trainer", "source": {"type": "registry", "image_ref": IMAGE}}
BUILT = {"name": "trainer", "source": {"type": "dockerfile"}}
WHOLE = {
    "description": "für alle",
    "defaults": {"cpu_limit": 1.5, "memory_bytes": 2**30, "env": [{"name": "D", "value": "1"}]},
    "limits": {"gpu_count": 2, "pids_limit": None},
    "gpu": {"min_cuda": "12.4", "allow_shared": True},
    "command": ["sleep", "infinity"],
    "run_as": {"uid": 1000, "gid": 100},
    "env": [{"name": "A", "value": "a"}, {"name": "S", "secret": True}],
    "launchers": [{"name": "notebook", "title": "Notebook", "command": ["jupyter"], "port": "web"}],
    "ports": [{"name": "web", "container_port": 8888}],
    "mounts": [],
}


def packed(template: dict[str, Any], recipe: bytes | None = None, files: Any = None) -> bundles.Bundle:
    """A bundle of these, read back."""
    file = io.BytesIO()
    bundles.write(file, template, recipe, context(files or {}))
    return bundles.read(file)


def imported(caller: Caller, bundle: bundles.Bundle, scope: str = "private") -> dict[str, Any]:
    """The record of an import, by the listener's own steps."""
    import_export.require(caller, scope)
    checked = load(TemplateCreate(), import_export.create_request(bundle, scope), "template")
    return import_export.import_(caller, scope, bundle, checked)


def exported(caller: Caller, ref: str) -> tuple[import_export.Exported, bundles.Bundle]:
    file = io.BytesIO()
    said = import_export.export(caller, ref, file)
    return said, bundles.read(file)


# --- there and back ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "recipe", "files"),
    [(REGISTRY, None, None), (REGISTRY | WHOLE, None, None), (BUILT, RECIPE, None),
     (BUILT | WHOLE, RECIPE, FILES)],
)  # fmt: skip
@pytest.mark.parametrize("scope", ["private", "global"])
def test_an_import_elsewhere_gives_the_same_digest(
    boss: Caller, far: Any, tmp_path: Any, template: Any, recipe: bytes | None, files: Any, scope: str
) -> None:
    """ "export -> import on a second database ... with equal digests of the bundle"."""
    imported(boss, packed(template, recipe, files), scope)
    first, bundle = exported(boss, "trainer")
    connect.close_database()
    connect.open_database(copy_of_migrated(str(tmp_path / "other.db")))
    make_user("boss", 2003, superuser=True)
    record = imported(boss, bundle, scope)
    second, again = exported(boss, record["id"])
    assert (first.digest, second.digest, again.digest) == (bundle.digest,) * 3
    assert (first.name, second.name) == ("trainer", "trainer")
    assert {path: file.sha256 for path, _, file in _members(again)} == {
        path: file.sha256 for path, _, file in _members(bundle)
    }


def _members(bundle: bundles.Bundle) -> list[Any]:
    return [(path, member.size, member) for path, member in bundle.members.items()]


def test_what_is_exported_is_what_was_imported(ada: Caller) -> None:
    imported(ada, packed(BUILT | WHOLE, RECIPE, FILES))
    _, bundle = exported(ada, "trainer")
    assert bundle.dockerfile() == RECIPE
    assert {path for path, *_ in bundle.context()} == set(FILES)
    assert bundle.template["env"] == WHOLE["env"]
    assert bundle.template["command"] == WHOLE["command"]


def test_an_import_is_disabled_and_nobody_wrote_it(ada: Caller, boss: Caller) -> None:
    """ "Imported templates start disabled", a private registry one too."""
    for caller, scope in ((ada, "private"), (boss, "global")):
        record = imported(caller, packed(REGISTRY), scope)
        assert (record["status"], record["scope"], record["revision"]) == ("disabled", scope, 1)
        template = template_rows.find(caller, record["id"])
        assert (template.written_by, template.reviewed_revision, template.cloned_from) == (None, None, None)
        assert template.bundle_digest == packed(REGISTRY).digest
    built = template_rows.find(ada, imported(ada, packed(BUILT, RECIPE, FILES))["id"])
    assert (built.written_by, built.dockerfile) == (None, RECIPE.decode())
    assert contexts.totals(built.context)[0] == len(FILES)


def test_a_name_that_is_taken_gets_a_number(ada: Caller, bob: Caller) -> None:
    names = [imported(ada, packed(REGISTRY))["name"] for _ in range(3)]
    assert names == ["trainer", "trainer-2", "trainer-3"]
    assert imported(bob, packed(REGISTRY))["name"] == "trainer"
    long = REGISTRY | {"name": "n" * 61 + "-x"}
    assert [imported(ada, packed(long))["name"] for _ in range(2)] == ["n" * 61 + "-x", "n" * 61 + "-2"]


def test_the_audit_has_it(ada: Caller) -> None:
    record = imported(ada, packed(REGISTRY))
    row = database.execute_sql(
        "SELECT action, target, outcome, detail_json FROM audit ORDER BY id DESC"
    ).fetchone()
    assert row[:3] == ("template.import", record["id"], "ok")
    assert json.loads(row[3]) == {
        "scope": "private", "name": "trainer", "bundle": packed(REGISTRY).digest, "target_name": "trainer",
    }  # fmt: skip


# --- secrets -----------------------------------------------------------------------------


def test_no_secret_is_exported(ada: Caller) -> None:
    requested = REGISTRY | {"env": [{"name": "S", "value": "hush-hush", "secret": True}]}
    templates.create(ada, load(TemplateCreate(), requested))
    file = io.BytesIO()
    import_export.export(ada, "trainer", file)
    assert b"hush" not in file.getvalue()
    assert bundles.read(file).template["env"] == [{"name": "S", "secret": True}]


def test_a_bundle_with_a_secret_in_it_is_refused(ada: Caller) -> None:
    bundle = packed(REGISTRY | {"env": [{"name": "S", "value": "hush-hush", "secret": True}]})
    with pytest.raises(ValidationFailed) as caught:
        imported(ada, bundle)
    assert "hush" not in str(caught.value.body("r"))


# --- what a bundle may not say -------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "recipe", "files"),
    [
        ({}, None, None),
        ({"name": "a"}, None, None),
        ({"name": "a", "source": "registry"}, None, None),
        ({"name": "a", "source": {"type": "registry"}}, None, None),
        ({"name": "a", "source": {"type": "other", "image_ref": IMAGE}}, None, None),
        ({"name": "a", "source": {"type": "registry", "image_ref": "dir:/etc"}}, None, None),
        ({"name": "a", "source": {"type": "dockerfile", "dockerfile": "FROM x"}}, None, None),
        (REGISTRY | {"source": {**REGISTRY["source"], "context": "a" * 64}}, None, None),  # type: ignore[dict-item]
        (REGISTRY | {"scope": "global"}, None, None),
        (REGISTRY | {"owner": "root"}, None, None),
        (REGISTRY | {"status": "enabled"}, None, None),
        (REGISTRY | {"name": "../a"}, None, None),
        (REGISTRY | {"name": "import"}, None, None),
        (REGISTRY | {"env": {"A": "b"}}, None, None),
        (REGISTRY | {"defaults": {"cpu_limit": -1}}, None, None),
        (BUILT, None, None),
        (REGISTRY, None, FILES),
        (BUILT, b"FROM \xff\n", None),
        ({"name": "a", "source": {"type": "other"}}, b"FROM scratch\n", None),
        ({"name": "a", "source": {"type": ["dockerfile"]}}, b"FROM scratch\n", None),
        (BUILT, b"", None),
        (BUILT, b"RUN before FROM\n", None),
    ],
)  # fmt: skip
def test_a_template_that_no_create_would_take(
    ada: Caller, boss: Caller, template: Any, recipe: bytes | None, files: Any
) -> None:
    """Checked as an input of create is; nothing of it is kept."""
    for caller, scope in ((ada, "private"), (boss, "global")):
        with pytest.raises(ValidationFailed):
            imported(caller, packed(template, recipe, files), scope)
    for table in ("templates", "template_revisions", "files", "context_files"):
        assert database.execute_sql(f"SELECT count(*) FROM {table}").fetchone() == (0,)


# --- who may -------------------------------------------------------------------------------


def test_who_may_import(ada: Caller, boss: Caller, far: Any) -> None:
    from unit.serving import caller_of

    root = caller_of(make_user("root", 0, superuser=True), far)
    token = caller_of(make_user("max", 2006, superuser=True), far, kind="pat", credential="tok-1")
    for caller in (boss, root):
        import_export.require(caller, "global")
    for caller in (ada, token):
        with pytest.raises(AdminOnly):
            import_export.require(caller, "global")
        import_export.require(caller, "private")
    with pytest.raises(RootNotAllowed) as caught:
        import_export.require(root, "private")
    assert caught.value.hint == "sudo svc admin template import FILE --global"


def test_who_may_export(ada: Caller, bob: Caller, boss: Caller) -> None:
    private = make_template(ada.user_id, "mine")
    shared, held = make_template(None, "shared"), make_template(None, "held", status="disabled")
    assert exported(ada, private)[0].name == "mine"
    assert exported(bob, shared)[0].name == exported(ada, "shared")[0].name == "shared"
    assert exported(boss, held)[0].name == "held"
    for caller, ref in ((bob, private), (boss, private), (ada, held), (ada, "none")):
        with pytest.raises(NotFound):
            exported(caller, ref)


# --- recipes --------------------------------------------------------------------------------


def test_a_published_recipe(ada: Caller, boss: Caller) -> None:
    """Global, it has both; a private import is built by its owner, as a clone is."""
    bundle = packed(REGISTRY, RECIPE, FILES)
    shared = template_rows.find(boss, imported(boss, bundle, "global")["id"])
    assert (shared.source_type, shared.image_ref, shared.dockerfile) == ("registry", IMAGE, RECIPE.decode())
    assert exported(boss, shared.id)[0].digest == exported(boss, shared.id)[1].digest
    mine = template_rows.find(ada, imported(ada, bundle)["id"])
    assert (mine.source_type, mine.dockerfile) == ("dockerfile", RECIPE.decode())
    assert mine.image_ref.startswith("localhost/svc/")


def test_local_only_is_for_global_ones(ada: Caller, boss: Caller) -> None:
    bundle = packed(BUILT | {"source": {"type": "dockerfile", "local_only": True}}, RECIPE)
    assert imported(boss, bundle, "global")["source"]["local_only"] is True
    assert exported(boss, "trainer")[1].template["source"] == {"type": "dockerfile", "local_only": True}
    assert imported(ada, bundle)["source"]["local_only"] is False
    assert exported(ada, "trainer")[1].template["source"] == {"type": "dockerfile"}


# --- how much -------------------------------------------------------------------------------


def test_contexts_have_their_limit(ada: Caller, boss: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "CONTEXT_BYTES_PER_USER", 3000)
    files = {"a": (b"a" * 1000, False)}
    imported(ada, packed(BUILT, RECIPE, files))
    imported(ada, packed(BUILT, RECIPE, files))  # shared: no byte more
    with pytest.raises(QuotaExceeded):
        imported(ada, packed(BUILT, RECIPE, {"b": (b"b" * 1000, False)}))
    assert database.execute_sql("SELECT count(*) FROM files").fetchone() == (1,)
    imported(boss, packed(BUILT, RECIPE, {"b": (b"b" * 1000, False)}), "global")
    assert CONTEXT_BYTES_PER_USER >= 4 * 64 * MIB


def test_an_import_too_many_is_refused_before_its_files_are_written(
    ada: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(templates, "TEMPLATES_PER_USER", 0)
    monkeypatch.setattr(
        contexts, "store", lambda _files: pytest.fail("64 MiB with the write lock, for nothing")
    )
    with pytest.raises(QuotaExceeded):
        imported(ada, packed(BUILT, RECIPE, FILES))


def test_imports_stand_in_one_line(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them at a time asks for the write lock, so that everybody else has only one before them."""
    asking: list[int] = []
    most: list[int] = []

    @contextmanager
    def counted() -> Iterator[None]:
        asking.append(1)
        most.append(len(asking))
        time.sleep(0.01)
        with connect.write():
            yield
        asking.pop()

    def take(number: int) -> None:
        imported(ada, packed(BUILT | {"name": f"t{number}"}, RECIPE))
        connect.close_database()

    monkeypatch.setattr(import_export, "write", counted)
    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def test_what_goes_leaves_nothing(ada: Caller, wakes: list[int]) -> None:
    record = imported(ada, packed(BUILT, RECIPE, FILES))
    assert wakes == [1]  # the worker looks at the log, at once
    templates.delete(ada, record["id"])
    assert wakes == [1, 1]
    assert database.execute_sql("SELECT count(*) FROM files").fetchone() == (0,)
