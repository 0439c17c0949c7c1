"""`svc admin checkpoint` and `svc admin restore` of a service that was at work: a restore drill."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e.installation import STATE, Call, Outcome, Service, run
from e2e.surroundings import must, podman
from waiting import until


@pytest.fixture
def admin(service: Service, tmp_path: Path) -> Callable[..., Outcome]:
    """admin(*argv): `svc admin` as root, with recovery sets in a directory of the test's own."""
    sets = tmp_path / "sets"
    sets.mkdir(mode=0o700)
    env = service.env | {"SVC_RECOVERY_DIR": str(sets)}
    return lambda *argv: run("root", "admin", *argv, env=env)


def test_a_drill(
    service: Service,
    alice: Call,
    workspace: str,
    template: str,
    record: Callable[[str], dict[str, object]],
    admin: Callable[..., Outcome],
    tmp_path: Path,
) -> None:
    """ "Copies a snapshot onto the live database. The service must be stopped first."

    Accounts, templates and workspaces are known again: what runs is running, what lost its container
    says so and starts anew. What ended since stays ended; the doctor finds the audit whole.
    """
    snapshot = str(tmp_path / "snapshot.db")
    for name in ("drill-kept", "drill-revoked"):
        must(alice("token", "create", "--name", name))
    must(alice("ws", "create", "--template", template, "--name", "lost"))
    must(alice("ws", "start", "lost"))
    must(alice("ws", "stop", "lost"))
    tmp_path.chmod(0o700)
    must(admin("backup", "--out", snapshot, "--with-secrets"))
    must(alice("token", "revoke", "drill-revoked"))
    must(alice("ws", "create", "--template", template, "--name", "later"))
    refused = admin("restore", snapshot, "--yes")
    assert refused.code == 1
    assert "is in use by svc server (pid " in refused.err
    lost = record("lost")["id"]
    with service.stopped():
        must(podman("tse-alice", "rm", "--force", f"svc-{lost}"))
        assert "1 workspace: later" in admin("restore", snapshot).out
        done = must(admin("restore", snapshot, "--yes"))
        assert "1 token revoked" in done.out
        beside = sorted(path.name for path in (STATE / "data").iterdir() if path.name.startswith("svc.db-"))
        assert beside == []
        findings = {one["code"]: one for one in admin("doctor", "--json").json()["items"]}
        assert findings["audit_chain"]["level"] == "ok", findings["audit_chain"]
    until(lambda: record(workspace)["status"] == "running")
    until(lambda: record("lost")["status_reason"] == "container_missing")
    assert alice("ws", "get", "later").code == 1
    assert must(alice("ws", "exec", workspace, "--", "echo", "known")).out == "known\n"
    must(alice("ws", "start", "lost"))
    tokens = {one["name"] for one in must(alice("token", "list", "--json")).json()["items"]}
    assert "drill-kept" in tokens
    assert "drill-revoked" not in tokens
    must(alice("template", "get", template))
    with service.stopped():
        must(admin("checkpoint"))
        note = Path(service.env["SVC_STATE_DIR"]) / "restore-under-way"
        note.write_text(json.dumps({"database": service.env["SVC_DB"]}))
        for command, code in ((("server",), os.EX_CONFIG), (("admin", "list-users"), 1)):
            said = run("root", *command, env=service.env)
            assert said.code == code
            assert "a restore of" in said.err
            assert f"hint: sudo svc admin restore --finish --db {service.env['SVC_DB']}" in said.err
        note.unlink()
        (manifest,) = (tmp_path / "sets").glob("*/manifest.json")
        assert json.loads(manifest.read_text())["why"] == f"svc admin restore {snapshot}"
        must(admin("restore", str(manifest.with_name("svc.db")), "--yes"))
    assert alice("ws", "get", "later").code == 0
    must(alice("token", "revoke", "drill-kept"))
    for name in ("lost", "later"):
        alice("ws", "stop", name)
        must(alice("ws", "delete", name, "--yes"))


def test_what_a_killed_restore_prepared_goes_with_the_next_start(service: Service) -> None:
    left = [STATE / "data" / f"svc.db.restoring{suffix}" for suffix in ("", "-wal")]
    with service.stopped():
        for path in left:
            path.write_bytes(b"a copy of everything")
    assert not any(path.exists() for path in left)


def test_on_a_host_that_has_nothing(service: Service, admin: Callable[..., Outcome], tmp_path: Path) -> None:
    """From the snapshot and the secret alone; what is missing is named with its remedy."""
    tmp_path.chmod(0o700)
    snapshot, data = str(tmp_path / "snapshot.db"), STATE / "data"
    must(admin("backup", "--out", snapshot, "--with-secrets"))
    with service.stopped():
        before = data.rename(data.with_name("data-before"))
        done = must(admin("restore", snapshot, "--yes"))
        assert "There is no database" in done.out
        (line,) = (line for line in done.err.splitlines() if "secret.key is missing" in line)
        assert "no password is right, and sealed variables are unset; sudo tar -xOf " in line
        command = line.partition("; ")[2].replace("sudo ", "")  # which a minimal host has not
        subprocess.run(["/bin/sh", "-c", command], check=True)
        assert (data / "secret.key").read_bytes() == (before / "secret.key").read_bytes()
        (before / "tls").rename(data / "tls")  # of which other tests know the fingerprint
        shutil.rmtree(before)
    assert run("tse-alice", "whoami", env=service.env).code == 0
