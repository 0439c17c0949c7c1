"""The examples: valid for the service as they are, and created with another name or image."""

from __future__ import annotations

import io
import json

import pytest
from fake_service import Service, Svc

from svc.cli.template.examples import examples
from svc.domain.templates import bundles, dockerfiles
from svc.web.schemas.templates import TemplateCreate

RECORD = {
    "id": "tpl-1", "name": "jupyter", "scope": "private", "status": "disabled", "revision": 1,
    "source": {"type": "dockerfile", "image_ref": "localhost/svc/tpl-1:aa"},
    "updated_at": "2025-01-02T03:04:05Z",
}  # fmt: skip
APPLICATIONS = [
    "code-server", "jupyter", "model-server", "node", "postgres", "r", "rstudio", "sshd", "streamlit",
    "tensorboard",
]  # fmt: skip
SCRIPTS = "r"  # of which nothing listens


def sent(service: Service) -> bundles.Bundle:
    """The bundle in the last request."""
    return bundles.read(io.BytesIO(service.last.body))


def test_all_are_listed(svc: Svc) -> None:
    """Without a server."""
    lines = svc("template", "examples").out.splitlines()
    assert [line.split("\t")[0] for line in lines] == APPLICATIONS
    assert all("docker.io/" in line.split("\t")[1] and line.split("\t")[2] for line in lines)
    items = json.loads(svc("template", "examples", "--json").out)["items"]
    assert [item["name"] for item in items] == APPLICATIONS


@pytest.mark.parametrize("name", APPLICATIONS)
def test_each_is_what_the_service_takes(service: Service, svc: Svc, name: str) -> None:
    service.answer("POST /api/templates", RECORD, status=201)
    assert svc("template", "create", "--example", name).code == 0
    bundle = sent(service)
    template = TemplateCreate().load(bundle.template)
    assert template["name"] == name and len(template["description"]) > 20
    if name != SCRIPTS:
        (port,), (launcher,) = template["ports"], template["launchers"]
        assert (launcher["port"], launcher["autostart"]) == (port["name"], True)
    assert {"name": "HOME", "value": "/work"} in bundle.template["env"], "what is set up inside stays"
    parsed = dockerfiles.parse(bundle.dockerfile())
    assert [stage.image for stage in parsed.stages] == [examples.record(name)["image"]]
    starters = [one for one in bundle.context() if one.path.startswith("start-")]
    assert all(one.executable for one in starters)
    assert not starters or [one.path for one in starters] == [launcher["command"][0]]


def test_another_name_and_image(service: Service, svc: Svc) -> None:
    service.answer("POST /api/templates", RECORD, status=201)
    line = "template create --example jupyter --name notes --base registry.example/python:3"
    outcome = svc(*line.split())
    assert (outcome.code, outcome.out.split("\t")[1]) == (0, "jupyter")
    assert sent(service).template["name"] == "notes"
    assert b"\nFROM registry.example/python:3\nRUN pip" in sent(service).dockerfile()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--example jupiter", "no example is named jupiter: code-server, jupyter, model-server, node"),
        ("--example ../jupyter", "no example is named ../jupyter"),
        ("--example jupyter --file -", "--example cannot be combined"),
        ("--example jupyter --dockerfile D", "--example cannot be combined"),
        ("--file f --base x", "--base goes with --example"),
        ("--example", "expected one argument"),
    ],
)
def test_what_is_refused(service: Service, svc: Svc, line: str, words: str) -> None:
    outcome = svc("template", "create", *line.split())
    assert (outcome.code, outcome.out, service.sent) == (2, "", [])
    assert words in outcome.err
