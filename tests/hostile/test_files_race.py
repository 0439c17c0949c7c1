"""Every verb of files while its own user exchanges directories and files for links that lead out.

What lies outside, root's and the user's own, is neither read nor changed nor removed.
"""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import os
import pwd
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from depths import rounds
from e2e.files import Reply, at, put, socket_of, work
from e2e.installation import PREFIX, Service
from waiting import until

USER = "tsz-mallory"
SECONDS = float(os.environ.get("SVC_TEST_SECONDS") or rounds(1, 5, 60))
PATIENCE_S = 90  # on top, until something has worked and something was refused
CANARY = b"the canary"
EXCHANGER = Path(__file__).with_name("attackers") / "exchanger.py"
ROOTS_OWN = Path("/var/tmp/tsz-canary")


class Ask(NamedTuple):
    """One request of a race."""

    method: str
    route: str
    path: str
    body: Any = None
    query: dict[str, str] = {}


# Three spots of the race by turns; what a request makes has the turn in its name.
RACES: dict[str, Callable[[str, int], list[Ask]]] = {
    "list": lambda spot, _: [
        Ask("GET", route, path)
        for route in ("list", "entries")
        for path in (spot, f"{spot}/deep", f"{spot}/f")
    ],
    "read": lambda spot, _: [Ask("GET", "read", path) for path in (f"{spot}/f", f"{spot}/deep/f")],
    "download": lambda spot, _: [Ask("GET", "download", path) for path in (f"{spot}/f", f"{spot}/deep/f")],
    "archive": lambda spot, _: [Ask("GET", "archive", path) for path in ("race", spot, f"{spot}/deep")],
    "upload": lambda spot, turn: [
        Ask("PUT", "file", f"{spot}/f", b"uploaded", {"force": "true"}),
        Ask("PUT", "file", f"{spot}/deep/new{turn}", b"uploaded"),
        Ask("PUT", "file", f"{spot}/link", b"uploaded", {"force": "true"}),
    ],
    "mkdir": lambda spot, turn: [
        Ask("POST", "mkdir", f"{spot}/deep/new{turn}", {}),
        Ask("POST", "mkdir", f"{spot}/deep/a{turn}/b", {"parents": True}),
    ],
    "move": lambda spot, turn: [
        Ask("POST", "move", f"{spot}/deep/f", {"to": f"race/mine{turn}"}),
        Ask("POST", "move", f"race/mine{turn}", {"to": f"{spot}/deep/more/f", "force": True}),
        Ask("POST", "move", f"{spot}/f", {"to": f"{spot}/g", "force": True}),
    ],
    "remove": lambda spot, _: [
        Ask("DELETE", "file", f"{spot}/deep/more", None, {"recursive": "true"}),
        Ask("DELETE", "file", f"{spot}/deep/f"),
        Ask("DELETE", "file", spot, None, {"recursive": "true"}),
    ],
}  # fmt: skip
STATUSES = {200, 201, 403, 404, 409, 429}  # 429: most attempts are refused, and refusals have a budget


@pytest.fixture
def outside(service: Service) -> Iterator[None]:
    """Directories outside that look as those in the race do, the user's and root's; the race is on."""
    private = work(USER).parent / "private"
    for place in (private, ROOTS_OWN):
        for name in ("f", "deep/f", "deep/more/f", "only-outside"):
            if place == private:
                put(USER, f"../private/{name}", CANARY)
            else:
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_bytes(CANARY)
    (ROOTS_OWN / "deep/only-root").write_bytes(CANARY)
    (ROOTS_OWN / "deep/only-root").chmod(0o600)
    before = snapshot(private), snapshot(ROOTS_OWN)
    put(USER, "before-the-race")
    account = pwd.getpwnam(USER)
    program = [PREFIX / "bin/python3", "-I", EXCHANGER]
    person = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    with subprocess.Popen(
        [*program, work(USER) / "race", "../../private", ROOTS_OWN, private],
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        **person,
    ) as exchanger:
        assert exchanger.stdout is not None
        try:
            assert exchanger.stdout.readline() == "ready\n"
            yield
            exchanger.terminate()
            assert int(exchanger.stdout.readline()) > 100, "it was a race"
        finally:
            exchanger.kill()
    after = snapshot(private), snapshot(ROOTS_OWN)
    subprocess.run(["rm", "-rf", "--", work(USER) / "race", private, ROOTS_OWN], check=True)
    assert after == before


def snapshot(directory: Path) -> list[tuple[str, int, int, int, int, bytes]]:
    """All below a directory: which file it is, whose, when it was changed, and what is in it."""
    found = []
    for path in sorted([directory, *directory.rglob("*")]):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found.append((str(path), status.st_ino, status.st_uid, status.st_mtime_ns, status.st_mode, content))
    return found


def contents(ask: Ask, reply: Reply) -> list[bytes]:
    """Every name and every file's bytes that an answer gives away."""
    if ask.route == "list":
        return [row["path"].encode() for row in reply.json()["items"]]
    if ask.route == "entries":
        return [json.loads(line)["path"].encode() for line in reply.body.splitlines()]
    if ask.route == "read":
        return [base64.b64decode(reply.json()["content"])]
    if ask.route != "archive":
        return [reply.body]
    found = []
    with tarfile.open(fileobj=BytesIO(gzip.decompress(reply.body))) as tar:
        for member in tar:
            found.append(member.name.encode())
            if member.isreg():
                file = tar.extractfile(member)
                assert file is not None
                found.append(file.read())
    return found


@pytest.mark.parametrize("race", RACES)
def test_nothing_outside_is_read_changed_or_removed(service: Service, outside: None, race: str) -> None:
    listener = socket_of(USER, service.env)
    end = time.monotonic() + SECONDS
    seen: Counter[int] = Counter()
    turn = 0
    while time.monotonic() < end or not (seen[200] + seen[201] and seen[403]):
        assert time.monotonic() < end + PATIENCE_S, seen
        turn += 1
        for ask in RACES[race](f"race/spot{turn % 3}", turn):
            try:
                reply = listener.ask(ask.method, at(ask.path, ask.route, **ask.query), ask.body)
            except (http.client.HTTPException, ConnectionError):
                assert ask.route in ("download", "entries", "archive"), "only what was begun may be cut off"
                seen[0] += 1
                continue
            seen[reply.status] += 1
            assert reply.status in STATUSES, (ask, reply)
            if reply.status == 200:
                value = contents(ask, reply)
                assert CANARY not in value
                assert not [name for name in value if b"only-outside" in name or b"only-root" in name]
    until(lambda: listener.ask("GET", at("", "list")).status == 200, 20)
