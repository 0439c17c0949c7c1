"""What a snapshot and the files beside it do not hold: any secret that this service knows, in the clear."""

from __future__ import annotations

import base64
import json
import os
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.installation import IMAGE, PASSWORD, STATE, Call, Service, run
from e2e.surroundings import must

NEW_PASSWORD = "two herons over the quiet weir"
VARIABLE = "sealed-variable-of-the-tests-4417"
LOGIN = "robot-login-of-the-tests-9920"
CORE_MIN = 16  # a cookie's signature may have a "_" too, and what is behind its last one stands anywhere


@pytest.fixture
def session(service: Service) -> dict[str, str]:
    """A browser's session of Alice: the value of its cookie, and what its page keeps."""
    context = ssl.create_default_context(cafile=str(STATE / "data/tls/cert.pem"))
    body = json.dumps({"username": "tse-alice", "password": PASSWORD.strip()}).encode()
    request = urllib.request.Request(
        f"https://localhost:{service.env['SVC_PORT']}/api/auth/login",
        body,
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30, context=context) as answer:
        cookie = answer.headers["Set-Cookie"].partition("=")[2].partition(";")[0]
        return {"cookie": cookie, "page": json.load(answer)["session_secret"]}


@pytest.fixture
def secrets(
    service: Service, alice: Call, bob: Call, registry: str, session: dict[str, str]
) -> Iterator[dict[str, bytes]]:
    """Every kind of secret, each in use: name -> the secret."""
    tokens = {
        name: must(alice("token", "create", "--name", name, "--json")).json()["secret"]
        for name in ("in-use", "revoked")
    }
    must(alice("token", "revoke", "revoked"))
    source = {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}
    sealed = {"name": "API_KEY", "value": VARIABLE, "secret": True}
    template = json.dumps({"name": "sealed", "source": source, "env": [sealed]})
    must(alice("template", "create", "--file", "-", stdin=template))
    must(alice("ws", "setup", "--template", "sealed", "--name", "sealed"))
    must(run("root", "admin", "set-password", "tse-bob", env=service.env, stdin=f"{NEW_PASSWORD}\n"))
    add = ("admin", "registry", "add", "registry.test:5000", "--login", "robot")
    must(run("root", *add, env=service.env, stdin=f"{LOGIN}\n"))
    key = "".join((STATE / "data/tls/key.pem").read_text().split("-----")[2].split())
    yield {
        "password": PASSWORD.strip().encode(),
        "password set by an administrator": NEW_PASSWORD.encode(),
        "token": tokens["in-use"].encode(),
        "revoked token": tokens["revoked"].encode(),
        "cookie of a session": session["cookie"].encode(),
        "header of a session": session["page"].encode(),
        "sealed variable": VARIABLE.encode(),
        "registry login": LOGIN.encode(),
        "signing secret": (STATE / "data/secret.key").read_bytes().strip(),
        "key of TLS": base64.b64decode(key),
    }
    must(run("root", "admin", "registry", "remove", "registry.test:5000", env=service.env))
    must(run("root", "admin", "set-password", "tse-bob", env=service.env, stdin=PASSWORD))
    must(alice("token", "revoke", "in-use"))
    must(alice("ws", "delete", "sealed", "--yes"))
    must(alice("template", "delete", "sealed", "--yes"))


def forms(secret: bytes) -> Iterator[bytes]:
    """How a file could have it: as it is, its core, in base64 at each offset, in hexadecimal."""
    yield secret
    yield secret.hex().encode()
    for offset in range(3):
        whole = base64.b64encode(bytes(offset) + secret)
        yield whole[4 : len(whole) // 4 * 4 - 4]  # the ends depend on what stands beside it
    core = secret.rpartition(b"_")[2]  # a token without its prefix
    if len(core) >= CORE_MIN:
        yield core
    yield secret.partition(b".")[0]  # a cookie without its signature


def test_no_secret_stands_in_a_snapshot_in_the_clear(
    service: Service, secrets: dict[str, bytes], tmp_path: Path
) -> None:
    """Searched are the raw bytes of the snapshot and of both files beside it."""
    folder = tmp_path / "snapshots"
    folder.mkdir(mode=0o700)
    must(run("root", "admin", "backup", "--out", str(folder / "x.db"), env=service.env))
    assert sorted(os.listdir(folder)) == ["x.db", "x.db.host.tar", "x.db.json"]
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert b"tse-alice" in contents["x.db"] and b"API_KEY" in contents["x.db"], "rows are found in this way"
    found = [
        (kind, name)
        for kind, secret in secrets.items()
        for form in forms(secret)
        for name, content in contents.items()
        if form in content or form in content.replace(b"\n", b"")
    ]
    assert not found


def test_with_secrets_they_are_beside_it_and_not_in_it(
    service: Service, secrets: dict[str, bytes], tmp_path: Path
) -> None:
    """`--with-secrets` puts them into the root-only archive: the search above does find what is there."""
    path = tmp_path / "x.db"
    tmp_path.chmod(0o700)
    must(run("root", "admin", "backup", "--out", str(path), "--with-secrets", env=service.env))
    archive = Path(f"{path}.host.tar").read_bytes()
    for kind in ("signing secret", "registry login", "key of TLS"):
        assert any(form in archive.replace(b"\n", b"") for form in forms(secrets[kind])), kind
        assert not any(form in path.read_bytes() for form in forms(secrets[kind])), kind
