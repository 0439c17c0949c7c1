"""SVC_STORE_DIR on an installation with workspaces: moved by one command, removed with the account."""

from __future__ import annotations

import json
import pwd
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.installation import PASSWORD, Call, Service, remove_user, run
from e2e.surroundings import must, podman, template_of

NAME, UID = "tse-first.last@example.org", 896053708  # as a directory service has them
STORES = Path("/var/tse-stores")


@pytest.fixture
def pia(service: Service, svc: Call) -> Iterator[Call]:
    """A Linux user with an account, of this test alone; the setting goes afterwards."""
    remove_user(NAME)
    subprocess.run(["useradd", "--badname", "--uid", str(UID), "--create-home", NAME], check=True)
    must(svc("root", "admin", "create-user", NAME, stdin=PASSWORD))
    yield lambda *argv, **more: run(NAME, *argv, env=service.env, **more)
    if service.env.pop("SVC_STORE_DIR", None):
        service.stop()
        service.start()
    svc("root", "admin", "delete-user", NAME, "--leave-storage", "--last-administrator", "--yes")
    remove_user(NAME)
    subprocess.run(["rm", "-rf", str(STORES)], check=True)


def findings(svc: Call) -> list[dict[str, str]]:
    """What the doctor says of stores."""
    items = json.loads(svc("root", "admin", "doctor", "--json").out)["items"]
    return [one for one in items if one["code"] == "store_dir"]


def test_a_store_is_moved_and_goes_with_the_account(
    service: Service, svc: Call, pia: Call, registry: str
) -> None:
    """Of an account whose name has a domain, and whose uid is above UID_MAX."""
    assert must(pia("api", "GET", "/api/users/me")).json()["linux_account"]["uid"] == UID
    template = template_of(NAME, registry, service.env, "own")
    must(pia("ws", "setup", "--template", template, "--name", "kept"))
    must(pia("ws", "start", "kept"))
    (own,) = must(svc("root", "ws", "list", "--owner", NAME, "--json")).json()["items"]
    assert own["status"] == "running"
    must(pia("ws", "exec", "kept", "--", "sh", "-c", "echo mine >/installed"))
    refused = svc("root", "admin", "move-store", NAME)
    assert "SVC_STORE_DIR is not set" in refused.err

    service.env["SVC_STORE_DIR"] = f"{STORES}/%u"
    refused = svc("root", "admin", "move-store", NAME)
    assert refused.code == 1 and re.search(
        "^hint: (sudo systemctl stop svc|stop that process first)$", refused.err, re.M
    )
    service.stop()
    refused = svc("root", "admin", "move-store", NAME)
    assert refused.code == 1 and f"{NAME} has running workspaces: kept" in refused.err
    service.start()
    must(pia("ws", "stop", "kept"))
    assert findings(svc)[0]["remedy"] == f"sudo svc admin move-store {NAME}"
    service.stop()
    moved = must(svc("root", "admin", "move-store", NAME))
    assert moved.out == f"the store of {NAME} is in {STORES}/{NAME}\n"
    service.start()

    uid = pwd.getpwnam(NAME).pw_uid
    status = (STORES / NAME).stat()
    assert (status.st_uid, status.st_mode & 0o7777, STORES.stat().st_uid) == (uid, 0o700, 0)
    assert [one["level"] for one in findings(svc)] == ["ok"]
    must(pia("ws", "start", "kept"))
    assert must(pia("ws", "exec", "kept", "--", "cat", "/installed")).out == "mine\n"
    assert "kept" not in podman(NAME, "ps", "--format", "{{.Names}}").out  # the user's own Podman

    must(svc("root", "admin", "delete-user", NAME, "--last-administrator", "--yes"))
    assert not (STORES / NAME).exists()
