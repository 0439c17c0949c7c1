"""What an installation under test stands in: a registry, Linux users, a running server."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from e2e.installation import (
    IMAGE,
    PASSWORD,
    PREFIX,
    ROOT,
    Outcome,
    Service,
    free_port,
    remove_user,
    run,
    until,
)


def must(outcome: Outcome) -> Outcome:
    """The outcome of a command that has to succeed."""
    assert outcome.code == 0, f"{outcome.out}{outcome.err}"
    return outcome


@contextmanager
def registry_in(folder: Path) -> Iterator[str]:
    """A real registry on this host with one small image, its data in the folder; its address."""
    address = f"127.0.0.1:{free_port()}"
    config = folder / "registry.yml"
    config.write_text(
        f"version: 0.1\nlog: {{level: error}}\n"
        f"storage: {{filesystem: {{rootdirectory: {folder}/registry}}}}\nhttp: {{addr: '{address}'}}\n"
    )
    with open(folder / "registry.log", "wb") as log:
        server = subprocess.Popen(["docker-registry", "serve", config], stdout=log, stderr=log)
    try:
        until(lambda: _answers(f"http://{address}/v2/"), 10)
        program = ROOT / "packaging/quickstart.d/base-image"
        subprocess.run([program, address, IMAGE], check=True, capture_output=True)
        yield address
    finally:
        server.terminate()
        server.wait(10)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except OSError:
        return False


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
        place.mkdir(mode=0o755)
    service = Service(env, log)
    try:
        for name in people:
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True)
        must(run("root", "admin", "migrate", env=env))
        for name in accounts:
            must(run("root", "admin", "create-user", name, env=env, stdin=password))
        service.start()
        body = json.dumps({"registries": [{"host": registry, "path_prefix": "", "insecure": True}]})
        must(run("root", "api", "PUT", "/api/admin/registries", "--body", body, env=env))
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


def template_of(user: str, registry: str, env: dict[str, str], name: str = "base") -> str:
    """The user's new template for the small image; its name."""
    spec = {"name": name, "source": {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}}
    must(run(user, "template", "create", "--file", "-", env=env, stdin=json.dumps(spec)))
    return name
