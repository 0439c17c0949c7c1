"""The generated description is up to date, and answers are what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from marshmallow import EXCLUDE

from svc.web.callers.credentials import COOKIE, HEADER
from svc.web.schemas.images import Image
from svc.web.schemas.operations import Operation
from svc.web.schemas.templates import TEMPLATE
from svc.web.schemas.users import Me, User
from svc.web.schemas.workspaces import WORKSPACE, WORKSPACES

ROOT = Path(__file__).resolve().parents[3]


def test_every_route_is_described(listeners: Any) -> None:
    document = listeners.ask("ada", "GET", "/api/openapi.json").get_json()
    assert document["openapi"] == "3.1.0"
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    routes = {
        (method, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule in listeners.apps["unix"].url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    assert described == routes
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names))


def test_the_description_is_the_file_and_no_work_of_the_service(listeners: Any) -> None:
    """Made by the service, it took two seconds when forty clients asked for it first."""
    sent = listeners.ask("ada", "GET", "/api/openapi.json")
    assert sent.data == (ROOT / "schema/openapi.json").read_bytes()
    assert sent.content_type == "application/json"


def test_every_reference_leads_somewhere(listeners: Any) -> None:
    text = listeners.ask("ada", "GET", "/api/openapi.json").text
    schemas = json.loads(text)["components"]["schemas"]
    assert set(re.findall(r"#/components/schemas/(\w+)", text)) <= set(schemas)


def keys(schema: Any) -> set[str]:
    return {field.data_key or name for name, field in schema.fields.items()}


def test_records_have_the_keys_that_are_described(listeners: Any, lab: str) -> None:
    workspace = listeners.ask("ada", "GET", "/api/workspaces/lab").get_json()
    assert set(workspace) == keys(WORKSPACE)
    for name in ("template", "image"):
        assert set(workspace[name]) == keys(WORKSPACE.fields[name].schema)
    assert set(workspace["resources"]) == keys(WORKSPACE.fields["resources"].schema)
    assert set(workspace["mounts"][0]) == keys(WORKSPACE.fields["mounts"].inner.schema)
    page = listeners.ask("ada", "GET", "/api/workspaces").get_json()
    assert set(page) == keys(WORKSPACES)
    assert page["items"] == [workspace]
    template = listeners.ask("ada", "GET", "/api/templates/base").get_json()
    assert set(template) == keys(TEMPLATE)
    assert set(listeners.ask("ada", "GET", "/api/templates/base/image").get_json()) == keys(Image())
    operation = listeners.ask("ada", "POST", "/api/templates/base/image/pull").get_json()["operation"]
    assert set(operation) == keys(Operation())
    assert set(listeners.ask("ada", "GET", "/api/users/me").get_json()) == keys(Me())
    assert set(listeners.ask("boss", "GET", "/api/users").get_json()["items"][0]) == keys(User())


def test_a_record_goes_through_its_own_schema(listeners: Any, lab: str) -> None:
    """Types too: what is described as a list is one."""
    record = listeners.ask("ada", "GET", "/api/workspaces/lab").get_json()
    loaded = WORKSPACE.load(record, unknown=EXCLUDE)
    assert loaded["name"] == "lab"


def test_which_credentials_open_what(listeners: Any) -> None:
    document = listeners.ask("ada", "GET", "/api/openapi.json").get_json()
    schemes = document["components"]["securitySchemes"]
    assert (schemes["session_cookie"]["name"], schemes["session_header"]["name"]) == (COOKIE, HEADER)
    session, token = {"session_cookie": [], "session_header": []}, {"token": []}
    opens = {
        (method, path): operation["security"]
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert opens["get", "/api/workspaces"] == [session, token]
    assert token in opens["get", "/api/fs/roots"], "with the scope"
    assert opens["get", "/api/tokens"] == [session]  # "never ... token operations"
    assert opens["get", "/api/auth/session"] == [session]
    for anybody in (("post", "/api/auth/login"), ("get", "/api/health")):
        assert opens[anybody] == []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if operation["x-svc-listeners"] == ["unix"]:  # the kernel says who calls
                assert opens[method, path] == []
            elif operation["x-svc-who"] != "anyone":
                assert (token in opens[method, path]) == (
                    operation["x-svc-pat"] or "x-svc-scope" in operation
                )
    assert {name for kinds in opens.values() for kind in kinds for name in kind} == set(schemes)
