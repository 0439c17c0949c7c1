"""Users' files on this host, and both listeners as curl and browsers use them, with bodies of any size."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import pwd
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from e2e.installation import Process, processes_of
from hostile.attackers.raw import connect, connect_tls

PART = 1 << 20
AGENT = "svc_helper.agent.__main__"
OCTETS = {"Content-Type": "application/octet-stream"}


def work(user: str) -> Path:
    """The directory that is the user's root `work`."""
    return Path(pwd.getpwnam(user).pw_dir, "work")


def put(user: str, name: str | bytes, content: bytes = b"") -> Path:
    """A file of the user's own below `work`, its directories too; its path."""
    account = pwd.getpwnam(user)
    path = Path(os.fsdecode(os.path.join(os.fsencode(work(user)), os.fsencode(name))))
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(mode=0o755)
            os.chown(folder, account.pw_uid, account.pw_gid)
    path.write_bytes(content)
    os.chown(path, account.pw_uid, account.pw_gid)
    return path


def give(user: str, path: Path) -> Path:
    """The path, now the user's."""
    account = pwd.getpwnam(user)
    os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    return path


def at(path: str | bytes, route: str, root: str = "work", **query: object) -> str:
    """The address of a route of `fs` for a path below a root, whatever bytes it has."""
    more = "".join(f"&{name}={quote(str(value))}" for name, value in query.items())
    return f"/api/fs/{root}/{route}?path={quote(path)}{more}"


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The error's code, if it is one of the API's."""
        try:
            return str(self.json()["error"]["code"])
        except (ValueError, KeyError, TypeError):
            return ""


class Endpoint:
    """One user's requests at one of the listeners, each on a connection of its own."""

    def __init__(self, user: str, dial: Callable[[], socket.socket], headers: dict[str, str]) -> None:
        self.user, self.dial, self.headers = user, dial, headers

    @contextlib.contextmanager
    def line(self) -> Iterator[http.client.HTTPConnection]:
        """A connection, closed afterwards."""
        connection = http.client.HTTPConnection("localhost")
        connection.sock = self.dial()
        try:
            yield connection
        finally:
            connection.close()

    def ask(
        self, method: str, path: str, body: Any = None, *, chunked: bool = False, **headers: str
    ) -> Reply:
        """One request; a body of bytes goes with its length or in chunks, anything else as JSON."""
        sent = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, bytes):
            sent |= OCTETS
        elif body is not None:
            body, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        content = _parts(body) if chunked else body
        with self.line() as line:
            with contextlib.suppress(OSError):  # answered before the body was read
                line.request(method, path, content, sent, encode_chunked=chunked)
            with line.getresponse() as answer:
                return Reply(answer.status, answer.headers, answer.read())

    @contextlib.contextmanager
    def begun(self, path: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
        """A GET whose answer is not read yet."""
        with self.line() as line:
            line.request("GET", path, headers=self.headers | headers)
            with line.getresponse() as answer:
                yield answer

    def head(self, method: str, path: str, *fields: str) -> bytes:
        """The head of a request, to be sent by hand, with more header fields."""
        own = [f"{name}: {value}" for name, value in (self.headers | OCTETS).items()]
        return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *own, *fields, "", ""]).encode()


def _parts(body: bytes) -> Iterator[bytes]:
    return (body[offset : offset + PART] for offset in range(0, len(body), PART))


def socket_of(user: str, env: dict[str, str]) -> Endpoint:
    """The host socket, as that Linux user."""
    return Endpoint(user, lambda: connect(env["SVC_SOCKET"], user), {})


def session_of(user: str, env: dict[str, str], password: str) -> Endpoint:
    """The TLS listener, with a new session of the user's."""
    listener = Endpoint(user, lambda: connect_tls(int(env["SVC_PORT"])), {})
    answer = listener.ask("POST", "/api/auth/login", {"username": user, "password": password.strip()})
    assert answer.status == 200, answer
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    listener.headers = {"Cookie": cookie, "X-Svc-Session": answer.json()["session_secret"]}
    return listener


# --- what is left behind ---------------------------------------------------------------------


def agents(user: str) -> list[Process]:
    """The user's agents, one at most as a rule."""
    return [one for one in processes_of(user) if AGENT in one.args]


def at_work(user: str) -> list[str]:
    """What a transfer has: children of the user's agents, and their pipes and files below `work`."""
    found = []
    for agent in agents(user):
        mine = [one for one in processes_of(user) if one.parent == agent.pid]
        found += [one.args for one in mine if "podman" not in one.args and "svc_helper" not in one.args]
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for name in os.listdir(f"/proc/{agent.pid}/fd"):
                with contextlib.suppress(FileNotFoundError):
                    led = os.readlink(f"/proc/{agent.pid}/fd/{name}")
                    if led.startswith(("pipe:", str(work(user)))):
                        found.append(led)
    return found


def unfinished(folder: Path) -> list[str]:
    """The names of uploads on their way in a directory."""
    return [name for name in os.listdir(folder) if name.startswith(".svc-upload-")]


def mode(path: Path) -> int:
    """The permission bits of what is there, not followed."""
    return stat.S_IMODE(path.lstat().st_mode)
