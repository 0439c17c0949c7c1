"""ETag and If-Match over HTTP: two tabs never overwrite each other silently."""

from __future__ import annotations

import io
import tarfile
import threading
from typing import Any

import pytest
from unit.serving import checked, make_template, make_workspace

from svc.db.connect import close_database

RECIPE = "FROM registry.example/debian:12\n"
LAB = "/api/workspaces/lab"


@pytest.fixture
def lab(people: Any) -> str:
    return make_workspace(people["ada"].id, make_template(people["ada"].id))


def etag(listeners: Any, path: str, who: str = "ada") -> str:
    response = listeners.ask(who, "GET", path)
    assert response.status_code == 200, response.text
    assert response.headers["ETag"][0] == response.headers["ETag"][-1] == '"'
    return str(response.headers["ETag"])


def change(listeners: Any, version: str, path: str = LAB, **body: Any) -> Any:
    return listeners.ask("ada", "PATCH", path, json=body, headers={"If-Match": version})


def test_the_second_of_two_tabs_learns_what_has_changed(listeners: Any, lab: str) -> None:
    seen = etag(listeners, LAB)
    assert etag(listeners, f"/api/workspaces/{lab}") == seen
    first = change(listeners, seen, env=[{"name": "A", "value": "1"}], display_name="mine")
    assert first.status_code == 200, first.text
    assert first.headers["ETag"] == etag(listeners, LAB) != seen
    error = checked(change(listeners, seen, restart_on_boot=True), 412, "precondition_failed")
    assert error["details"] == {"version": first.headers["ETag"], "changed": ["display_name", "env"]}
    assert error["message"] == "lab has changed since it was read: display_name, env"
    assert error["hint"] == "svc ws get lab"
    assert listeners.ask("ada", "GET", LAB).get_json()["restart_on_boot"] is False
    assert change(listeners, first.headers["ETag"], restart_on_boot=True).status_code == 200


def test_without_the_header_as_before(listeners: Any, lab: str) -> None:
    assert listeners.ask("ada", "PATCH", LAB, json={"display_name": "x"}).status_code == 200
    assert change(listeners, "*", display_name="y").status_code == 200
    assert change(listeners, f'"other", {etag(listeners, LAB)}', display_name="z").status_code == 200


def test_the_state_is_no_part_of_it(listeners: Any, people: Any, lab: str) -> None:
    template = "tpl-0000base"
    running = make_workspace(people["ada"].id, template, "run", status="running", health="ok")
    before = etag(listeners, f"/api/workspaces/{running}")
    listeners.ask("ada", "PATCH", f"/api/templates/{template}", json={"description": "newer"})
    assert etag(listeners, f"/api/workspaces/{running}") == before


