"""Images that do not run as root, with the installed program: the warning, its command, /work after it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

import pytest
from e2e import operations
from e2e.installation import Call, Service
from e2e.registries import REPOSITORY, Shelf
from e2e.surroundings import in_database, must, new_template

USER = "tse-alice"
SIZE = 8 << 20
WARNING = (
    "svc: warning: the programs of this image run as worker (uid 1234, gid 100) and cannot open /work,"
    " which is that of root inside: the template has no run_as"
)
HINT = re.compile(r"hint: svc (template edit \S+ --run-as 1234:100)(?: && svc (ws upgrade \S+))?")


@pytest.fixture
def template(alice: Call, service: Service, shelf: Shelf) -> Iterator[str]:
    """The template of an image whose programs run as `worker`."""
    name = f"own-{os.urandom(3).hex()}"
    files = {"etc/passwd": b"root:x:0:0::/:/bin/sh\nworker:x:1234:100::/:/bin/sh\n", "data": os.urandom(SIZE)}
    shelf.put(name, files, User="worker")
    new_template(
        USER, service.env, name, {"type": "registry", "image_ref": f"{shelf.address}/{REPOSITORY}:{name}"}
    )
    yield name
    alice("ws", "delete", f"{name}-lab", "--yes")
    alice("image", "delete", name, "--yes")
    must(alice("template", "delete", name, "--yes"))


def test_the_warning_leads_to_a_workspace_that_can_write(alice: Call, template: str) -> None:
    lab = f"{template}-lab"
    pulled = must(alice("image", "pull", template, "--wait"))
    assert WARNING in pulled.err and HINT.search(pulled.err), pulled.err
    created = must(alice("ws", "create", "--template", template, "--name", lab))
    assert WARNING in created.err, created.err
    must(alice("ws", "start", lab))
    assert alice("ws", "exec", lab, "--", "touch", "/work/made-inside").code == 1
    must(alice("ws", "stop", lab))

    found = HINT.search(must(alice("ws", "get", lab)).err)
    assert found is not None
    edited = must(alice(*found[1].split()))
    assert "warning" not in edited.err
    must(alice(*found[2].split(), "--yes"))
    assert "warning" not in must(alice("ws", "get", lab)).err
    must(alice("ws", "start", lab))
    must(alice("ws", "exec", lab, "--", "touch", "/work/made-inside"))
    assert "made-inside" in must(alice("fs", "ls", "work")).out
    must(alice("fs", "rm", "work/made-inside", "--yes"))
    assert alice("image", "status", template).err == ""


def image_bytes(call: Call) -> tuple[int, int]:
    """What all images take by the overview, and by the usage that the quota is shown with."""
    overview = must(call("image", "overview", "--json")).json()["total_bytes"]
    return overview, must(call("api", "GET", "/api/usage/me")).json()["image_bytes"]


def test_the_copy_is_a_step_of_a_setup_and_counts(alice: Call, template: str, service: Service) -> None:
    lab = f"{template}-lab"
    must(alice("image", "pull", template, "--wait"))
    before = image_bytes(alice)
    must(alice("template", "edit", template, "--run-as", "1234:100"))

    in_database(service.env, "UPDATE quotas SET max_image_bytes = ?", before[0] + SIZE)
    try:
        refused = alice("ws", "setup", "--template", template, "--name", lab, "--json")
    finally:
        in_database(service.env, "UPDATE quotas SET max_image_bytes = NULL")
    assert (refused.code, refused.json()["operation"]["error"]["code"]) == (1, "quota_exceeded"), refused.out
    assert image_bytes(alice)[0] == before[0] and alice("ws", "get", lab).code == 1

    operation = operations.begin(
        alice,
        "api",
        "POST",
        "/api/workspaces/setup",
        "--body",
        json.dumps({"template": template, "name": lab}),
    )
    operations.succeeded(alice, operation)
    steps = operations.log(alice, operation).split("\n")
    assert [line for line in steps if line in ("copying", "creating")] == ["copying", "creating"], steps
    after = image_bytes(alice)
    assert after[0] - before[0] > SIZE and after[1] - before[1] > SIZE, (before, after)
    again = operations.begin(
        alice,
        "api",
        "POST",
        "/api/workspaces/setup",
        "--body",
        json.dumps({"template": template, "name": f"{lab}-2"}),
    )
    operations.succeeded(alice, again)
    assert "copying" not in operations.log(alice, again)
    must(alice("ws", "delete", f"{lab}-2", "--yes"))
