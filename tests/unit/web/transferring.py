"""Files through a real listener, over the host socket or TLS, as a user who is not root."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from unit.configuring import configured
from unit.filing import Files
from unit.serving import FarEnd, make_user
from unit.web.gunicorn_worker.test_listeners import ME, Served

from svc.db import connect
from svc.db.connect import database
from svc.domain.accounts import sessions, users
from svc.host.secret import read_secret
from svc.settings import Settings
from svc.tls import certificates
from svc.tls.certificates import Certificate
from svc.web.callers.credentials import COOKIE, HEADER

UID = os.getuid() or 1  # root has no files
NAME = ME if os.getuid() else "daemon"
WAIT_S = 60


class Got(NamedTuple):
    """An answer, whole or not."""

    status: int
    head: dict[str, str]
    body: bytes
    whole: bool

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


class Wire:
    """One connection."""

    def __init__(self, sock: socket.socket, headers: list[str]) -> None:
        self.sock, self.headers = sock, headers
        self.file = sock.makefile("rb")

    def head(self, method: str, target: str, *more: str) -> bytes:
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost", *self.headers, *more]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def send(self, method: str, target: str, *more: str, body: bytes = b"") -> None:
        """A request; a listener that has had enough of it need not read the whole."""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError, ssl.SSLError):
            self.sock.sendall(self.head(method, target, *more) + body)

    def begun(self) -> tuple[int, dict[str, str]]:
        """The head of the next answer."""
        line = self.file.readline()
        if not line:
            return 0, {}
        head = {}
        while (row := self.file.readline().strip()) != b"":
            name, _, value = row.decode("latin-1").partition(":")
            head[name.lower()] = value.strip()
        return int(line.split()[1]), head

    def got(self, method: str = "GET") -> Got:
        """The next answer."""
        status, head = self.begun()
        empty = method == "HEAD" or status in (0, 204, 304)
        body, whole = (b"", status > 0) if empty else self._body(head)
        return Got(status, head, body, whole)

    def _body(self, head: dict[str, str]) -> tuple[bytes, bool]:
        try:
            if "content-length" in head:
                body = self.file.read(int(head["content-length"]))
                return body, len(body) == int(head["content-length"])
            return self._chunks()
        except (ConnectionResetError, ssl.SSLEOFError):
            return b"", False

    def _chunks(self) -> tuple[bytes, bool]:
        body = b""
        while line := self.file.readline():
            size = int(line, 16)
            part = self.file.read(size + 2)
            if size == 0:
                return body, part == b"\r\n"
            body += part[:-2]
        return body, False

    def ask(self, method: str, target: str, *more: str, body: bytes = b"") -> Got:
        self.send(method, target, *more, body=body)
        return self.got(method)


class Way:
    """A listener, and how somebody who is not root comes in."""

    def __init__(
        self, served: Any, far: FarEnd, settings: Settings, db: str, folder: Path, *, tls: bool
    ) -> None:
        self.far, self.settings, self.db, self.tls = far, settings, db, tls
        self.headers: list[str] = []
        self.trust: ssl.SSLContext | None = None
        self.audited = 0  # the last row of the audit before this test
        self.log_in()
        if tls:
            certificate = Certificate(str(folder / "tls" / "cert.pem"), str(folder / "tls" / "key.pem"))
            certificates.create(certificate, ["localhost"])
            self.trust = ssl.create_default_context(cafile=certificate.chain)
            self.endpoint: Served = served("tls", certificate=certificate)
        else:
            self.endpoint = served("unix")

    def log_in(self) -> None:
        """Have the user, with a session for TLS."""
        connect.open_database(self.db)
        configured(secret=read_secret(self.settings.secret_file))
        me = users.find_by_uid(UID) or make_user(NAME, UID)
        _, secrets = sessions.begin(me.id, "127.0.0.1")
        connect.close_database()
        if self.tls:
            self.headers = [f"Cookie: {COOKIE}={secrets.cookie}", f"{HEADER}: {secrets.header}"]

    def renew(self) -> None:
        """Begin another test on the same listener: with an agent that has heard and done nothing."""
        self.far.calls.clear()
        self.far.files = Files()
        [[self.audited]] = self.rows("SELECT coalesce(max(id), 0) FROM audit")

    @contextlib.contextmanager
    def connected(self) -> Iterator[Wire]:
        """A connection."""
        with socket.socket(self.endpoint.listener.family) as plain:
            plain.settimeout(WAIT_S)
            _connect(plain, self.endpoint.listener.getsockname())
            with contextlib.ExitStack() as held:
                if self.trust is not None:
                    plain = held.enter_context(self.trust.wrap_socket(plain, server_hostname="localhost"))
                wire = Wire(plain, self.headers)
                held.callback(wire.file.close)
                yield wire

    def ask(self, method: str, target: str, *more: str, body: bytes = b"") -> Got:
        """One request on a connection of its own."""
        with self.connected() as wire:
            return wire.ask(method, target, *more, body=body)

    def put(self, target: str, body: bytes) -> Got:
        """An upload."""
        return self.ask("PUT", target, OCTETS, f"Content-Length: {len(body)}", body=body)

    def audit(self, action: str) -> list[tuple[str, dict[str, Any]]]:
        """Outcomes and details of an action in this test, in order."""
        rows = self.rows(
            "SELECT outcome, detail_json FROM audit WHERE id > ? AND action = ? ORDER BY id",
            self.audited, action,
        )  # fmt: skip
        return [(outcome, json.loads(detail)) for outcome, detail in rows]

    def rows(self, query: str, *values: object) -> list[Any]:
        """What the database has."""
        connect.open_database(self.db)
        rows = database.execute_sql(query, values).fetchall()
        connect.close_database()
        return list(rows)

    def sql(self, statement: str) -> None:
        """Change the database behind the listener's back."""
        connect.open_database(self.db)
        database.execute_sql(statement)
        connect.close_database()

    def outcome(self, action: str) -> tuple[str, dict[str, Any]]:
        """The last row of an action, when it says how that ended."""
        assert soon(lambda: self.audit(action)[-1:] and self.audit(action)[-1][0] != "begun")
        return self.audit(action)[-1]

    def open_sockets(self) -> int:
        """Sockets and pipes that the listener has."""
        count = 0
        for link in Path(f"/proc/{self.endpoint.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                count += bool(re.match("socket|pipe", os.readlink(link)))
        return count


OCTETS = "Content-Type: application/octet-stream"


def _connect(sock: socket.socket, address: Any) -> None:
    """Connect as UID: the kernel notes who does."""
    if os.getuid() == UID or sock.family != socket.AF_UNIX:
        sock.connect(address)
        return
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.chdir(os.path.dirname(address))  # the directories above are root's own
            os.setgroups([])
            os.setresuid(UID, UID, UID)
            sock.connect(os.path.basename(address))
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def chunked(*parts: bytes) -> bytes:
    """A body in chunks, without its end."""
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


def soon(fact: Callable[[], Any], seconds: float = WAIT_S) -> bool:
    """Whether it becomes true."""
    until = time.monotonic() + seconds
    while not (holds := bool(fact())) and time.monotonic() < until:  # asked once: it may not hold for ever
        time.sleep(0.02)
    return holds
