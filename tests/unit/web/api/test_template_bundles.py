"""Bundles over both listeners: the archive in, the archive out, and what a refused one leaves (nothing)."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from unit.bundling import FILES, RECIPE, written
from unit.serving import IMAGE, checked, make_template

from svc.db.connect import database
from svc.domain.accounts import sessions
from svc.domain.places import long_calls
from svc.domain.templates import bundles
from svc.limits import BUNDLE_MAX, LONG_CALLS_PER_USER

MIB = 1024 * 1024
TAR = "application/x-tar"
REGISTRY = written({"name": "trainer", "source": {"type": "registry", "image_ref": IMAGE}}, None, {})
BUILT = written({"name": "trainer", "source": {"type": "dockerfile"}}, RECIPE, FILES)


def put(listeners: Any, who: str | None, content: Any, query: str = "", **options: Any) -> Any:
    """An import; `content` may be an iterator, which comes in chunks."""
    return listeners.ask(
        who, "POST", f"/api/templates/import{query}", data=content, **{"content_type": TAR} | options
    )


def counts() -> list[int]:
    tables = ("templates", "template_revisions", "files", "context_files", "audit")
    return [database.execute_sql(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]


def test_there_and_back(listeners: Any) -> None:
    imported = put(listeners, "ada", BUILT)
    record = imported.get_json()
    assert (imported.status_code, imported.headers["Location"]) == (201, f"/api/templates/{record['id']}")
    assert (record["status"], record["scope"], record["name"]) == ("disabled", "private", "trainer")
    exported = listeners.ask("ada", "GET", f"/api/templates/{record['id']}/export", buffered=True)
    assert exported.data == BUILT
    assert exported.headers["Content-Type"] == TAR
    assert exported.headers["Content-Length"] == str(len(BUILT))
    assert exported.headers["Content-Disposition"] == 'attachment; filename="trainer.tar"'
    assert exported.headers["X-Content-Type-Options"] == "nosniff"
    assert exported.headers["X-Svc-Bundle-Digest"] == bundles.read(io.BytesIO(BUILT)).digest


def test_a_superusers_session_imports_for_everybody(listeners: Any, people: Any) -> None:
    """ "a superuser's session may say `scope=global`": over TLS, with a Dockerfile too."""
    _, secrets = sessions.begin(people["boss"].id, "192.0.2.1")
    record = put(listeners, None, BUILT, "?scope=global", session=secrets).get_json()
    assert (record["scope"], record["owner"], record["status"]) == ("global", None, "disabled")
    checked(listeners.ask("ada", "GET", f"/api/templates/{record['id']}"), 404, "not_found")


@pytest.mark.parametrize("scope", ["all", "", "private&scope=global"])
def test_a_scope_that_is_none(listeners: Any, scope: str) -> None:
    checked(put(listeners, "root", REGISTRY, f"?scope={scope}"), 422, "validation_failed")


def test_who_may_not_is_told_before_anything_is_read(listeners: Any) -> None:
    class Never:
        def read(self, *_: Any) -> bytes:
            raise AssertionError("read")

    unread = {"environ": {"wsgi.input": Never(), "CONTENT_LENGTH": str(60 * MIB)}}
    checked(put(listeners, "ada", None, "?scope=global", **unread), 403, "admin_only")
    error = checked(put(listeners, "root", None, **unread), 403, "root_not_allowed")
    assert error["hint"] == "sudo svc admin template import FILE --global"
    checked(put(listeners, "stranger", None, **unread), 403, "account_missing")
    unread["environ"]["CONTENT_LENGTH"] = str(BUNDLE_MAX + 1)
    error = checked(put(listeners, "ada", None, **unread), 413, "too_large")
    assert error["details"] == {"limit": BUNDLE_MAX}


@pytest.mark.parametrize(
    "content",
    [b"", b"x", BUILT[:-1], BUILT[:-1024], BUILT + b"x" * 512,
     b"\x1f\x8b\x08" + BUILT, BUILT.replace(b"FROM", b"MORF")],
    ids=range(7),
)  # fmt: skip
def test_a_refused_bundle_leaves_nothing(listeners: Any, db: str, content: bytes) -> None:
    """ "refused with nothing written outside staging", and staging has no name."""
    listeners.ask("ada", "GET", "/api/templates")
    before, files = counts(), set(os.listdir(Path(db).parent))
    error = checked(put(listeners, "ada", content), 422, "validation_failed")
    assert error["fields"]
    assert (counts(), set(os.listdir(Path(db).parent))) == (before, files)


def test_a_template_that_is_none_names_its_field(listeners: Any) -> None:
    wrong = written(
        {"name": "Trainer", "source": {"type": "registry", "image_ref": IMAGE}, "odd": 1}, None, {}
    )
    error = checked(put(listeners, "ada", wrong), 422, "validation_failed")
    assert {field["field"] for field in error["fields"]} == {"template.name", "template.odd"}


@pytest.mark.parametrize("kind", ["application/json", "application/octet-stream", None])
def test_another_type(listeners: Any, kind: str | None) -> None:
    checked(put(listeners, "ada", REGISTRY, content_type=kind), 400, "invalid_request")


def test_a_form_of_another_page_is_cross_site(listeners: Any, people: Any) -> None:
    _, secrets = sessions.begin(people["ada"].id, "192.0.2.1")
    answer = put(listeners, None, REGISTRY, content_type="text/plain", session=secrets)
    checked(answer, 403, "cross_site")


def test_transfers_are_long_calls(listeners: Any, people: Any) -> None:
    """An export takes its place until the last byte has gone, and gives it back then."""
    make_template(people["ada"].id)
    going = [listeners.ask("ada", "GET", "/api/templates/base/export") for _ in range(LONG_CALLS_PER_USER)]
    error = checked(listeners.ask("ada", "GET", "/api/templates/base/export"), 429, "too_many_requests")
    assert error["retryable"]
    checked(put(listeners, "ada", REGISTRY), 429, "too_many_requests")
    assert put(listeners, "bob", REGISTRY).status_code == 201
    for response in going:
        response.close()
    assert put(listeners, "ada", REGISTRY).status_code == 201
    assert not long_calls.taken()


def test_an_export_that_is_refused_gives_its_place_back(listeners: Any) -> None:
    for _ in range(LONG_CALLS_PER_USER + 1):
        checked(listeners.ask("ada", "GET", "/api/templates/none/export"), 404, "not_found")


def test_svc_api_may(listeners: Any) -> None:
    """One request, one answer: no stream in the sense of the specification."""
    via = {"headers": {"X-Svc-Via": "api"}}
    assert put(listeners, "ada", REGISTRY, **via).status_code == 201
    assert listeners.ask("ada", "GET", "/api/templates/trainer/export", buffered=True, **via).data == REGISTRY


def test_the_address_is_no_templates_name(listeners: Any) -> None:
    """`import` is a path beside the templates' own."""
    named = written({"name": "import", "source": {"type": "registry", "image_ref": IMAGE}}, None, {})
    checked(put(listeners, "ada", named), 422, "validation_failed")
