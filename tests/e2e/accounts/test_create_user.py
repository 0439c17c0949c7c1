"""`svc admin create-user`: killed at any step and rerun, it completes one account that inherits nothing."""

from __future__ import annotations

import contextlib
import grp
import http.client
import json
import os
import pwd
import signal
import ssl
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from depths import sample
from e2e.installation import PREFIX, Call, Service, below, process, remove_user, run
from e2e.surroundings import in_database, must, template_of
from helper.stage import edit
from uids import highest_uid
from waiting import until

from svc_helper.provision.accounts import STEPS

NAME, SECOND, ABOVE = "tse-kurt", "tse-lena", "tse-moll"
FIRST_PASSWORD, PASSWORD = "nine grey otters at noon\n", "seven quiet herons over mud\n"
STEP_NAMES = [name for name, _ in STEPS]
# The steps that list-users can detect; the enrolment only after all steps.
UNSEEN = {"runtime directory", "file roots and storage driver", "enrolment"}
if not os.path.isdir("/run/systemd/system"):
    UNSEEN.add("lingering")
SEEN = [name for name in STEP_NAMES if name not in UNSEEN]
CUT = Path(__file__).parents[1] / "cut.py"

# The place of the kill, and the missing steps that list-users then prints; None: no row yet.
PLACES: dict[str, list[str] | None] = {
    "before begin": None,
    "in begin": None,
    "after begin": [*SEEN, "enrolment", "password"],
    "before finish": ["password"],
    "in finish": ["password"],
}
for at, step in enumerate(STEP_NAMES):
    PLACES[f"before {step}"] = [*(name for name in SEEN if name in STEP_NAMES[at:]), "enrolment", "password"]
PLACES[f"after {STEP_NAMES[-1]}"] = ["enrolment", "password"]  # the list is written after it


@pytest.fixture(autouse=True)
def nobody_yet(service: Service) -> Iterator[None]:
    """No account of these names in Linux, the database and the enrolment."""
    enrolled = Path(service.env["SVC_STATE_DIR"], "enrolled")
    remove_user(ABOVE)
    for name in (NAME, SECOND):
        remove_user(name)
        in_database(
            service.env,
            "UPDATE users SET name = 'tse.' || id, uid = NULL, provisioning = 'cleanup_required'"
            " WHERE name = ?1 OR name LIKE ?1 || ':%'",
            name,
        )
    others = [line for line in enrolled.read_text().splitlines() if line.split()[0] not in (NAME, SECOND)]
    new = enrolled.with_name("new")
    new.write_text("".join(line + "\n" for line in others))
    new.rename(enrolled)
    in_database(service.env, "DELETE FROM login_failures")
    yield
    for name in (NAME, SECOND):
        remove_user(name)


