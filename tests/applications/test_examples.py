"""docs/examples.md, word for word: each application is started by its example and reached by its own client.

code-server and RStudio can be had neither from Debian nor from PyPI: of their definitions there are only
the tests in tests/unit/cli/template/test_examples.py.
"""

from __future__ import annotations

import json
import pwd
import re
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from applications.conftest import USER
from e2e.guides.far_browser import write
from e2e.installation import ROOT, Outcome, Service, run, until
from e2e.pages import Block, blocks, play
from e2e.surroundings import must

pytestmark = pytest.mark.timeout(1200)
SECTIONS = ("JupyterLab", "sshd", "PostgreSQL", "TensorBoard")


def page(name: str) -> list[Block]:
    """The blocks of a page of the documentation."""
    return blocks(ROOT / "docs" / name)


class Reader:
    """A user who types the commands of one section of the page."""

    def __init__(self, service: Service, base: str, workspace: str, ready: str) -> None:
        self.env, self.base, self.workspace, self.ready = service.env, base, workspace, ready

    @property
    def port(self) -> int:
        """The number of the workspace's port on the host."""
        (port,) = must(self.svc("ws", "ports", self.workspace, "--json")).json()["items"]
        return int(port["host_port"])

    def svc(self, *argv: str) -> Outcome:
        """A command of the user's."""
        return run(USER, *argv, env=self.env, timeout=300)

    def log(self) -> str:
        """What the launcher has written."""
        (launcher,) = must(self.svc("ws", "launchers", self.workspace, "--json")).json()["items"]
        return must(self.svc("ws", "logs", self.workspace, "--launcher", launcher["name"])).out

    def follow(self, heading: str) -> str:
        """Type the section's blocks; what they printed."""
        found = [block for block in page("examples.md") if block.heading == heading]
        assert found and {block.kind for block in found} == {"sh"}
        return "".join(self.type(block.text) for block in found)

    def type(self, text: str) -> str:
        """Type commands, with another base image, and a number for PORT once the application is ready."""
        text = re.sub(r"(--example \S+)", rf"\1 --base {self.base}", text)
        if "PORT" in text:
            self.wait()
            text = text.replace("PORT", str(self.port))
        outcome = play(USER, text, self.env, timeout=900)
        assert outcome.code == 0, f"{text}{outcome.out}{outcome.err}"
        return outcome.out + outcome.err

    def wait(self) -> None:
        """Until the application says that it is ready."""
        try:
            until(lambda: self.ready in self.log(), 180, 0.5)
        except AssertionError:
            raise AssertionError(self.log()) from None

    def fetch(self, path: str, content: bytes | None = None) -> Any:
        """The JSON answer of the application."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=content)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


@pytest.fixture
def reader(service: Service) -> Iterator[Callable[..., Reader]]:
    """reader(base, workspace, ready); what was made for it is taken away."""
    made: list[Reader] = []

    def make(base: str, workspace: str, ready: str) -> Reader:
        made.append(Reader(service, base, workspace, ready))
        return made[-1]

    yield make
    for one in made:
        one.svc("ws", "delete", one.workspace, "--yes")  # missing where a test has failed before
        must(one.svc("image", "prune", "--yes"))


def test_the_list(service: Service) -> None:
    (block,) = [block for block in page("examples.md") if block.heading.startswith("Examples")]
    said = play(USER, block.text, service.env)
    assert said.code == 0 and said.out.count("docker.io/") == 6


def test_every_section_is_followed() -> None:
    headings = {block.heading for block in page("examples.md")}
    assert {heading for heading in headings if not heading.startswith("Examples")} == set(SECTIONS)


def test_jupyter(python: str, reader: Callable[..., Reader]) -> None:
    """By its WebSocket: a kernel that computes."""
    import websocket

    lab = reader(python, "notes", "token=")
    lab.follow("JupyterLab")
    lab.wait()
    token = lab.log().partition("token=")[2][:48]
    (launcher,) = must(lab.svc("ws", "launchers", "notes", "--json")).json()["items"]
    assert launcher["link"] == f"http://127.0.0.1:{lab.port}/lab?token={token}"
    kernel = lab.fetch(f"/api/kernels?token={token}", b"{}")["id"]
    address = f"ws://127.0.0.1:{lab.port}/api/kernels/{kernel}/channels?token={token}"
    with closing(websocket.create_connection(address, timeout=60)) as channels:
        channels.send(
            json.dumps(request("execute_request", code="import os; print(6 * 7, os.environ['HOME'])"))
        )
        while (message := json.loads(channels.recv()))["msg_type"] != "stream":
            assert message["msg_type"] != "error", message
    assert message["content"]["text"] == "42 /work\n"


@contextmanager
def closing(connection: Any) -> Iterator[Any]:
    """The connection, closed at the end with its socket."""
    try:
        yield connection
    finally:
        connection.close()


def request(kind: str, **content: Any) -> dict[str, Any]:
    """A message to a kernel, as its protocol has it."""
    header = {"msg_id": kind, "msg_type": kind, "username": "", "session": "tests", "version": "5.3"}
    content = {"silent": False, "store_history": False, "allow_stdin": False} | content
    return {
        "header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell",
        "buffers": [],
    }  # fmt: skip


def test_sshd(debian: str, reader: Callable[..., Reader]) -> None:
    """By ssh, scp and rsync, with the host key that the page says."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    make_key(home)
    box = reader(debian, "box", "Server listening")
    said = box.follow("sshd")
    assert "/work\nroot\n" in said
    public = (home / ".ssh/id_ed25519.pub").read_text()
    assert (home / "fetched").read_text() == (home / "work/copied").read_text() == public
    assert (home / "work/copied").owner() == USER
    must(box.svc("ws", "stop", "box"))
    must(box.svc("ws", "start", "box"))
    box.wait()
    options = "-o BatchMode=yes -o StrictHostKeyChecking=yes"
    again = play(USER, f"ssh {options} -p {box.port} root@127.0.0.1 'cat copied'", box.env)
    assert again.out == public, f"the host key stays: {again.err}"
    (home / "work/.ssh/authorized_keys").unlink()
    refused = play(USER, f"ssh {options} -p {box.port} root@127.0.0.1 true", box.env)
    assert (refused.code, "Permission denied" in refused.err) == (255, True)


