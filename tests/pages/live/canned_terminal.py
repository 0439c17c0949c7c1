"""A terminal as the service has it, with a test on its other side."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterable
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import parse_qs
from wsgiref.types import StartResponse

from pages import records
from pages.canned import Canned
from pages.workspace.records import PATH

from svc.websocket import BINARY, CLOSE, TEXT, Receiver, answer_to, closing, frame

PROMPT = b"root@train-7b:/work# "


class Viewer:
    """One WebSocket: what the page typed, and what the test sends; all of it in the server's own thread."""

    def __init__(self, record: dict[str, Any], kept: bytes) -> None:
        self.record, self.kept = record, kept
        self.query: dict[str, str] = {}
        self.typed = b""
        self.sizes: list[tuple[int, int]] = []
        self.is_open = True
        self.outbox: SimpleQueue[bytes | None] = SimpleQueue()

    def show(self, output: bytes) -> None:
        """Print."""
        self.outbox.put(frame(BINARY, output))

    def tell(self, kind: str, **more: Any) -> None:
        """Send a text message."""
        self.outbox.put(frame(TEXT, json.dumps({"type": kind, **more}).encode()))

    def close(self, code: int, reason: str = "") -> None:
        """Close it with a code."""
        self.outbox.put(frame(CLOSE, closing(code, reason)))
        self.outbox.put(None)

    def end(self) -> None:
        """Break it off."""
        self.outbox.put(None)

    def respond(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        """Shake hands, and serve until one side has enough."""
        self.query = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
        cols, rows = int(self.query["cols"]), int(self.query["rows"])
        self.sizes.append((cols, rows))
        sock = environ["werkzeug.socket"]
        key = answer_to(environ["HTTP_SEC_WEBSOCKET_KEY"])
        head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        head += f"Sec-WebSocket-Accept: {key}\r\n"
        sock.sendall(
            f"{head}Sec-WebSocket-Protocol: {environ['HTTP_SEC_WEBSOCKET_PROTOCOL']}\r\n\r\n".encode()
        )
        self.tell("attached", terminal=self.record)
        self.tell("state", title=self.record["title"], cols=cols, rows=rows)
        self.show(self.kept)
        try:
            self._serve(sock)
        except OSError:
            pass
        self.is_open = False
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        raise ConnectionAbortedError

    def _serve(self, sock: Any) -> None:
        receiver = Receiver(1 << 16, masked=True)
        while True:
            try:
                while (block := self.outbox.get_nowait()) is not None:
                    sock.sendall(block)
                return
            except Empty:
                pass
            if not sock.pending() and not select.select([sock], [], [], 0.02)[0]:
                continue
            data = sock.recv(1 << 16)
            if not data:
                return
            for kind, content in receiver.feed(data):
                if kind == CLOSE:
                    return
                if kind == TEXT:
                    size = json.loads(content)
                    self.sizes.append((size["cols"], size["rows"]))
                    self.tell("state", title=self.record["title"], cols=size["cols"], rows=size["rows"])
                elif kind == BINARY:
                    self.typed += content


class Terminals:
    """The terminals of a workspace behind a canned API: as many as the test wants."""

    def __init__(self, canned: Canned, names: Iterable[str] = (), *, most: int = 8) -> None:
        self.canned, self.most = canned, most
        self.items: list[dict[str, Any]] = []
        self.viewers: list[Viewer] = []
        self.kept = PROMPT
        for name in names:
            self.add(name)
        canned.answers |= {
            f"GET {PATH}/terminals": lambda: {"items": self.items, "max": self.most},
            f"POST {PATH}/terminals": lambda: (201, self.add("") | {"ticket": "svc_tkt_first"}, {}),
            f"GET {PATH}/terminal": self._view,
            "POST /api/tickets": self._ticket,
        }

    def add(self, title: str, **more: Any) -> dict[str, Any]:
        """One more."""
        record = {
            "id": f"t-{len(self.items) + 1}k2m9x",
            "title": title,
            "command": None,
            "cols": 80,
            "rows": 24,
            "viewers": 0,
            "state": "running",
            "exit_code": None,
            "opened_at": records.ago(hours=9 - len(self.items)),
            "active_at": records.ago(minutes=1),
        }
        self.items.append(record | more)
        number = self.items[-1]["id"]
        self.canned.answers[f"DELETE {PATH}/terminals/{number}"] = (204, None, {})
        return self.items[-1]

    def _ticket(self) -> tuple[int, Any, dict[str, str]]:
        body, _ = self.canned.sent("POST /api/tickets")[-1]
        return 201, {"url": f"{body['url']}&ticket=svc_tkt_again", "expires_at": records.ago(seconds=-30)}, {}

    def _view(self) -> Viewer:
        query = parse_qs(self.canned.sent(f"GET {PATH}/terminal")[-1][1]["QUERY"])
        record = next(item for item in self.items if item["id"] == query["id"][0])
        self.viewers.append(Viewer(record, self.kept))
        return self.viewers[-1]
