"""The stage of the benchmark: a server of its own, a registry, one user with one workspace."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from e2e.installation import (
    IMAGE,
    PASSWORD,
    ROOT,
    Outcome,
    Service,
    environment,
    free_port,
    remove_user,
    run,
    until,
)

USER = "tsq-bench"
STATE, RUN = Path("/var/lib/svc-bench"), Path("/run/svc-bench")
__all__ = ["IMAGE", "USER", "Stage", "stage"]


class Stage(NamedTuple):
    """What the benchmark runs on."""

    service: Service
    env: dict[str, str]
    registry: str

    def fill(self, count: int) -> None:
        """Have at least so many stopped workspaces of the user in the database."""
        database = self.env["SVC_DB"]
        owner = pwd.getpwnam("svc")
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.setgid(owner.pw_gid)
                os.setuid(owner.pw_uid)
                _fill(database, count)
                code = 0
            finally:
                os._exit(code)
        if os.waitpid(pid, 0)[1]:
            raise RuntimeError("the rows could not be written")


def _fill(database: str, count: int) -> None:
    with sqlite3.connect(database, timeout=10) as connection:
        owner, template = connection.execute(
            "SELECT u.id, t.id FROM users u, templates t WHERE u.name = ?", (USER,)
        ).fetchone()
        have = connection.execute("SELECT count(*) FROM workspaces WHERE owner_id = ?", (owner,)).fetchone()[
            0
        ]
        connection.executemany(
            "INSERT INTO workspaces (id, owner_id, name, template_id, template_revision, image_ref, status,"
            " status_since, created_at, updated_at) VALUES (?, ?, ?, ?, 1, 'r.example/a:1', 'stopped',"
            " '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z')",
            [(f"ws-{number:08x}", owner, f"row-{number}", template) for number in range(have, count)],
        )


def _must(outcome: Outcome) -> None:
    if outcome.code:
        raise RuntimeError(outcome.out + outcome.err)


@contextmanager
def _registry(folder: Path) -> Iterator[str]:
    address = f"127.0.0.1:{free_port()}"
    config = folder / "registry.yml"
    config.write_text(
        f"version: 0.1\nlog: {{level: error}}\n"
        f"storage: {{filesystem: {{rootdirectory: {folder}/registry}}}}\nhttp: {{addr: '{address}'}}\n"
    )
    with open(folder / "registry.log", "wb") as log:
        server = subprocess.Popen(["docker-registry", "serve", config], stdout=log, stderr=log)
    try:
        until(lambda: _answers(f"http://{address}/v2/"))
        subprocess.run(
            [ROOT / "packaging/quickstart.d/base-image", address, IMAGE], check=True, capture_output=True
        )
        yield address
    finally:
        server.terminate()
        server.wait(10)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except (OSError, urllib.error.URLError):
        return False


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Everything made and running, with the workspace `bench` created; taken away afterwards."""
    env = environment(free_port(), STATE, RUN)
    service = Service(env, folder / "server.log")
    with _registry(folder) as registry:
        _clean()
        STATE.mkdir(mode=0o755)
        RUN.mkdir(mode=0o755)
        try:
            _must(run("root", "admin", "migrate", env=env))
            _must(run("root", "admin", "create-user", USER, env=env, stdin=PASSWORD))
            service.start()
            body = json.dumps({"registries": [{"host": registry, "path_prefix": "", "insecure": True}]})
            _must(run("root", "api", "PUT", "/api/admin/registries", "--body", body, env=env))
            spec = json.dumps(
                {"name": "base", "source": {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}}
            )
            _must(run(USER, "template", "create", "--file", "-", env=env, stdin=spec))
            _must(run(USER, "ws", "setup", "--template", "base", "--name", "bench", env=env))
            yield Stage(service, env, registry)
        finally:
            service.stop()
            _clean()


def _clean() -> None:
    remove_user(USER)
    shutil.rmtree(STATE, ignore_errors=True)
    shutil.rmtree(RUN, ignore_errors=True)
