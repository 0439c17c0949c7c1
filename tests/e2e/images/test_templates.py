"""A template's way to another host: export, import over there, review, build, enable, somebody's workspace.

The second host is a second service: its own database, state, socket and port, other
people. tse-noa is a superuser there and works in a browser's session over TLS; tse-pia
is anybody. tse-kim has made the template here.
"""

from __future__ import annotations

import io
import json
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from e2e import operations
from e2e.far_host import Answer, Client, far_host
from e2e.installation import Call, Outcome, environment, run
from e2e.registries import REPOSITORY
from e2e.surroundings import in_database, must, podman, served
from ports import free_port
from waiting import until

from svc.domain.templates import bundles
from svc.domain.templates.bundles import ContextFile

STATE, RUN = Path("/var/lib/svc-e2e-far"), Path("/run/svc-e2e-far")
REVIEWER, READER = "tse-noa", "tse-pia"
PASSWORD = "nine lanterns drift upstream"
SECRET = "correct-horse-43"
FILES = {"greet": (b"#!/bin/sh\necho hello from the context\n", True), "data/notes": (b"noted\n", False)}


def bundle(dockerfile: str, **template: Any) -> bytes:
    """A bundle whose context holds FILES."""
    context = [
        ContextFile(path, run, lambda data=data: io.BytesIO(data), len(data))  # type: ignore[misc]
        for path, (data, run) in FILES.items()
    ]
    file = io.BytesIO()
    described = {"source": {"type": "dockerfile"}, "description": "greets", **template}
    bundles.write(file, described, dockerfile.encode(), context)
    return file.getvalue()


def home_file(user: str, name: str, content: bytes) -> str:
    """A file in the user's home; its path."""
    account = pwd.getpwnam(user)
    path = Path(account.pw_dir, name)
    path.write_bytes(content)
    path.chmod(0o644)
    return str(path)


def read_home_file(user: str, name: str) -> bytes:
    """What is in it."""
    return Path(pwd.getpwnam(user).pw_dir, name).read_bytes()


@pytest.fixture(scope="module", autouse=True)
def allowed(policy: list[str], fetchers: None) -> None:
    """All the registries that the tests name."""


@pytest.fixture
def recipe(registry: str) -> str:
    """A Dockerfile that needs its context."""
    return f"FROM {registry}/{REPOSITORY}:1\nCOPY greet /bin/greet\nCOPY data /data\nRUN greet > /greeting\n"


