"""No secret is stored or logged: one run through everything that handles secrets, then a search for each.

Searched are the server's log (including the helper's), the audit as the API
shows it, the database's files, everything else under the state directory, and,
all the while, the command line and the environment of every process.
"""

from __future__ import annotations

import base64
import json
import os
import pwd
import re
import secrets
import socket
import ssl
import stat
import threading
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from e2e.far_host import FarHost, far_host
from e2e.installation import IMAGE, Call, Service
from e2e.surroundings import in_database, make_accounts, must

from svc.limits import READING_S

USER, OTHER = "tse-hugo", "tse-ines"
PART = 12  # so much of a secret in one piece is the secret, for this search
PRINTED = len("svc_pat_") + 4  # what `token list` shows of a token's beginning
LETTERS = "bcdfghjkmnpqrtvwxz"


def phrase() -> str:
    """A password that no other text on this host contains."""
    arguments = ("".join(secrets.choice(LETTERS) for _ in range(7)) for _ in range(4))
    return "-".join(arguments)


@dataclass
class Known:
    """The secrets of this run, by what they are."""

    texts: dict[str, str] = field(default_factory=dict)

    def keep(self, what: str, secret: str) -> str:
        """Remember a secret; returns it."""
        assert len(secret) > 2 * PART, what
        self.texts[what] = secret
        return secret

    def phrase(self, what: str) -> str:
        """A new password, remembered."""
        return self.keep(what, phrase())

    def needles(self) -> dict[bytes, str]:
        """Pieces of each secret, also as they look in base64, in a URL and in JSON, and what they are of."""
        found: dict[bytes, str] = {}
        for what, secret in self.texts.items():
            hidden = secret[PRINTED:] if secret.startswith("svc_pat_") else secret
            ends = [*range(PART, len(hidden), PART // 2), len(hidden)]
            for piece in [hidden[end - PART : end].encode() for end in ends]:
                found.setdefault(piece, what)
            for shift in range(3):  # inside something longer that is base64 as a whole
                code = base64.b64encode(b"x" * shift + hidden.encode())
                found.setdefault(code[4 : 4 + 2 * PART], f"{what}, in base64")
            found.setdefault(urllib.parse.quote(hidden, safe="").encode(), f"{what}, in a URL")
            found.setdefault(json.dumps(hidden)[1:-1].encode(), f"{what}, in JSON")
        return found


def found_in(content: bytes, needles: dict[bytes, str]) -> set[str]:
    """Of which secrets there are pieces in it."""
    pattern = b"|".join(re.escape(needle) for needle in needles)
    return {needles[match[0]] for match in re.finditer(pattern, content)}


class Watcher:
    """Polls and stores the command line and the environment of every process."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self.over = threading.Event()
        self.rounds = 0
        self.thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self.over.is_set():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                for name in ("cmdline", "environ"):
                    try:
                        with open(f"/proc/{pid}/{name}", "rb") as file:
                            self.seen.add(file.read())
                    except OSError:  # it has ended
                        continue
            self.rounds += 1

    def __enter__(self) -> Watcher:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


@pytest.fixture
def far(service: Service) -> Iterator[FarHost]:
    """Another host at the end of a cable."""
    certificate = Path(service.env["SVC_DB"]).parent / "tls" / "cert.pem"
    with far_host(int(service.env["SVC_PORT"]), certificate) as host:
        yield host


def raw(port: int, *requests: bytes) -> None:
    """Send bytes to the TLS listener, each on a connection of its own; whatever it answers."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def send(data: bytes) -> None:
        # Longer than the listener's own patience with a body that does not come.
        plain = socket.create_connection(("127.0.0.1", port), timeout=READING_S + 20)
        with context.wrap_socket(plain) as sock:
            sock.sendall(data)
            sock.recv(65536)

    with ThreadPoolExecutor(len(requests)) as pool:
        list(pool.map(send, requests))


MISTAKEN = (
    "/api/workspaces/{}",
    "/api/workspaces/{}/exec",
    "/api/workspaces?token={}",
    "/api/templates/{}/image",
    "/api/tokens/{}",
    "/{}",
)


def tokens(svc: Call, client: Any, known: Known) -> str:
    """Tokens made, used, mistaken for other things, and one that ends; the secret of one that is left."""
    kept = known.keep("a token", must(svc(USER, "token", "create", "--name", "kept")).out.strip())
    printed = must(svc(USER, "token", "create", "--name", "shown", "--json")).json()
    ended = known.keep("an ended token", printed["secret"])
    assert client.ask("GET", "/api/workspaces", token=ended).status == 200
    must(svc(USER, "token", "revoke", "shown"))
    for secret, what in ((kept, "query"), (ended, "path")):
        assert client.ask("GET", "/api/workspaces", token=secret).status in (200, 401)
        mistaken = secret[:-1] + ("A" if secret[-1] != "A" else "B")
        known.keep(f"a mistyped token, {what}", mistaken)
        for token in (mistaken, secret + " ", f"{secret}\t."):
            client.ask("GET", "/api/workspaces", token=token)
        for path in MISTAKEN:
            for value in ({}, {"token": kept}):
                client.ask("GET", path.format(secret), **value)
                client.ask("POST", path.format(secret), {"name": secret, secret: 1}, **value)
        client.ask("POST", f"/api/workspaces/{secret}/exec", {"command": ["id"]}, token=kept)
        basic = base64.b64encode(f"{USER}:{secret}".encode()).decode()
        for headers in ({"Authorization": f"Basic {basic}"}, {"X-Api-Key": secret}, {"User-Agent": secret}):
            client.ask("GET", "/api/workspaces", headers=headers)
        client.ask("GET", "/api/workspaces", cookies={"__Host-svc": secret}, jar=f"strange {what}")
        client.ask("POST", "/api/auth/login", {"username": secret, "password": secret}, jar=f"odd {what}")
    return kept


def browsers(client: Any, known: Known, password: str) -> str:
    """Logins right and wrong, both secrets in wrong places, a change of the password to the one returned."""
    wrong, as_name = known.phrase("a wrong password"), known.phrase("a password typed as the name")
    for name, typed in ((USER, wrong), (as_name, password), (as_name, wrong)):
        answer = client.ask("POST", "/api/auth/login", {"username": name, "password": typed}, jar="wrong")
        assert answer.status in (401, 429), answer
    jar, body = "right", {"username": USER, "password": password}
    answer = client.ask("POST", "/api/auth/login", body, jar=jar)
    assert answer.status == 200, answer
    header = known.keep("a session's header", answer.json()["session_secret"])
    cookie = known.keep("a session's cookie", client.cookies[jar]["__Host-svc"])
    page = {"X-Svc-Session": header}
    assert client.ask("GET", "/api/workspaces", jar=jar, headers=page).status == 200
    for method, path in (
        ("DELETE", "/api/tokens/{}"),
        ("PATCH", "/api/users/{}"),
        ("GET", "/api/templates/{}"),
    ):
        body_of = {"PATCH": {"display_name": "x"}}.get(method)
        client.ask(method, path.format(known.texts["a token"]), body_of, jar=jar, headers=page)
    client.ask("GET", "/api/workspaces", jar=jar, headers={"X-Svc-Session": cookie})
    new, weak = known.phrase("a changed password"), known.phrase("a refused password")
    change = f"/api/users/{USER}/password"
    for value in (
        {"current_password": wrong, "password": new},
        {"current_password": password, "password": weak * 3},
        {"current_password": password, "password": new, weak: 1},
        {"current_password": password, "password": [weak]},
        {"current_password": password, "password": new},
    ):
        last = client.ask("PUT", change, value, jar=jar, headers=page)
    assert last.status == 204, last
    again = client.ask("POST", "/api/auth/login", body | {"password": new}, jar="again")
    assert again.status == 200, again
    page = {"X-Svc-Session": known.keep("a later header", again.json()["session_secret"])}
    known.keep("a later cookie", client.cookies["again"]["__Host-svc"])
    assert client.ask("POST", "/api/auth/logout", {}, jar="again", headers=page).status == 204
    return new


def administrators(svc: Call, known: Known) -> None:
    """Passwords by `svc admin`: two that do, those that do not, and one typed where a name goes."""
    reset = known.phrase("a reset password")
    must(svc("root", "admin", "set-password", USER, stdin=reset + "\n"))
    for refused in ("a" * 70 + known.phrase("a password that is too long"), f"{USER}{USER}{USER}"):
        assert svc("root", "admin", "set-password", USER, stdin=refused + "\n").code == 1
    lost = known.phrase("the password of nobody")
    assert svc("root", "admin", "set-password", "tse-nobody", stdin=lost + "\n").code == 1
    body = json.dumps({"name": known.phrase("what was typed as a name"), "password": lost})
    for path in ("/api/auth/login", f"/api/users/{USER}/password", "/api/tokens"):
        svc(USER, "api", "POST", path, "--body", "@-", stdin=body)


def malformed(service: Service, token: str, known: Known) -> None:
    """Requests that are none, with secrets in each place of them."""
    secret, port = token.encode(), int(service.env["SVC_PORT"])
    password = known.phrase("a password in a request that is none").encode()
    no_text = (b'{"password": "%s", ' % password).ljust(64, b"\xff")
    host = b"Host: localhost\r\n"
    raw(
        port,
        b"GET /" + secret + b" HTTP/9.9\r\n" + host + b"\r\n",
        secret + b"\r\n\r\n",
        b"POST " + password + b" " + secret + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"Authorization : Bearer " + secret + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: " + secret + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"Content-Length: " + password + b"\r\n\r\n",
        b"POST /api/auth/login HTTP/1.1\r\n" + host + b'Content-Length: 99\r\n\r\n{"password": "' + password,
        b"POST /api/auth/login HTTP/1.1\r\n" + host + b"Connection: close\r\n"
        b"Content-Type: application/json\r\nContent-Length: 64\r\n\r\n" + no_text,
        b"GET /api/health HTTP/1.1\r\n" + host + b"Connection: close\r\n"
        b"Cookie: a=" + secret + b"; __Host-svc=" + password + b"\r\n\r\n",
    )  # fmt: skip


def files_below(directory: Path) -> Iterator[Path]:
    """Every regular file under a directory."""
    for folder, _, names in os.walk(directory):
        yield from (path for name in names if (path := Path(folder) / name).is_file())


def pages_of(svc: Call, user: str, path: str) -> bytes:
    """All rows of the audit that the user may see."""
    text, offset = "", 0
    while True:
        page = must(svc(user, "api", "GET", f"{path}?limit=200&offset={offset}"))
        text += page.out
        offset = page.json()["next_offset"]
        if offset is None:
            return text.encode()


@pytest.fixture
def known(service: Service) -> Iterator[Known]:
    """The two users, with passwords of this run, and a watch over all processes from before they exist."""
    known = Known()
    first = {USER: known.phrase("the first password"), OTHER: known.phrase("another's password")}
    with Watcher() as watcher:
        make_accounts(service.env, first)
        yield known
    assert watcher.rounds > 20
    assert not set().union(*(found_in(seen, known.needles()) for seen in watcher.seen))


def test_no_secret_is_found_anywhere(service: Service, svc: Call, far: FarHost, known: Known) -> None:
    began = service.log.stat().st_size
    with ThreadPoolExecutor(1) as pool:
        with far.client() as client:
            token = tokens(svc, client, known)
            ends = pool.submit(malformed, service, token, known)  # once the listener waits no more for a body
            in_database(service.env, "DELETE FROM login_failures")  # five wrong ones are all an address has
            browsers(client, known, known.texts["the first password"])
        far.curl("/api/workspaces", token)
        administrators(svc, known)
    ends.result()

    needles = known.needles()
    log = service.log.read_bytes()
    assert len(log) > began
    assert found_in(log, needles) == set(), "in the log"
    for user, path in (("root", "/api/admin/audit"), (USER, "/api/audit")):
        rows = pages_of(svc, user, path)
        assert b"auth.login" in rows
        assert found_in(rows, needles) == set(), path
    database, state = Path(service.env["SVC_DB"]), Path(service.env["SVC_STATE_DIR"])
    keys = {database.parent / "secret.key", database.parent / "tls" / "key.pem"}
    searched = set(files_below(state)) - keys
    assert {database, Path(f"{database}-wal"), Path(f"{database}-shm")} <= searched
    for file in searched:
        assert found_in(file.read_bytes(), needles) == set(), file
    owner = pwd.getpwnam("svc").pw_uid
    for key in keys:
        assert (key.stat().st_uid, stat.S_IMODE(key.stat().st_mode)) == (owner, 0o640), key


def test_the_search_would_find_one(service: Service, svc: Call, registry: str) -> None:
    """Each place is really searched: a marker that is no secret is found there in the same way."""
    known = Known()
    sign = "z" + secrets.token_hex(14)
    source = {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}
    body = json.dumps({"name": known.keep("a sign", sign), "source": source})
    with Watcher() as watcher:
        created = svc("tse-alice", "template", "create", "--file", "-", stdin=body)
        assert created.code == 0, created.err
        svc("tse-alice", "api", "GET", f"/api/templates/{sign}")
        must(svc("tse-alice", "template", "delete", sign, "--yes"))
    needles = known.needles()
    assert set().union(*(found_in(seen, needles) for seen in watcher.seen)) == {"a sign"}
    assert found_in(service.log.read_bytes(), needles) == {"a sign"}
    database = Path(service.env["SVC_DB"])
    pieces = [Path(f"{database}{end}").read_bytes() for end in ("", "-wal")]
    assert found_in(b"\0".join(pieces), needles) == {"a sign"}