@pytest.mark.parametrize(
    "text",
    [
        "", "x", '"', '"a', "'a'", '"a" "b"', '"a",', ',"a"', "*, *", '*,"a"', 'w/"a"', '"a b"',
        '"a"' * 2000, '"\u00e9"',
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_malformed_headers(listeners: Any, lab: str, text: str) -> None:
    checked(change(listeners, text, display_name="x"), 400, "invalid_request")
    assert listeners.ask("ada", "GET", LAB).get_json()["display_name"] == ""


@pytest.mark.parametrize("text", ['""', '"a"', '"a.b.c.d.e.f"', '"........"', '"*"', "\"';DROP'\""])
def test_versions_that_never_were(listeners: Any, lab: str, text: str) -> None:
    checked(change(listeners, text, display_name="x"), 412, "precondition_failed")
    weak = "W/" + etag(listeners, LAB)
    checked(change(listeners, weak, display_name="x"), 412, "precondition_failed")


def test_renames_and_deletions(listeners: Any, lab: str) -> None:
    seen = etag(listeners, LAB)
    change(listeners, seen, display_name="x")
    headers = {"If-Match": seen}
    renamed = listeners.ask("ada", "POST", f"{LAB}/rename", json={"name": "new"}, headers=headers)
    assert checked(renamed, 412, "precondition_failed")["details"]["changed"] == ["display_name"]
    checked(listeners.ask("ada", "DELETE", LAB, headers=headers), 412, "precondition_failed")
    headers = {"If-Match": etag(listeners, LAB)}
    renamed = listeners.ask("ada", "POST", f"{LAB}/rename", json={"name": "new"}, headers=headers)
    assert renamed.status_code == 200
    headers = {"If-Match": renamed.headers["ETag"]}
    assert listeners.ask("ada", "DELETE", "/api/workspaces/new", headers=headers).status_code == 204


def test_another_user_learns_nothing(listeners: Any, lab: str) -> None:
    headers = {"If-Match": '"a"'}
    checked(
        listeners.ask("bob", "PATCH", f"/api/workspaces/{lab}", json={}, headers=headers), 404, "not_found"
    )
    checked(listeners.ask("bob", "DELETE", f"/api/workspaces/{lab}", headers=headers), 404, "not_found")


def test_fifty_tabs_have_one_winner(listeners: Any, lab: str) -> None:
    seen = etag(listeners, LAB)
    statuses: list[int] = []
    gate = threading.Barrier(50)

    def tab(number: int) -> None:
        gate.wait()
        statuses.append(change(listeners, seen, display_name=f"tab {number}").status_code)
        close_database()

    threads = [threading.Thread(target=tab, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [412] * 49


def test_templates(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id, env=[{"name": "A", "value": "1"}])
    path = "/api/templates/base"
    seen = etag(listeners, path)
    assert change(listeners, seen, path, env=[{"name": "A", "value": "2"}]).status_code == 200
    error = checked(change(listeners, seen, path, description="x"), 412, "precondition_failed")
    assert error["details"]["changed"] == ["revision", "env"]
    checked(listeners.ask("ada", "DELETE", path, headers={"If-Match": seen}), 412, "precondition_failed")
    headers = {"If-Match": etag(listeners, path)}
    assert listeners.ask("ada", "DELETE", path, headers=headers).status_code == 204


def test_a_secret_is_part_of_it_without_its_value(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id)
    path = "/api/templates/base"
    secret = {"name": "KEY", "value": "one", "secret": True}
    listeners.ask("ada", "PATCH", path, json={"env": [secret]})
    seen = etag(listeners, path)
    listeners.ask("ada", "PATCH", path, json={"env": [secret | {"value": "two"}]})
    error = checked(change(listeners, seen, path, env=[]), 412, "precondition_failed")
    assert error["details"]["changed"] == ["revision"]


def test_dockerfiles(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id, "own", dockerfile=RECIPE)
    path = "/api/templates/own/dockerfile"
    seen = etag(listeners, path)
    listeners.ask("ada", "PATCH", "/api/templates/own", json={"description": "not of it"})
    for number, expected in enumerate((200, 412)):
        body = {"dockerfile": f"{RECIPE}# {number}\n"}
        response = listeners.ask("ada", "PUT", path, json=body, headers={"If-Match": seen})
        assert response.status_code == expected, response.text
    assert response.get_json()["error"]["hint"] == "svc template dockerfile own"
    assert listeners.ask("ada", "PUT", path, json=body).status_code == 200


def test_files_of_a_context(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id, "own", dockerfile=RECIPE)
    path = "/api/templates/own/context/file?path=a"

    def put(content: bytes, version: str, where: str = path) -> int:
        headers = {"If-Match": version, "Content-Type": "application/octet-stream"}
        return int(listeners.ask("ada", "PUT", where, data=content, headers=headers).status_code)

    assert put(b"1", "*") == 412  # there is none
    assert (
        listeners.ask("ada", "PUT", path, data=b"1", content_type="application/octet-stream").status_code
        == 200
    )
    seen = etag(listeners, path)
    everything = etag(listeners, "/api/templates/own/context")
    assert put(b"2", seen) == 200
    assert put(b"3", seen) == 412
    headers = {"If-Match": seen}
    assert listeners.ask("ada", "DELETE", path, headers=headers).status_code == 412
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w"):
        pass
    where, headers = (
        "/api/templates/own/context",
        {"If-Match": everything, "Content-Type": "application/x-tar"},
    )
    response = listeners.ask("ada", "PUT", where, data=tar.getvalue(), headers=headers)
    checked(response, 412, "precondition_failed")
    headers["If-Match"] = etag(listeners, where)
    assert listeners.ask("ada", "PUT", where, data=tar.getvalue(), headers=headers).status_code == 200