class Elsewhere:
    """The second host: its commands by user, and the reviewer's browser."""

    def __init__(self, env: dict[str, str], client: Client) -> None:
        self.env, self.client = env, client
        self.page: dict[str, str] = {}

    def call(self, user: str, *argv: str, **more: Any) -> Outcome:
        """`svc ARGV` as that user."""
        return run(user, *argv, env=self.env, **more)

    def log_in(self) -> None:
        """The reviewer opens a session."""
        body = {"username": REVIEWER, "password": PASSWORD}
        answer = self.client.ask("POST", "/api/auth/login", body, jar="review")
        assert answer.status == 200, answer
        self.page = {"X-Svc-Session": answer.json()["session_secret"]}

    def browse(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        """A request of the reviewer's browser."""
        headers = self.page | more.pop("headers", {})
        return self.client.ask(method, path, body, jar="review", headers=headers, **more)


@contextmanager
def second_service(registry: str, folder: Path) -> Iterator[dict[str, str]]:
    """The settings of another service, while it runs."""
    env = environment(free_port(), STATE, RUN) | {"SVC_HOST": ""}
    people = (REVIEWER, READER)
    with served(env, registry, folder / "log", accounts=people, password=PASSWORD + "\n"):
        must(run("root", "admin", "edit-user", REVIEWER, "--superuser", env=env))
        yield env


@pytest.fixture(scope="module")
def elsewhere(registry: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    """The second host, with the reviewer logged in."""
    with second_service(registry, tmp_path_factory.mktemp("elsewhere")) as env:
        certificate = Path(env["SVC_DB"]).parent / "tls" / "cert.pem"
        with far_host(int(env["SVC_PORT"]), certificate) as far, far.client() as client:
            there = Elsewhere(env, client)
            there.log_in()
            yield there


@pytest.fixture
def exported(kim: Call, recipe: str) -> Iterator[bytes]:
    """The bundle of a template that tse-kim has imported, built, enabled and given a secret."""
    path = home_file("tse-kim", "greeter.tar", bundle(recipe, name="greeter"))
    imported = must(kim("template", "import", path, "--json")).json()
    must(kim("template", "enable", "greeter"))
    env = [{"name": "MODE", "value": "plain"}, {"name": "API_KEY", "value": SECRET, "secret": True}]
    must(kim("template", "edit", "greeter", "--file", "-", stdin=json.dumps({"env": env})))
    must(kim("template", "export", "greeter", "--out", "exported.tar"))
    yield read_home_file("tse-kim", "exported.tar")
    kim("api", "DELETE", "/api/templates/greeter/image")
    must(kim("template", "delete", "greeter", "--yes"))
    assert imported


def finding(record: dict[str, Any], code: str) -> dict[str, Any]:
    """The one finding of that code."""
    found = [one for one in record["findings"] if one["code"] == code]
    assert len(found) == 1, record["findings"]
    return dict(found[0])


def build_there(there: Elsewhere, template: str) -> dict[str, Any]:
    """The reviewer's build, to its end."""
    begun = there.browse("POST", f"/api/templates/{template}/image/build", {})
    assert begun.status == 202, begun
    path = f"/api/operations/{begun.json()['operation']['id']}"

    def over() -> dict[str, Any] | None:
        state = dict(there.browse("GET", path).json())
        return state if state["status"] not in ("queued", "running") else None

    return dict(until(over, 60, 0.2))


def test_from_one_database_to_anothers_user(kim: Call, elsewhere: Elsewhere, exported: bytes) -> None:
    """ "Held for review"; "Global (managed, visible to everyone after review) or private (owned by one
    user)".
    """
    assert SECRET.encode() not in exported
    sent = bundles.read(io.BytesIO(exported)).digest

    # "Imported templates start disabled", and nobody else sees one.
    kind = {"Content-Type": "application/x-tar"}
    created = elsewhere.browse("POST", "/api/templates/import?scope=global", headers=kind, data=exported)
    assert created.status == 201, created
    record = created.json()
    template = record["id"]
    assert created.headers["Location"] == f"/api/templates/{template}"
    assert (record["status"], record["scope"], record["name"]) == ("disabled", "global", "greeter")
    assert elsewhere.call(READER, "template", "get", template).code == 1

    # The review, by machine and by person.
    awaiting = elsewhere.browse("GET", "/api/admin/templates").json()["items"]
    assert [one["id"] for one in awaiting] == [template]
    assert sent in finding(awaiting[0], "bundle_digest")["message"]
    assert finding(awaiting[0], "root_user")
    assert "API_KEY" in finding(awaiting[0], "secret_unset")["message"]
    text = elsewhere.browse("GET", f"/api/templates/{template}/dockerfile").json()
    assert text["dockerfile"].startswith("FROM ")
    assert text["read_only"] is True

    # "must be built before it can be enabled"
    early = elsewhere.browse("POST", f"/api/templates/{template}/enable", {})
    assert (early.status, early.code) == (409, "build_required"), early
    assert early.json()["error"]["hint"] == "svc image build greeter --wait"
    built = build_there(elsewhere, template)
    assert built["status"] == "succeeded", built
    assert podman(REVIEWER, "image", "exists", record["source"]["image_ref"]).code == 0
    enabled = elsewhere.browse("POST", f"/api/templates/{template}/enable", {"revision": record["revision"]})
    assert (enabled.status, enabled.json()["status"]) == (200, "enabled"), enabled
    assert elsewhere.browse("GET", "/api/admin/templates").json()["items"] == []

    # Another user, in a store of their own.
    assert podman(READER, "images", "--quiet").out == ""
    must(elsewhere.call(READER, "ws", "setup", "--template", "greeter", "--name", "lab"))
    must(elsewhere.call(READER, "ws", "start", "lab"))
    arguments = ("cat", "/greeting", "/data/notes")
    said = must(elsewhere.call(READER, "ws", "exec", "lab", "--", *arguments)).out
    assert said == "hello from the context\nnoted\n"
    assert elsewhere.call(READER, "ws", "exec", "lab", "--", "printenv", "API_KEY").code == 1
    must(elsewhere.call(READER, "ws", "stop", "lab"))

    # "equal digests of the bundle"
    back = elsewhere.browse("GET", f"/api/templates/{template}/export")
    assert (back.status, back.headers["X-Svc-Bundle-Digest"]) == (200, sent)
    must(elsewhere.call(REVIEWER, "template", "export", template, "--out", "back.tar"))
    assert read_home_file(REVIEWER, "back.tar") == exported

    must(elsewhere.call(READER, "ws", "delete", "lab", "--yes"))
    gone = elsewhere.browse("DELETE", f"/api/templates/{template}")
    assert gone.status == 204, gone


def test_only_administrators_import_for_everybody(kim: Call, elsewhere: Elsewhere, recipe: str) -> None:
    archive = bundle(recipe, name="pushed")
    path = home_file(READER, "pushed.tar", archive)
    token = must(elsewhere.call(READER, "token", "create", "--name", "import")).out.strip()
    kind = {"Content-Type": "application/x-tar"}
    for whose in (READER, REVIEWER):
        if whose == REVIEWER:  # a token "never performs administrator operations", a superuser's neither
            token = must(elsewhere.call(REVIEWER, "token", "create", "--name", "import")).out.strip()
        answer = elsewhere.client.ask(
            "POST", "/api/templates/import?scope=global", token=token, headers=kind, data=archive
        )
        assert (answer.status, answer.code) in ((403, "admin_only"), (403, "pat_not_allowed")), answer
    own = must(elsewhere.call(READER, "template", "import", path, "--build-later", "--json")).json()
    assert own["status"] == "disabled"
    assert in_database(elsewhere.env, "SELECT count(*) FROM templates WHERE owner_id IS NULL") == [[0]]
    must(elsewhere.call(READER, "template", "delete", "pushed", "--yes"))


def test_root_imports_no_dockerfile_from_the_command_line(
    svc: Call, service: Any, recipe: str, registry: str
) -> None:
    """ "Dockerfile bundles are refused here (they need a build) and are imported from /admin/templates" """
    path = home_file("tse-kim", "recipe.tar", bundle(recipe, name="recipe"))
    for arguments in (("--global",), ("--owner", "tse-kim")):
        refused = svc("root", "admin", "template", "import", path, *arguments)
        assert refused.code == 1, refused.out
        assert "/admin/templates" in refused.err
    described = {"name": "plain", "source": {"type": "registry", "image_ref": f"{registry}/{REPOSITORY}:1"}}
    file = io.BytesIO()
    bundles.write(file, described, None, [])
    path = home_file("tse-kim", "plain.tar", file.getvalue())
    must(svc("root", "admin", "template", "import", path, "--owner", "tse-kim"))
    printed = must(svc("tse-kim", "template", "get", "plain", "--json")).json()
    assert (printed["status"], printed["scope"]) == ("disabled", "private")
    must(svc("tse-kim", "template", "enable", "plain"))
    must(svc("tse-kim", "ws", "setup", "--template", "plain", "--name", "plain"))
    must(svc("tse-kim", "ws", "delete", "plain", "--yes"))
    must(svc("tse-kim", "template", "delete", "plain", "--yes"))


def test_import_builds_and_waits(kim: Call, recipe: str) -> None:
    """ "Imports a bundle; the result is disabled": "a Dockerfile bundle starts its build in the caller's
    store and waits, unless --build-later".
    """
    path = home_file("tse-kim", "own.tar", bundle(recipe, name="own"))
    later = must(kim("template", "import", path, "--build-later", "--json")).json()
    assert must(kim("image", "status", later["id"], "--json")).json()["status"] == "missing"
    must(kim("template", "import", path))
    names = [one["name"] for one in must(kim("template", "list", "--json")).json()["items"]]
    assert {"own", "own-2"} <= set(names)
    assert must(kim("image", "status", "own-2", "--json")).json()["status"] == "ready"
    latest = must(kim("image", "builds", "--json")).json()["items"][0]
    assert "COPY greet /bin/greet" in operations.log(kim, latest["id"])
    for name in ("own", "own-2"):
        kim("api", "DELETE", f"/api/templates/{name}/image")
        must(kim("template", "delete", name, "--yes"))


def test_a_clone_is_changed_built_and_used(kim: Call, svc: Call, registry: str) -> None:
    """ "A clone has its own editable build context. A global template's Dockerfile is read-only." The command
    "Prints a clone's or import's Dockerfile", "with `--set` replaces it in the clone's own build context".
    """
    text = f"FROM {registry}/{REPOSITORY}:1\nRUN echo given > /word\n"
    source = {"type": "dockerfile", "dockerfile": text, "local_only": True}
    spec = json.dumps({"name": "given", "scope": "global", "source": source})
    value = must(svc("root", "template", "create", "--file", "-", "--json", stdin=spec)).json()
    must(svc("root", "template", "enable", value["id"]))
    refused = kim("template", "dockerfile", value["id"], "--set", "--file", "-", stdin=text)
    assert refused.code == 1
    assert "hint: svc template clone given --name given-own" in refused.err
    must(kim("template", "clone", value["id"], "--name", "mine"))
    changed = text.replace("given", "changed")
    must(kim("template", "dockerfile", "mine", "--set", "--file", "-", stdin=changed))
    assert kim("template", "dockerfile", "mine").out == changed
    assert kim("template", "dockerfile", value["id"]).out == text
    must(kim("image", "build", "mine", "--wait"))
    must(kim("template", "enable", "mine"))
    must(kim("ws", "setup", "--template", "mine", "--name", "mine"))
    try:
        must(kim("ws", "start", "mine"))
        assert must(kim("ws", "exec", "mine", "--", "cat", "/word")).out == "changed\n"
    finally:
        kim("ws", "stop", "mine")
        kim("ws", "delete", "mine", "--yes")
        kim("template", "delete", "mine", "--yes")
        svc("root", "template", "delete", value["id"], "--yes")


def test_a_registry_off_the_allowlist_is_said_at_once(alice: Call) -> None:
    """ "An allowlist of registries exists": a new template says that its registry is not on it."""
    spec = {"name": "afar", "source": {"type": "registry", "image_ref": "registry.invalid/x:1"}}
    created = must(alice("template", "create", "--file", "-", stdin=json.dumps(spec)))
    cloned = must(alice("template", "clone", "afar", "--name", "afar-2", "--json"))
    bundle = must(alice("template", "export", "afar", "--out", "-")).out
    imported = must(alice("template", "import", "-", stdin=bundle))
    for said in (created, cloned, imported):
        assert said.err.startswith("svc: registry.invalid is not on the registry allowlist: until")
    for name in ("afar", "afar-2", "afar-3"):
        must(alice("template", "delete", name, "--yes"))


def test_a_disabled_dockerfile_template_names_its_build_first(alice: Call, registry: str) -> None:
    """ "A Dockerfile-backed clone or import must be built before it can be enabled"."""
    spec = {
        "name": "unbuilt",
        "source": {"type": "dockerfile", "dockerfile": f"FROM {registry}/tests/base:1\n"},
    }
    must(alice("template", "create", "--file", "-", stdin=json.dumps(spec)))
    said = alice("ws", "create", "--template", "unbuilt", "--name", "early")
    assert said.code == 1
    assert said.err.endswith("hint: svc image build unbuilt --wait && svc template enable unbuilt\n")
    must(alice("template", "delete", "unbuilt", "--yes"))
