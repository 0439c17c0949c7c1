"""Revisions over HTTP: what they were, who uses them, what differs, and who may see them."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import checked, make_template, make_workspace

from svc.db.connect import database, write

RECIPE = "FROM registry.example/debian:12\nRUN one\n"


def edit(listeners: Any, who: str, name: str, **patch: Any) -> None:
    response = listeners.ask(who, "PATCH", f"/api/templates/{name}", json=patch)
    assert response.status_code == 200, response.text


def test_list_and_text(listeners: Any, people: Any) -> None:
    template = make_template(people["ada"].id, "own", dockerfile=RECIPE)
    for name, revision in (("one", 1), ("two", 1), ("three", 2)):
        make_workspace(people["ada"].id, template, name, template_revision=revision)
    edit(listeners, "ada", "own", source={"dockerfile": f"{RECIPE}USER 1\n"})
    edit(listeners, "ada", "own", description="third")
    page = listeners.ask("ada", "GET", "/api/templates/own/revisions").get_json()
    assert [(one["revision"], one["workspaces"], one["is_current"]) for one in page["items"]] == [
        (3, 0, True), (2, 1, False), (1, 2, False),
    ]  # fmt: skip
    page = listeners.ask("ada", "GET", "/api/templates/own/revisions?limit=1&sort=revision").get_json()
    assert ([one["revision"] for one in page["items"]], page["total"], page["next_offset"]) == ([1], 3, 1)
    first = listeners.ask("ada", "GET", "/api/templates/own/revisions/1").get_json()
    assert (first["dockerfile"], first["description"], first["workspaces"]) == (RECIPE, "", 2)
    assert first["source"]["has_dockerfile"] is True
    files = listeners.ask("ada", "GET", "/api/templates/own/revisions/1/context").get_json()
    assert (files["items"], files["total"]) == ([], 0)
    for path in ("revisions/4", "revisions/4/context", "revisions/0", "diff?from=9", "diff?to=9"):
        checked(listeners.ask("ada", "GET", f"/api/templates/own/{path}"), 404, "not_found")
    for path in ("revisions/x", "revisions/-1", "revisions/1.5"):
        assert listeners.ask("ada", "GET", f"/api/templates/own/{path}").status_code == 404
    checked(listeners.ask("bob", "GET", "/api/templates/tpl-00000own/revisions"), 404, "not_found")


def test_what_differs(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id, "own", dockerfile=RECIPE)
    path = "/api/templates/own/context/file?path=a.txt"
    listeners.ask("ada", "PUT", path, data=b"1", content_type="application/octet-stream")
    edit(listeners, "ada", "own", source={"dockerfile": RECIPE.replace("one", "two")}, description="new")
    whole = listeners.ask("ada", "GET", "/api/templates/own/diff?from=1&to=3").get_json()
    assert whole["changed"] == ["description", "Dockerfile", "build context"]
    assert whole["fields"] == [{"field": "description", "before": "", "after": "new"}]
    assert "-RUN one\n+RUN two" in whole["dockerfile"]
    assert "+a.txt sha256:" in whole["context"]
    last = listeners.ask("ada", "GET", "/api/templates/own/diff").get_json()
    assert (last["before"], last["after"], last["context"]) == (2, 3, None)
    back = listeners.ask("ada", "GET", "/api/templates/own/diff?from=3&to=1").get_json()
    assert back["fields"] == [{"field": "description", "before": "new", "after": ""}]
    same = listeners.ask("ada", "GET", "/api/templates/own/diff?from=1&to=1").get_json()
    assert (same["changed"], same["fields"], same["dockerfile"]) == ([], [], None)
    for query in ("from=0", "from=x", "to=-1", "from=1&from=2", "upto=1", "from=99999999999"):
        checked(listeners.ask("ada", "GET", f"/api/templates/own/diff?{query}"), 422, "validation_failed")


def test_a_template_of_one_revision(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id)
    record = listeners.ask("ada", "GET", "/api/templates/base/diff").get_json()
    assert (record["before"], record["after"], record["changed"]) == (1, 1, [])


def test_secrets_stay_secret(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id)
    secret = {"name": "KEY", "value": "s3cret-one", "secret": True}
    edit(listeners, "ada", "base", env=[secret])
    edit(listeners, "ada", "base", env=[secret | {"value": "s3cret-two"}])
    for path in ("revisions", "revisions/2", "revisions/3", "diff", "diff?from=1"):
        text = listeners.ask("ada", "GET", f"/api/templates/base/{path}").text
        assert "s3cret" not in text, path
    [change] = listeners.ask("ada", "GET", "/api/templates/base/diff").get_json()["fields"]
    assert (change["before"][0]["value"], change["after"][0]["value"]) == ("(set)", "(changed)")


@pytest.mark.parametrize("path", ["revisions/2", "revisions/2/context", "diff?from=2"])
def test_what_never_was_enabled_is_not_for_everybody(listeners: Any, people: Any, path: str) -> None:
    """A global template is "visible to everyone after review"; its drafts are not."""
    template = make_template(None, "open")
    for number in (2, 3):
        edit(listeners, "boss", "open", description=f"draft {number}")
    url = f"/api/templates/open/{path}"
    assert listeners.ask("boss", "GET", url).status_code == 200
    checked(listeners.ask("ada", "GET", url), 404, "not_found")
    items = listeners.ask("ada", "GET", "/api/templates/open/revisions").get_json()["items"]
    assert [one["revision"] for one in items] == [3]
    make_workspace(people["ada"].id, template, template_revision=2)
    assert listeners.ask("ada", "GET", url).status_code == 200
    checked(listeners.ask("bob", "GET", url), 404, "not_found")


def test_findings_of_an_earlier_release(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id)
    with write():
        database.execute_sql(
            """UPDATE template_revisions SET findings_json = '[{"code":"ports","message":"x","diff":null}]'"""
        )
    [finding] = listeners.ask("ada", "GET", "/api/templates/base").get_json()["findings"][-1:]
    assert (finding["code"], finding["file"], finding["line"]) == ("ports", None, None)