@contextlib.contextmanager
def started(service: Service, *command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A program run by root with a password on its standard input."""
    process = subprocess.Popen(
        [str(argument) for argument in command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env=service.env,
        start_new_session=True,
    )
    with process:
        assert process.stdin
        process.stdin.write(FIRST_PASSWORD)
        process.stdin.close()
        yield process


def kill_all(pid: int) -> None:
    """Kill a process and its descendants at once, like a power failure."""
    chosen: set[int] = set()
    while more := {one.pid for one in below(pid)} - chosen:  # what is stopped starts nothing more
        for one in more:
            signal_to(one, signal.SIGSTOP)
        chosen |= more
    for one in chosen:
        signal_to(one, signal.SIGKILL)
    until(lambda: not [one for one in chosen if process(one)], 30, 0.01)


def signal_to(pid: int, number: int) -> None:
    """Send a signal to a process that may have exited."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def cut(service: Service, place: str, *flags: str) -> None:
    """Run create-user up to a place and kill all its processes there."""
    python = PREFIX / "bin/python3"
    with started(service, python, "-I", CUT, place, "admin", "create-user", NAME, *flags) as running:
        until(lambda: _stopped(running), 20, 0.01)
        kill_all(running.pid)


def _stopped(running: subprocess.Popen[str]) -> bool:
    assert running.poll() is None, f"it never came there: {running.stdout and running.stdout.read()}"
    return any(one.status["State"].startswith("T") for one in below(running.pid))


def listed(svc: Call, name: str = NAME) -> dict[str, Any] | None:
    """The account's record of list-users."""
    items = must(svc("root", "admin", "list-users", "--json")).json()["items"]
    found = [item for item in items if item["name"] == name]
    assert len(found) < 2
    return found[0] if found else None


def ask(service: Service, method: str, path: str, body: object = None, **headers: str) -> int:
    """The status of one request on the TLS listener."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    listener = http.client.HTTPSConnection(
        "127.0.0.1", int(service.env["SVC_PORT"]), context=context, timeout=20
    )
    with contextlib.closing(listener):
        listener.request(method, path, json.dumps(body), {"Content-Type": "application/json", **headers})
        answer = listener.getresponse()
        answer.read()
        return answer.status


def logs_in(service: Service, name: str, password: str) -> bool:
    """Whether the password opens a session."""
    body = {"username": name, "password": password.rstrip("\n")}
    status = ask(service, "POST", "/api/auth/login", body)
    assert status in (200, 401)
    return status == 200


def lines(path: str, name: str) -> list[list[str]]:
    """The lines of a file in /etc for a name."""
    found = [line.split(":") for line in Path(path).read_text().splitlines()]
    return [line for line in found if line[0] == name]


def assert_whole(service: Service, svc: Call, name: str, password: str) -> None:
    """One row, Linux account, home, pair of ranges and enrolment line; the account is usable."""
    account = pwd.getpwnam(name)
    rows = in_database(service.env, "SELECT uid, provisioning FROM users WHERE name = ?", name)
    assert rows == [[account.pw_uid, "ready"]]
    assert [entry for entry in pwd.getpwall() if entry.pw_uid == account.pw_uid] == [account]
    assert [entry.gr_name for entry in grp.getgrall() if entry.gr_gid == account.pw_gid] == [name]
    for path in ("passwd", "shadow", "group", "gshadow"):
        assert len(lines(f"/etc/{path}", name)) == 1, path
    for path in ("/etc/subuid", "/etc/subgid"):
        (own,) = lines(path, name)
        others = [line.split(":") for line in Path(path).read_text().splitlines() if line.split(":") != own]
        assert own[2] == "65536"
        assert not [line for line in others if abs(int(line[1]) - int(own[1])) < 65536], path
    enrolled = Path(service.env["SVC_STATE_DIR"], "enrolled").read_text().splitlines()
    same = [line for line in enrolled if line.startswith(name + " ") or f" {account.pw_uid} " in line]
    assert same == [f"{name} {account.pw_uid} user"]
    for path in ("", "/work", "/.config/containers/storage.conf"):
        assert os.stat(account.pw_dir + path).st_uid == account.pw_uid, path
    assert not os.path.lexists(f"{os.path.dirname(account.pw_dir)}/.svc-{name}")
    item = listed(svc, name)
    assert item is not None
    assert (item["status"], item["note"], item["left_to_do"]) == ("READY", "", [])
    assert svc(name, "whoami").code == 0
    assert logs_in(service, name, password)


@pytest.mark.parametrize("place", sample([*PLACES], 4, "the helper suite kills the same steps"))
def test_a_run_that_was_killed_is_finished_by_the_next(service: Service, svc: Call, place: str) -> None:
    cut(service, place)
    item = listed(svc)
    if PLACES[place] is None:
        assert item is None
    else:
        assert item is not None
        assert (item["status"], item["uid"]) == ("PROVISIONING_INCOMPLETE", None)
        assert item["left_to_do"] == PLACES[place]
        assert item["next_command"] == f"sudo svc admin create-user {NAME} --db {service.env['SVC_DB']}"
    if os.path.isdir(f"/home/{NAME}"):
        said = svc(NAME, "whoami")
        assert said.code == 3
        assert item is None or "is not complete" in said.err  # "or its account setup is incomplete"
    must(svc("root", "admin", "create-user", NAME, stdin=PASSWORD))
    assert lines("/etc/shadow", NAME)[0][1].startswith("!")
    assert_whole(service, svc, NAME, PASSWORD)


def test_a_run_that_was_killed_after_its_end_has_done_all(service: Service, svc: Call) -> None:
    cut(service, "after finish")
    again = must(svc("root", "admin", "create-user", NAME, stdin=PASSWORD))
    assert "was ready before" in again.out
    assert f"sudo svc admin set-password {NAME}" in again.err
    assert_whole(service, svc, NAME, FIRST_PASSWORD)


@pytest.mark.depth("merge", "a loop of kills")
def test_killed_again_and_again_at_any_moment(service: Service, svc: Call) -> None:
    """Each run gets a little further than the one before, also into useradd and a commit of the database."""
    for turn in count(1):
        with started(service, PREFIX / "bin/svc", "admin", "create-user", NAME) as running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                if running.wait(turn * 0.07) == 0:
                    break
            kill_all(running.pid)
        assert turn < 100
    assert_whole(service, svc, NAME, FIRST_PASSWORD)


def test_a_linux_account_is_adopted_as_it_is(service: Service, svc: Call) -> None:
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", NAME], check=True)
    subprocess.run(["chpasswd"], input=f"{NAME}:its own linux password", text=True, check=True)
    before = (pwd.getpwnam(NAME), lines("/etc/shadow", NAME))
    cut(service, "before enrolment")
    must(svc("root", "admin", "create-user", NAME, stdin=PASSWORD))
    assert (pwd.getpwnam(NAME), lines("/etc/shadow", NAME)) == before
    assert_whole(service, svc, NAME, PASSWORD)


@pytest.fixture
def toor() -> Iterator[str]:
    """Another name of uid 0."""
    name = "tse-toor"
    edit("passwd", lambda _: True, f"{name}:x:0:0::/nonexistent:/bin/false")
    yield name
    edit("passwd", lambda line: not line.startswith(f"{name}:"))


def test_system_accounts_and_other_names_of_root_are_no_users(service: Service, svc: Call, toor: str) -> None:
    enrolled = Path(service.env["SVC_STATE_DIR"], "enrolled")
    before = enrolled.read_text()
    for name in ("bin", "nobody", "svc", toor):
        refused = svc("root", "admin", "create-user", name, stdin=PASSWORD)
        assert refused.code == 1
        assert f"{name} is a system account" in refused.err
        assert listed(svc, name) is None
    assert enrolled.read_text() == before


@pytest.fixture
def owner(service: Service, svc: Call, registry: str) -> Iterator[dict[str, Any]]:
    """An account with a template, a token and a session; its uid, another that is free, and the token."""
    must(svc("root", "admin", "create-user", NAME, "--superuser", stdin=PASSWORD))
    template_of(NAME, registry, service.env)
    token = must(svc(NAME, "token", "create", "--name", "laptop")).out.strip()
    assert logs_in(service, NAME, PASSWORD)
    with highest_uid(SECOND) as another, highest_uid(ABOVE):
        remove_user(SECOND)
        yield {"uid": pwd.getpwnam(NAME).pw_uid, "another": another, "token": token}


def assert_inherits_nothing(service: Service, svc: Call, owner: dict[str, Any], name: str) -> None:
    """The new account has nothing of the former one's, and the former one is closed and keeps it."""
    assert svc(name, "template", "list", "--json").json()["total"] == 0
    assert svc(name, "token", "list", "--json").json()["total"] == 0
    audit = must(svc(name, "api", "GET", "/api/audit")).json()
    assert not [row for row in audit["items"] if row["action"] in ("template.create", "token.create")]
    assert must(svc(name, "api", "GET", "/api/users/me")).json()["superuser"] is False
    former = f"{NAME}:{owner['uid']}"
    kept = in_database(
        service.env,
        "SELECT u.uid, u.disabled, u.password_hash, t.end_reason,"
        " (SELECT count(*) FROM sessions s WHERE s.user_id = u.id)"
        " FROM tokens t JOIN users u ON u.id = t.user_id WHERE u.name = ?",
        former,
    )
    assert kept == [[None, 1, None, "revoked", 0]]
    item = listed(svc, former)
    assert item is not None
    assert (item["status"], item["superuser"]) == ("PROVISIONING_CLEANUP_REQUIRED", False)
    assert item["note"].endswith("was removed; on record: 1 template")
    assert ask(service, "GET", "/api/workspaces", Authorization=f"Bearer {owner['token']}") == 401
    assert not logs_in(service, former, PASSWORD)


def test_a_uid_that_is_given_again_inherits_nothing(
    service: Service, svc: Call, owner: dict[str, Any]
) -> None:
    remove_user(NAME)
    subprocess.run(["useradd", "--create-home", "--uid", str(owner["uid"]), SECOND], check=True)
    refused = svc(SECOND, "whoami")
    assert (refused.code, f"sudo svc admin create-user {SECOND}" in refused.err) == (3, True)
    created = must(svc("root", "admin", "create-user", SECOND, stdin=FIRST_PASSWORD))
    assert f"is now retired as {NAME}:{owner['uid']}; {SECOND} inherits nothing from it" in created.err
    assert_whole(service, svc, SECOND, FIRST_PASSWORD)
    assert_inherits_nothing(service, svc, owner, SECOND)


@pytest.mark.parametrize("uid", ["another", "the same"])
def test_a_name_that_comes_back_inherits_nothing(
    service: Service, svc: Call, owner: dict[str, Any], uid: str
) -> None:
    remove_user(NAME)
    if uid == "another":
        subprocess.run(["useradd", "--create-home", "--uid", str(owner["another"]), NAME], check=True)
        assert svc(NAME, "whoami").code == 3
    cut(service, "after home directory")
    must(svc("root", "admin", "create-user", NAME, stdin=FIRST_PASSWORD))
    assert_whole(service, svc, NAME, FIRST_PASSWORD)
    assert_inherits_nothing(service, svc, owner, NAME)


def refusal(service: Service, **settings: str) -> list[str]:
    """What a failing create-user prints, line by line; which is nothing but the message and the hint."""
    said = run("root", "admin", "create-user", NAME, env=service.env | settings, stdin=FIRST_PASSWORD)
    assert (said.code, said.out) == (1, ""), said
    return said.err.splitlines()


def test_a_failure_is_its_message_and_the_way_on(service: Service, svc: Call) -> None:
    """Nothing else is on standard error: no line of a log, whichever step fails."""
    again = f"hint: fix that, then run: sudo svc admin create-user {NAME} --db {service.env['SVC_DB']}"
    assert refusal(service, SVC_STATE_DIR="/nowhere") == [
        "svc: enrolment list: /nowhere/enrolled.lock: No such file or directory", again
    ]  # fmt: skip
    subprocess.run(["groupadd", "--system", NAME], check=True)
    try:
        (group, way) = refusal(service)
    finally:
        subprocess.run(["groupdel", NAME], check=True)
    assert (f"groupdel {NAME}" in group, way) == (True, again)
    home = Path("/home", NAME)
    home.mkdir()  # root's, as a restored backup may be
    try:
        assert refusal(service) == [
            f"svc: file roots and storage driver: {NAME} cannot write {home} or a file root:"
            f" {home}/work: Permission denied; check its owner: ls -ld {home}",
            again,
        ]
    finally:
        home.rmdir()
    must(svc("root", "admin", "create-user", NAME, stdin=PASSWORD))
    assert_whole(service, svc, NAME, PASSWORD)