def make_key(home: Path) -> None:
    """The user's own key for ssh."""
    account = pwd.getpwnam(USER)
    subprocess.run(
        ["install", "-d", "-m", "0700", "-o", USER, "-g", str(account.pw_gid), home / ".ssh"], check=True
    )
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / ".ssh/id_ed25519"],
        check=True, user=account.pw_uid, group=account.pw_gid, env={"HOME": str(home)},
    )  # fmt: skip
    write(USER, home / ".ssh/known_hosts", "")


def test_postgres(debian: str, reader: Callable[..., Reader]) -> None:
    """By psql; the data outlives stop, deletion and another workspace, and nothing is recovered."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    db = reader(debian, "db", "ready to accept connections")
    assert "INSERT 0 1" in db.follow("PostgreSQL")
    password = home / "work/postgres.password"
    assert (password.stat().st_mode & 0o777, (home / "work/postgres").owner()) == (0o600, USER)
    query = (
        f'PGPASSWORD="$(cat {password})" psql -h 127.0.0.1 -p {{}} -U postgres -Atc "SELECT loss FROM runs"'
    )
    assert play(USER, query.format(db.port), db.env).out == "0.25\n"
    assert play(USER, f"PGPASSWORD=x {query[query.index('psql') :]}".format(db.port), db.env).code == 2
    must(db.svc("ws", "create", "--template", "postgres", "--name", "second"))
    try:
        outcome = db.svc("ws", "start", "second")
        said = until(lambda: db.svc("ws", "logs", "second", "--launcher", "postgres").out, 30, 0.3)
        assert "another workspace serves /work/postgres" in said, outcome
        must(db.svc("ws", "launcher", "stop", "db", "postgres"))
        must(db.svc("ws", "delete", "db", "--yes"))
        db.workspace = "second"
        must(db.svc("ws", "launcher", "start", "second", "postgres"))
        db.wait()
        assert play(USER, query.format(db.port), db.env).out == "0.25\n"
        assert "was not properly shut down" not in db.log()
    finally:
        db.workspace = "second"


def test_tensorboard(python: str, reader: Callable[..., Reader]) -> None:
    """By the addresses that its page asks."""
    board = reader(python, "board", "http://127.0.0.1:")
    board.follow("TensorBoard")
    board.wait()
    tags = until(lambda: board.fetch("/data/plugin/scalars/tags"), 60, 1)
    assert list(tags["first"]) == ["loss"]
