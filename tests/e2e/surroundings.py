"""What an installation under test stands in: Linux users, a running server, templates."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from e2e.installation import IMAGE, PASSWORD, PATH, PREFIX, Outcome, Service, command, remove_user, run


def must(outcome: Outcome) -> Outcome:
    """The outcome of a command that has to succeed."""
    assert outcome.code == 0, f"{outcome.out}{outcome.err}"
    return outcome


@contextmanager
def answering(service: Service) -> Iterator[None]:
    """A server that answers, and the new part of its log, which pytest shows of a test that fails."""
    if service.supervisor is None or service.supervisor.poll() is not None:
        service.start()
    size = service.log.stat().st_size
    yield
    with open(service.log, "rb") as log:
        log.seek(size)
        print("--- the server's log meanwhile ---\n" + log.read()[-8000:].decode(errors="replace"))


@contextmanager
def served(
    env: dict[str, str],
    registry: str,
    log: Path,
    accounts: Sequence[str],
    strangers: Sequence[str] = (),
    password: str = PASSWORD,
) -> Iterator[Service]:
    """A running server with these accounts and this registry; `strangers` are only Linux users."""
    places = (Path(env["SVC_STATE_DIR"]), Path(env["SVC_SOCKET"]).parent)
    people = (*accounts, *strangers)
    _clean(people, places)
    for place in places:
        place.mkdir()
        place.chmod(0o755)
    service = Service(env, log)
    try:
        for name in people:
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True)
            # Of a user of this uid before, whom an interrupted run left: accounts are refused with it.
            shutil.rmtree(f"/run/user/{pwd.getpwnam(name).pw_uid}", ignore_errors=True)
        must(run("root", "admin", "migrate", env=env))
        for name in accounts:
            must(run("root", "admin", "create-user", name, env=env, stdin=password))
        service.start()
        allow(env, registry)
        yield service
    finally:
        service.stop()
        _clean(people, places)


def _clean(people: Sequence[str], places: Sequence[Path]) -> None:
    for name in people:
        remove_user(name)
    for place in places:
        if os.path.lexists(place):
            shutil.rmtree(place)


def allow(env: dict[str, str], *registries: str) -> None:
    """Have these registries, without TLS, as the whole policy."""
    rows = [{"host": host, "path_prefix": "", "insecure": True} for host in registries]
    body = json.dumps({"registries": rows})
    must(run("root", "admin", "registry", "set", "-", env=env, stdin=body))


STATEMENT = """
import json, sqlite3, sys
path, statement, values = json.load(sys.stdin)
with sqlite3.connect(path, timeout=10) as database:
    print(json.dumps(database.execute(statement, values).fetchall()))
"""


def in_database(env: dict[str, str], statement: str, *values: object) -> list[list[object]]:
    """The rows of one statement, run on the live database as the account that it belongs to."""
    account = pwd.getpwnam("svc")
    done = subprocess.run(
        [PREFIX / "bin/python3", "-I", "-c", STATEMENT],
        input=json.dumps([env["SVC_DB"], statement, values]),
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
    )
    return list(json.loads(done.stdout))


def make_accounts(env: dict[str, str], passwords: dict[str, str]) -> None:
    """Service accounts for these Linux users, with a password for each."""
    for name, password in passwords.items():
        must(run("root", "admin", "create-user", name, env=env, stdin=password + "\n"))


def template_of(user: str, registry: str, env: dict[str, str], name: str = "base", **spec: object) -> str:
    """The user's new template for the small image; its name."""
    spec |= {"name": name, "source": {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}}
    must(run(user, "template", "create", "--file", "-", env=env, stdin=json.dumps(spec)))
    return name


def new_template(
    user: str, env: dict[str, str], name: str, source: dict[str, object], **spec: object
) -> dict[str, Any]:
    """The record of a new template."""
    text = json.dumps({"name": name, "source": source} | spec)
    created = run(user, "template", "create", "--file", "-", "--json", env=env, stdin=text)
    return dict(must(created).json())


def podman(user: str, *argv: str, stdin: str = "") -> Outcome:
    """What the user's own Podman does, by the user's own hand."""
    runtime = f"/run/user/{pwd.getpwnam(user).pw_uid}"
    env = {"PATH": PATH, "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": runtime}
    return command(user, "podman", *argv, env=env, stdin=stdin)
