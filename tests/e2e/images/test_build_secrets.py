"""Secrets of builds with the installed program: read by a step, and nowhere else, whatever ends the build."""

from __future__ import annotations

import base64
import hashlib
import os
import pwd
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e import operations
from e2e.installation import Call, Outcome, Service, processes_of, run
from e2e.registries import REPOSITORY
from e2e.surroundings import must, new_template, podman
from waiting import until

USER = "tse-kim"
MOUNT = "RUN --mount=type=secret,id=pip"
SLOW = "i=0; while [ $i -lt 600 ]; do echo tick $i; sleep 0.1; i=$((i+1)); done"


@pytest.fixture(scope="module", autouse=True)
def allowed(policy: list[str], fetchers: None) -> None:
    """All the registries that the tests name."""


@pytest.fixture
def secret() -> Iterator[bytes]:
    """The content of ~/pip.conf."""
    account = pwd.getpwnam(USER)
    value = b"index-url = https://kim:" + os.urandom(24).hex().encode() + b"@pypi.example/\n"
    path = Path(account.pw_dir, "pip.conf")
    path.write_bytes(value)
    os.chown(path, account.pw_uid, account.pw_gid)
    yield value
    path.unlink()


@pytest.fixture
def template(service: Service, registry: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A template of which the last step is the test's."""
    lines = (f"FROM {registry}/{REPOSITORY}:1", "ARG WHEN", f"{MOUNT} {request.param}", "")
    source = {"type": "dockerfile", "dockerfile": "\n".join(lines)}
    name = f"secret-{os.urandom(3).hex()}"
    new_template(USER, service.env, name, source)
    yield name
    run(USER, "api", "DELETE", f"/api/templates/{name}/image", env=service.env)
    run(USER, "template", "delete", name, "--yes", env=service.env)


def build(kim: Call, template: str, *more: str) -> Outcome:
    return kim("image", "build", template, "--secret", "id=pip,src=pip.conf", *more)


def kept() -> list[Path]:
    """The files of secrets that the user's agent keeps."""
    folder = Path(f"/run/user/{pwd.getpwnam(USER).pw_uid}/svc/secrets")
    return list(folder.glob("*/*"))


def word_of(secret: bytes) -> bytes:
    """The password in it."""
    return secret.split(b":")[2][:48]


def places_with(service: Service, secret: bytes) -> list[str]:
    """The files of the service and of the user that have the value, in the clear or in base64."""
    account = pwd.getpwnam(USER)
    roots = [Path(service.env["SVC_DB"]).parent, service.log, Path(account.pw_dir), Path("/var/tmp")]
    roots.append(Path(f"/run/user/{account.pw_uid}"))
    found = []
    for root in roots:
        for folder, _, names in os.walk(root) if root.is_dir() else [(root.parent, [], [root.name])]:
            for path in (Path(folder, name) for name in names):
                if path.name != "pip.conf" and path.is_file() and not path.is_symlink():
                    content = path.read_bytes()
                    if word_of(secret) in content or base64.b64encode(secret)[36:84] in content:
                        found.append(str(path))
    return found


def words(pattern: bytes) -> list[str]:
    """The processes of the user with the value among their arguments or variables."""
    found = []
    for one in processes_of(USER):
        for kind in ("cmdline", "environ"):
            try:
                if pattern in Path(f"/proc/{one.pid}/{kind}").read_bytes():
                    found.append(f"{one.pid} {kind}")
            except OSError:
                continue
    return found


@pytest.mark.parametrize("template", ["sha256sum /run/secrets/pip; test ! -w /etc/shadow"], indirect=True)
def test_a_step_reads_it_and_nothing_keeps_it(
    kim: Call, template: str, secret: bytes, service: Service
) -> None:
    done = must(build(kim, template, "--wait"))
    assert hashlib.sha256(secret).hexdigest() in done.err
    until(lambda: not kept(), 30)
    token = word_of(secret)
    assert places_with(service, secret) == []
    image = must(kim("image", "status", template, "--json")).json()["ref"]
    for said in (podman(USER, "history", "--no-trunc", image), podman(USER, "inspect", image)):
        assert token.decode() not in must(said).out
    left = must(podman(USER, "run", "--rm", "--pull=never", image, "sh", "-c", "cat /run/secrets/*; true"))
    assert left.out == ""
    newest = must(kim("image", "builds", "--json")).json()["items"][0]
    assert token.decode() not in operations.log(kim, newest["id"])


@pytest.mark.parametrize("template", [f"cat /run/secrets/pip >/dev/null; {SLOW}"], indirect=True)
@pytest.mark.parametrize("end", ["cancel", "agent", "builder"])
def test_it_is_gone_after_every_end(
    kim: Call, template: str, secret: bytes, service: Service, end: str
) -> None:
    operation = must(build(kim, template, "--build-arg", f"WHEN={end}", "--json")).json()["operation"]["id"]
    until(lambda: "tick 3" in operations.log(kim, operation), 60)
    (path,) = kept()
    assert path.read_bytes() == secret
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (stat.S_IMODE(path.parent.stat().st_mode), path.parent.name) == (0o700, operation)
    assert words(word_of(secret)) == []
    assert places_with(service, secret), "while it is kept, it is found"
    if end != "cancel":  # what is killed would begin again, with the same secrets
        module = {"agent": "svc_helper.agent.__main__", "builder": "svc_helper.agent.images.builder"}[end]
        killed = [one.pid for one in processes_of(USER) if module in one.args]
        assert killed
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
    must(kim("operation", "cancel", operation))
    assert kim("operation", "watch", operation).code == 1
    until(lambda: not kept(), 60)
    until(lambda: places_with(service, secret) == [], 60, 1)


@pytest.mark.parametrize("template", ["exit 3"], indirect=True)
def test_a_failure_and_refusals(kim: Call, template: str, secret: bytes, service: Service) -> None:
    assert build(kim, template, "--wait").code == 1
    until(lambda: not kept(), 30)
    for option, message in (
        ("id=other,src=pip.conf", "the Dockerfile has no RUN --mount=type=secret,id=other"),
        ("id=../x,src=pip.conf", "Use letters"),
        ("id=ca,src=pip.conf", "ca is svc's own"),
    ):
        refused = kim("image", "build", template, "--secret", option)
        assert (refused.code, message in refused.err) == (1, True), refused
    assert kim("image", "build", template, "--secret", "pip").code == 2
    assert kept() == []
