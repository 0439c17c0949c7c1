"""Accounts, quotas and registries as an administrator changes them; nobody writes a raw API call for it."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e import terminal
from e2e.conftest import LOGINS
from e2e.installation import (
    IMAGE,
    PASSWORD,
    Call,
    Outcome,
    Service,
    command,
    processes_of,
    remove_runtime_directory,
    remove_user,
    run,
)
from e2e.surroundings import in_database, must, podman, template_of
from waiting import until

NAME = "tse-pia"
USERS_OWN = ("sessions", "tokens", "login_places", "disk_usage")  # by user_id, not owner_id
TABLES = ("workspaces", "templates", "images", "operations", *USERS_OWN)


@pytest.fixture
def admin(svc: Call) -> Call:
    """admin(*argv) -> Outcome of `svc admin`."""
    return lambda *argv, **more: svc("root", "admin", *argv, **more)


@pytest.fixture
def pia(service: Service, admin: Call) -> Iterator[Call]:
    """A Linux user with an account, of this test alone."""
    must(admin("create-user", NAME, stdin=PASSWORD))
    yield lambda *argv, **more: run(NAME, *argv, env=service.env, **more)
    admin("delete-user", NAME, "--leave-storage", "--last-administrator", "--yes")
    remove_user(NAME)


def test_the_disks_of_users_are_measured_by_their_agents(admin: Call, pia: Call) -> None:
    """ "A per-user disk overview for administrators": by the command, with the service at work."""
    must(pia("fs", "upload", "-", "work/figures", stdin="x" * 2_000_000))
    must(admin("disk", "--measure", NAME))
    [found] = json.loads(must(admin("disk", NAME, "--json")).out)["items"]
    assert 2_000_000 <= found["files_bytes"] < 3_000_000
    assert (found["complete"], found["error"], found["waiting"]) == (True, None, False)
    assert found["images_bytes"] == 0 < found["total_bytes"] == found["files_bytes"]
    overview = pia("api", "GET", "/api/admin/disk")
    assert (overview.code, "only an administrator" in overview.err) == (1, True)


def findings(admin: Call, about: str = NAME) -> list[dict[str, str]]:
    """What the doctor says of this account, whatever it says of this host."""
    return [found for found in json.loads(admin("doctor", "--json").out)["items"] if about in str(found)]


def said(outcome: Outcome) -> tuple[int, str]:
    return outcome.code, outcome.err


def test_an_account_is_edited(service: Service, admin: Call, pia: Call) -> None:
    """ "`svc admin edit-user NAME [--disable|--enable|--superuser|--no-superuser|--quota Q|...]`"."""
    must(pia("token", "create", "--name", "ci"))
    edited = must(admin("edit-user", NAME, "--disable", "--display-name", "Pia O'Neill"))
    assert edited.out == f'{NAME} is disabled\n{NAME} has the display name "Pia O\'Neill"\n'
    assert edited.err == "svc: 1 token ended\n"
    refused = pia("whoami")
    assert said(refused)[0] == 1
    assert refused.err.endswith(f"hint: sudo svc admin edit-user {NAME} --enable\n")
    assert must(admin("edit-user", NAME, "--enable")).out == f"{NAME} is enabled\n"
    assert must(pia("whoami", "--json")).json()["display_name"] == "Pia O'Neill"

    must(admin("quota", "set", "lab", "--gpus", "2", "--memory", "1g"))
    lab = must(admin("quota", "set", "lab", "--gpus", "unlimited", "--cpu", "1.5"))
    assert "gpus unlimited, cpu 1.5, memory 1.0 GiB" in lab.out
    assert must(admin("edit-user", NAME, "--quota", "lab")).out == f"{NAME} has the quota lab\n"
    listed = {row["name"]: row for row in must(admin("quota", "list", "--json")).json()["items"]}
    assert (listed["lab"]["users"], listed["lab"]["max_memory_bytes"]) == (1, 1 << 30)
    assert must(pia("ws", "capacity", "--json")).json()["quota"]["name"] == "lab"
    used = admin("quota", "delete", "lab", "--yes")
    named = f"--db {service.env['SVC_DB']}"  # no settings file has it
    assert said(used)[0] == 1
    assert said(used)[1] == (
        f"svc: the quota lab is in use by {NAME}\n"
        f"hint: sudo svc admin edit-user NAME --quota default {named}\n"
    )
    unknown = admin("edit-user", NAME, "--quota", "none")
    assert said(unknown) == (1, f"svc: there is no quota none\nhint: sudo svc admin quota list {named}\n")
    must(admin("edit-user", NAME, "--quota", "default"))
    assert must(admin("quota", "delete", "lab", "--yes")).out == "the quota lab is deleted\n"

    assert must(admin("edit-user", NAME, "--superuser")).out == f"{NAME} is a superuser\n"
    must(pia("api", "GET", "/api/users"))
    change = json.dumps({"superuser": False})
    asked = pia("api", "PATCH", f"/api/users/{NAME}", "--body", change)
    assert asked.json()["error"]["hint"] == f"sudo svc admin edit-user {NAME} --no-superuser"
    for option in ("--disable", "--no-superuser"):
        last = admin("edit-user", NAME, option)
        assert said(last)[0] == 1 and "is the last administrator besides root" in last.err
        assert last.err.endswith(
            f"hint: sudo svc admin edit-user {NAME} {option} --last-administrator {named}\n"
        )
    assert admin("delete-user", NAME, "--yes").code == 1
    must(admin("edit-user", NAME, "--no-superuser", "--last-administrator"))
    assert pia("api", "GET", "/api/users").code == 1
    for wrong in ([], ["--enable", "--disable"]):
        assert admin("edit-user", NAME, *wrong).code == 2
    assert said(admin("edit-user", "root", "--disable"))[0] == 1


def test_registries_are_added_and_removed(admin: Call, alice: Call, registry: str) -> None:
    """ "An allowlist of registries exists, set by the administrator"."""
    before = must(admin("registry", "list", "--json")).json()["items"]
    assert [entry["host"] for entry in before] == [registry]
    assert must(admin("registry", "add", "quay.io/team/")).out == "images of quay.io/team are allowed\n"
    must(admin("registry", "add", "quay.io/team", "--insecure"))
    rows = [line.split("\t") for line in must(alice("image", "allowlist")).out.splitlines()]
    assert ["quay.io", "team", "true"] in rows and len(rows) == len(before) + 1
    missing = admin("registry", "remove", "quay.io")
    assert said(missing) == (
        1,
        "svc: quay.io is not on the list; of this host: quay.io/team\nhint: sudo svc admin registry list\n",
    )
    must(admin("registry", "remove", "quay.io/team"))
    assert must(admin("registry", "list", "--json")).json()["items"] == before
    assert admin("registry", "add", "https://quay.io").code == 1
    asked = admin("registry", "set", "-", stdin="[]")
    assert asked.code == 1 and "no JSON object" in asked.err


def test_a_login_of_the_host_for_a_private_registry(
    service: Service, admin: Call, pia: Call, closed_registry: str
) -> None:
    """ "(with login for private registries)": stored where only root and its users read it."""
    state = Path(service.env["SVC_STATE_DIR"])
    source = {"type": "registry", "image_ref": f"{closed_registry}/{IMAGE}"}
    must(pia("template", "create", "--file", "-", stdin=json.dumps({"name": "closed", "source": source})))
    add = ("registry", "add", closed_registry, "--insecure")
    try:
        must(admin(*add))
        refused = pia("image", "pull", "closed", "--wait")
        assert refused.code == 1 and "refuses access" in refused.err
        assert admin(*add, "--login", "kim", stdin="").code == 1
        added = must(admin(*add, "--login", "kim", stdin=LOGINS["kim"] + "\n"))
        assert added.out.endswith(f"users pull from {closed_registry} as kim\n")
        must(pia("image", "pull", "closed", "--wait"))
        [row] = [row for row in must(admin("registry", "list")).out.splitlines() if closed_registry in row]
        assert row.split("\t") == [closed_registry, "", "true", "kim"]
        copy = state / "registry-logins" / NAME
        assert LOGINS["kim"] not in copy.read_text() and copy.stat().st_mode & 0o777 == 0o400
        for path in (copy, state / "registry-logins.json"):
            assert path.stat().st_uid in (0, pwd.getpwnam(NAME).pw_uid)
            assert path.stat().st_mode & 0o177 == 0
            assert command("tse-alice", "cat", str(path), env=service.env).code != 0
        assert findings(admin, "registry-logins") == []
        secrets = (LOGINS["kim"], json.loads(copy.read_text())["auths"][closed_registry]["auth"])
        kept = [
            service.log.read_text(),
            *(str(row) for row in in_database(service.env, "SELECT * FROM audit")),
        ]
        assert not [text for text in kept for secret in secrets if secret in text]
        logins = state / "registry-logins.json"
        logins.chmod(0o644)  # others could read it: the helper refuses to change it
        halfway = admin("registry", "remove", closed_registry)
        assert halfway.code == 1 and f"but the login for {closed_registry} stays" in halfway.err
        logins.chmod(0o600)
        must(admin("registry", "remove", closed_registry))  # the same command completes it
    finally:
        admin("registry", "remove", closed_registry)
    assert not copy.exists() and "kim" not in (state / "registry-logins.json").read_text()


def test_an_account_is_deleted_while_its_linux_account_is_there(
    service: Service, admin: Call, pia: Call, svc: Call, registry: str
) -> None:
    """ "`svc admin delete-user NAME --yes` (says before what goes and what stays)"."""
    template = template_of(NAME, registry, service.env, "own")
    must(pia("ws", "setup", "--template", template, "--name", "last"))
    must(pia("ws", "start", "last"))
    image = f"{registry}/{IMAGE}"  # a workspace whose image has a VOLUME
    must(podman(NAME, "create", "--pull=never", "--volume=/data", "--label=svc.workspace=ws-1", image))
    must(pia("fs", "upload", "-", "work/kept", stdin="x"))
    must(pia("token", "create", "--name", "ci"))
    [[old_id]] = in_database(service.env, "SELECT id FROM users WHERE name = ?", NAME)
    home = Path(f"~{NAME}").expanduser()

    asked, named = admin("delete-user", NAME), f"--db {service.env['SVC_DB']}"
    assert asked.code == 1 and f"hint: sudo svc admin delete-user {NAME} {named} --yes\n" in asked.err
    for line in ("1 workspace (1 running), with the containers", "1 image", "1 private template", "1 token"):
        assert f"  {line}" in asked.out
    assert f"the Linux account {NAME} with {home}" in asked.out
    code, screen = terminal.typed("root", ["admin", "delete-user", NAME], service.env, "[y/N]", b"n\n")
    assert code == 1 and screen.splitlines()[-1] == "svc: not confirmed; nothing was done"
    assert must(pia("ws", "get", "last", "--json")).json()["status"] == "running"

    storage = home / ".config/containers/storage.conf"
    valid = storage.read_text()
    storage.write_text("no TOML")  # Podman can remove nothing
    failed = admin("delete-user", NAME, "--yes")
    assert failed.code == 1 and f"containers of {NAME} could not be removed" in failed.err
    again = f"sudo svc admin delete-user {NAME}"
    assert failed.err.endswith(f"hint: fix that, or add --leave-storage, then run: {again} --yes {named}\n")
    assert [found["remedy"] for found in findings(admin)] == [f"{again} {named}"]
    assert "is being deleted" in pia("whoami").err
    storage.write_text(valid)

    gone = must(admin("delete-user", NAME, "--yes"))
    assert gone.out.splitlines()[-1] == f"the account {NAME} is deleted"
    assert gone.err.endswith(f"sudo userdel --remove {NAME}\n")
    refused = pia("whoami")
    assert refused.code == 3, refused.err
    for table in TABLES:
        column = "user_id" if table in USERS_OWN else "owner_id"
        found = in_database(service.env, f"SELECT count(*) FROM {table} WHERE {column} = ?", old_id)
        assert found == [[0]], table
    assert findings(admin) == []
    until(lambda: not processes_of(NAME), 30)  # so that userdel can remove it
    assert (home / "work/kept").read_text() == "x"
    left = podman(NAME, "ps", "--all", "--quiet").out + podman(NAME, "images", "--quiet").out
    left += podman(NAME, "volume", "ls", "--quiet").out
    assert left == ""
    audit = must(svc("root", "api", "GET", "/api/admin/audit?limit=50")).json()["items"]
    assert {"admin.delete_user", "token.create"} <= {
        row["action"] for row in audit if NAME in (row["user"], row["target"])
    }

    must(admin("create-user", NAME, stdin=PASSWORD))
    assert must(pia("ws", "list", "--json")).json()["items"] == []
    assert must(pia("token", "list", "--json")).json()["items"] == []
    audit = must(pia("api", "GET", "/api/audit")).json()["items"]
    assert {row["action"] for row in audit} <= {"admin.create_user"}  # of the new account


def test_an_account_is_deleted_after_its_linux_account(
    service: Service, admin: Call, pia: Call, registry: str
) -> None:
    """ "after disabling an account and `userdel`": the doctor names the way out, and is clean after it."""
    template_of(NAME, registry, service.env, "own")
    must(admin("edit-user", NAME, "--disable"))
    home, uid = Path(f"~{NAME}").expanduser(), pwd.getpwnam(NAME).pw_uid
    with service.stopped():
        subprocess.run(["pkill", "-KILL", "--uid", NAME], check=False)
        until(lambda: not processes_of(NAME))
        subprocess.run(["userdel", NAME], check=True, capture_output=True)
        try:
            before = findings(admin)
            remedy = f"sudo svc admin delete-user {NAME} --db {service.env['SVC_DB']}"
            assert {found["remedy"] for found in before} == {remedy}
            gone = must(admin("delete-user", NAME, "--yes"))
            assert f"the files of the former Linux account {NAME}: {home}\n" in gone.out
            assert "sudo find / -xdev -nouser" in gone.err
        finally:
            subprocess.run(["rm", "-rf", home], check=True)
            remove_runtime_directory(uid)
        assert findings(admin) == []
        assert NAME not in must(admin("list-users")).out
    enrolled = Path(service.env["SVC_STATE_DIR"], "enrolled").read_text()
    assert NAME not in enrolled


def test_an_account_whose_processes_are_stopped_is_deleted(
    service: Service, admin: Call, pia: Call, registry: str
) -> None:
    """The agent, Podman with its locks, conmon: under SIGSTOP they take no TERM, and end no container."""
    template = template_of(NAME, registry, service.env, "own")
    must(pia("ws", "setup", "--template", template, "--name", "last"))
    must(pia("ws", "start", "last"))
    for one in processes_of(NAME):
        os.kill(one.pid, signal.SIGSTOP)
    began = time.monotonic()
    must(admin("delete-user", NAME, "--last-administrator", "--yes"))
    assert time.monotonic() - began < 60
    until(lambda: not processes_of(NAME), 30)
    assert podman(NAME, "ps", "--all", "--quiet").out == ""
