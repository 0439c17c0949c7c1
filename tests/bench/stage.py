"""The stage of the benchmark: a server of its own, a registry, one user with one workspace."""

from __future__ import annotations

import os
import pwd
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from e2e.installation import IMAGE, Service, environment, run
from e2e.registries import REPOSITORY, Shelf, registry_in
from e2e.surroundings import must, new_template, served, template_of
from ports import free_port

USER, NEIGHBOUR = "tsq-bench", "tsq-neighbour"
LAYER_BYTES = 64 << 20
STATE, RUN = Path("/var/lib/svc-bench"), Path("/run/svc-bench")
__all__ = ["IMAGE", "NEIGHBOUR", "USER", "Stage", "stage"]


class Stage(NamedTuple):
    """What the benchmark runs on."""

    service: Service
    env: dict[str, str]
    registry: str
    shelf: Shelf

    def image(self) -> str:
        """A reference that a template `big` of the user's has: an image with a layer of LAYER_BYTES."""
        self.shelf.put("big", {"big": os.urandom(LAYER_BYTES)})
        reference = f"{self.registry}/{REPOSITORY}:big"
        new_template(USER, self.env, "big", {"type": "registry", "image_ref": reference})
        return reference

    def recipe(self) -> tuple[str, Path]:
        """A Dockerfile of three steps: the image_ref of the template `recipe` for it, and its file."""
        text = f"FROM {self.registry}/{IMAGE}\nRUN echo one > /one\nRUN echo two > /two\n"
        created = new_template(USER, self.env, "recipe", {"type": "dockerfile", "dockerfile": text})
        file = Path(pwd.getpwnam(USER).pw_dir, "recipe", "Dockerfile")
        file.parent.mkdir(mode=0o755)
        file.write_text(text)
        return str(created["source"]["image_ref"]), file

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


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Everything made and running, with the workspace `bench` created; taken away afterwards."""
    env = environment(free_port(), STATE, RUN)
    with (
        registry_in(folder) as registry,
        served(env, registry, folder / "server.log", accounts=[USER, NEIGHBOUR]) as service,
    ):
        template = template_of(USER, registry, env)
        must(run(USER, "ws", "setup", "--template", template, "--name", "bench", env=env))
        yield Stage(service, env, registry, Shelf(registry, folder))
