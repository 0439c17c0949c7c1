"""Who sees what: a second user nothing, a third without an account exit 3, root only administers."""

from __future__ import annotations

import json
import os
import pwd
import stat
import subprocess
import time
from collections.abc import Iterator

import pytest
from e2e.installation import PASSWORD, Call, remove_user, run


def test_a_second_user_sees_nothing(bob: Call, workspace: str, record) -> None:
    identity = record(workspace)["id"]
    assert bob("ws", "list", "--json").json()["total"] == 0
    for reference in (workspace, identity):
        for arguments in (("start",), ("stop",), ("logs",), ("delete", "--yes")):
            refused = bob("ws", arguments[0], reference, *arguments[1:])
            assert refused.code == 1
            assert f"no workspace {reference}" in refused.err
        assert bob("ws", "exec", reference, "--", "id").code == 1


def test_the_answer_for_others_ids_and_for_unknown_ids_is_the_same(bob: Call, workspace: str, record) -> None:
    theirs = bob("api", "GET", f"/api/workspaces/{record(workspace)['id']}").json()["error"]
    unknown = bob("api", "GET", "/api/workspaces/ws-zzzzzzzz").json()["error"]
    for body in (theirs, unknown):
        body.pop("request_id")
    text = json.dumps(theirs).replace(str(record(workspace)["id"]), "ws-zzzzzzzz")
    assert json.loads(text) == unknown
    assert unknown["code"] == "not_found"


@pytest.mark.parametrize(
    "arguments", [("whoami",), ("ws", "list"), ("template", "list"), ("api", "GET", "/api/users/me")]
)
def test_without_an_account_the_exit_code_is_3(svc: Call, arguments: tuple[str, ...]) -> None:
    refused = svc("tse-carol", *arguments)
    assert refused.code == 3, refused.err


def test_root_has_no_workspaces_and_no_images(svc: Call, template: str) -> None:
    for arguments in (("image", "list"), ("ws", "create", "--template", template, "--name", "x")):
        refused = svc("root", *arguments)
        assert refused.code == 1, refused.out
        assert svc("root", "api", "GET", "/api/images").json()["error"]["code"] == "root_not_allowed"


def test_an_administrator_may_stop_but_not_enter(svc: Call, workspace: str, record) -> None:
    identity = record(workspace)["id"]
    entered = svc("root", "api", "POST", f"/api/workspaces/{identity}/exec", "--body", '{"command": ["id"]}')
    assert entered.code == 1
    assert entered.json()["error"]["code"] == "owner_only"
    stopped = svc("root", "api", "POST", f"/api/workspaces/{identity}/stop?owner=tse-alice", "--body", "{}")
    assert stopped.code == 0, stopped.out
    assert record(workspace)["status"] == "stopped"
    assert record(workspace)["status_reason"] == "admin_stopped"


@pytest.fixture
def without_ranges(service) -> Iterator[str]:
    """A user with an account but without subordinate ids."""
    name = "tse-dave"
    remove_user(name)
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True)
    run("root", "admin", "create-user", name, env=service.env, stdin=PASSWORD)
    for option in ("--del-subuids", "--del-subgids"):
        subprocess.run(["usermod", option, "1-4294967294", name], check=True)
    yield name
    remove_user(name)


def test_a_user_without_subordinate_ids_is_told_so(svc: Call, without_ranges: str, registry: str) -> None:
    spec = {"name": "base", "source": {"type": "registry", "image_ref": f"{registry}/tests/base:1"}}
    created = svc(without_ranges, "template", "create", "--file", "-", stdin=json.dumps(spec))
    if created.code == 3:  # the account counts as incomplete: as good an answer
        return
    pulled = svc(without_ranges, "image", "pull", "base", "--wait")
    assert pulled.code in (1, 3)
    doctor = svc("root", "admin", "doctor")
    assert "subuid" in pulled.err + doctor.out
    assert without_ranges in doctor.out


def test_an_expired_linux_account_is_refused(svc: Call, service) -> None:
    subprocess.run(["chage", "--expiredate", "1", "tse-bob"], check=True)
    try:
        time.sleep(6)  # an answer of PAM is good for five seconds
        listed = svc("tse-bob", "image", "list")
        printed = svc("tse-bob", "ws", "list")
        assert "disabled" in listed.err + printed.err or "expired" in listed.err + printed.err
    finally:
        subprocess.run(["chage", "--expiredate", "-1", "tse-bob"], check=True)


def test_what_an_expired_account_left_running_is_ended_by_an_administrator(
    svc: Call, workspace: str, record
) -> None:
    identity = record(workspace)["id"]
    subprocess.run(["chage", "--expiredate", "1", "tse-alice"], check=True)
    try:
        time.sleep(6)  # an answer of PAM is good for five seconds
        assert svc("tse-alice", "ws", "stop", workspace).code == 1
        stopped = svc("root", "ws", "stop", identity, "--owner", "tse-alice")
        assert stopped.code == 0, stopped.err
        seen = svc("root", "ws", "get", identity, "--owner", "tse-alice", "--json").json()
        assert (seen["status"], seen["status_reason"]) == ("stopped", "admin_stopped")
        deleted = svc("root", "ws", "delete", "--yes", identity, "--owner", "tse-alice")
        assert deleted.code == 0, deleted.err
    finally:
        subprocess.run(["chage", "--expiredate", "-1", "tse-alice"], check=True)
    time.sleep(6)  # nor is the refusal good for longer
    assert svc("tse-alice", "ws", "list", "--json").code == 0


def test_the_socket_is_roots_and_open_to_all(service) -> None:
    """Commands "authenticate through a root-owned Unix socket"."""
    found = os.stat(service.env["SVC_SOCKET"])
    assert stat.S_ISSOCK(found.st_mode)
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o666)


LIAR = """
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("ready", flush=True)
connection = server.accept()[0]
print("asked", flush=True)
"""


def test_client_commands_refuse_a_socket_that_others_own(service) -> None:
    path = f"/tmp/tse-liar-{os.getpid()}.sock"
    alice = pwd.getpwnam("tse-alice")
    liar = subprocess.Popen(
        ["python3", "-I", "-c", LIAR, path], user=alice.pw_uid, group=alice.pw_gid, stdout=subprocess.PIPE
    )
    try:
        assert liar.stdout is not None
        assert liar.stdout.readline() == b"ready\n"
        refused = run("tse-bob", "whoami", env=service.env | {"SVC_SOCKET": path}, timeout=20)
        assert refused.code == 1
        assert "root" in refused.err
    finally:
        liar.kill()
        liar.communicate()
        os.unlink(path)
