"""Templates from a project or an unpacked bundle; the service answers from a table."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from fake_service import Service, Svc

from svc.domain.templates import bundles

TEMPLATE = {
    "id": "tpl-1", "name": "mine", "scope": "private", "status": "disabled", "revision": 2,
    "source": {"type": "dockerfile", "image_ref": "localhost/svc/tpl-1:aa"},
    "updated_at": "2025-01-02T03:04:05Z",
}  # fmt: skip
LINE = "tpl-1\tmine\tprivate\tdisabled\tlocalhost/svc/tpl-1:aa\t2\t2025-01-02T03:04:05Z\n"
DOCKERFILE = "FROM r/base:1\nCOPY . /app\n"  # of the project


def sent_bundle(service: Service) -> bundles.Bundle:
    """The bundle in the last request."""
    assert service.last.fields["content-type"] == "application/x-tar"
    return bundles.read(io.BytesIO(service.last.body))


def names(bundle: bundles.Bundle) -> list[str]:
    return list(bundle.members)


def test_a_project_becomes_a_template(service: Service, svc: Svc, project: Path) -> None:
    """ "template create --dockerfile F [--context DIR]": without a checksum by hand."""
    service.answer("POST /api/templates", TEMPLATE, status=201)
    create = ("template", "create", "--dockerfile", "My_Project/Dockerfile")
    assert svc(*create, "--context", "My_Project") == (0, LINE, "")
    bundle = sent_bundle(service)
    assert bundle.template == {"name": "my-project", "source": {"type": "dockerfile"}}
    assert bundle.dockerfile() == DOCKERFILE.encode()
    files = {one.path: one.executable for one in bundle.context()}
    assert files == {".dockerignore": False, "Dockerfile": False, "app/main": True}
    assert svc(*create, "--name", "other").code == 0
    assert (sent_bundle(service).template["name"], names(sent_bundle(service))) == ("other", ["Dockerfile"])
    Path("spec.json").write_text(json.dumps({"name": "spec", "ports": []}))
    assert svc("template", "create", "--file", "spec.json", "--dockerfile", "-", stdin=b"FROM x\n").code == 0
    assert sent_bundle(service).template == {"name": "spec", "ports": [], "source": {"type": "dockerfile"}}
    assert sent_bundle(service).dockerfile() == b"FROM x\n"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("", 2), ("--context My_Project", 2), ("--file f --name x", 2), ("--file - --dockerfile -", 2),
        ("--dockerfile -", 2), ("--file with.json --dockerfile My_Project/Dockerfile", 2),
        ("--file bad.json --dockerfile My_Project/Dockerfile", 1), ("--dockerfile none", 1),
        ("--dockerfile My_Project/Dockerfile --context none", 1),
        ("--dockerfile My_Project/Dockerfile --context My_Project/Dockerfile", 1),
    ],
)  # fmt: skip
def test_creations_that_are_refused(service: Service, svc: Svc, project: Path, line: str, code: int) -> None:
    Path("with.json").write_text('{"name": "a", "source": {"dockerfile": "FROM x"}}')
    Path("bad.json").write_text("[]")
    outcome = svc("template", "create", *line.split())
    assert (outcome.code, outcome.out, service.sent) == (code, "", [])
    assert outcome.err.startswith("svc: ")


def test_a_directory_is_imported(service: Service, svc: Svc, project: Path) -> None:
    service.answer("POST /api/templates/import", TEMPLATE, status=201)
    assert svc("template", "import", "My_Project", "--build-later") == (0, LINE, "")
    assert sent_bundle(service).template["name"] == "my-project"
    assert len(names(sent_bundle(service))) == 4
    os.rename(project / "Dockerfile", project / "Containerfile")
    assert svc("template", "import", "My_Project/", "--build-later").code == 0
    assert sent_bundle(service).dockerfile() == DOCKERFILE.encode()
    nothing = svc("template", "import", "My_Project/app")
    assert "neither a Dockerfile, as a project, nor a manifest.json, as an unpacked bundle" in nothing.err


def test_an_unpacked_bundle_is_imported(service: Service, svc: Svc, project: Path) -> None:
    """ "No hand-written checksums": those of the files as they were are not sent."""
    service.answer("POST /api/templates/import", TEMPLATE, status=201)
    root = Path("unpacked")
    root.mkdir()
    members: dict[str, Any] = {"Dockerfile": {"sha256": "0" * 64, "size": 1, "executable": False}}
    template = {"name": "t", "source": {"type": "dockerfile"}}
    (root / "manifest.json").write_text(json.dumps({"format": 1, "template": template, "members": members}))
    (root / "Dockerfile").write_text(DOCKERFILE)
    os.rename(project, root / "context")
    (root / "notes").touch()
    outcome = svc("template", "import", "unpacked", "--build-later")
    assert outcome == (0, LINE, "svc: unpacked/notes is no part of a bundle and is left out\n")
    bundle = sent_bundle(service)
    assert bundle.template == template
    assert {one.path for one in bundle.context()} == {".dockerignore", "Dockerfile", "app/main", "left"}
    (root / "context/link").symlink_to("left")
    assert "link is a symbolic link" in svc("template", "import", "unpacked").err
    (root / "manifest.json").write_text("{")
    assert "manifest.json: it is not JSON" in svc("template", "import", "unpacked").err
