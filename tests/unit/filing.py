"""A small agent for files: what it has are bytes in memory, and it can be told to misbehave."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from svc_helper.wire import protocol
from svc_helper.wire.arguments import path_bytes

FACTS = {"mtime_ns": 1_700_000_000_123_456_789, "inode": 7, "device": 42}
ENTRY = ["notes.txt", "file", 5, FACTS["mtime_ns"], 0o644, None, "ada"]
ROOT = {
    "id": "work", "path": "/home/ada/work", "exists": True, "read_only": False,
    "free_bytes": 1000, "size_bytes": 5000,
}  # fmt: skip
ANSWERS = {
    "fs.roots": {"roots": [ROOT]},
    "fs.list": {"entry": ["", "directory", 0, 0, 0o755, None, "ada"], "rows": [ENTRY], "total": 1},
    "fs.mkdir": {"entry": ["new", "directory", 0, 0, 0o755, None, "ada"]},
    "fs.move": {"entry": ENTRY},
    "fs.remove": {"removed": 1, "remaining": 0, "kept": []},
}
CONVERSATIONS = ("fs.entries", "fs.read", "fs.write", "fs.archive", "ctr.logs")
PART = 64 * 1024


class Refused(Exception):
    """An answer that is no success: its code."""


class Files:
    """An agent's files, by their paths.

    `before` is called with the reply path and the line before anything is said,
    and instead of all else when it returns true.
    """

    def __init__(self) -> None:
        self.content: dict[bytes, bytes] = {b"notes.txt": b"hello"}
        self.lines = [b'{"name": "a"}\n', b'{"name": "b"}\n']
        self.archived = b"not really gzip"
        self.counted: dict[str, Any] = {"members": 2, "bytes": 5, "skipped": 1, "skipped_names": ["x"]}
        self.before: Callable[[protocol.Call, socket.socket, socket.socket], bool] | None = None
        self.received: list[dict[str, Any]] = []
        self.output = b"hello\n"  # of every container and launcher
        self.kept: dict[str, Any] = {"start": [0, 0], "older_gone": False, "truncated": False, "markers": []}

    def converse(self, call: protocol.Call, reply: socket.socket) -> dict[str, Any] | str | None:
        """Serve one call; its data, a code, or None for an end without a word."""
        value = protocol.receive(reply)
        argument = "input" if call.verb.name == "fs.write" else "output"
        assert value.message == {argument: True}
        with socket.socket(fileno=value.fds[0]) as line:
            line.setblocking(True)
            if self.before is not None and self.before(call, reply, line):
                return None
            try:
                return getattr(self, call.verb.name.partition(".")[2])(call, reply, line)
            except Refused as refused:
                return str(refused)
            except (EOFError, OSError):  # cancelled
                return None

    def hear(self, reply: socket.socket, key: str) -> Any:
        """The app's next word."""
        frame = protocol.receive(reply)
        self.received.append(frame.message)
        assert set(frame.message) == {key}
        return frame.message[key]

    def read(self, call: protocol.Call, reply: socket.socket, line: socket.socket) -> dict[str, Any]:
        """`fs.read`."""
        content = self.content.get(path_bytes(call.args["path"]))
        if content is None:
            raise Refused("not_found")
        protocol.send(reply, {"progress": {"size": len(content), **FACTS}})
        offset, count = self.hear(reply, "go")
        line.sendall(content[offset : offset + count])
        return {"sent": count}

    def write(self, call: protocol.Call, reply: socket.socket, line: socket.socket) -> dict[str, Any]:
        """`fs.write`."""
        path = path_bytes(call.args["path"])
        if path in self.content and not call.args["replace"]:
            raise Refused("exists")
        protocol.send(reply, {"progress": {"ready": True}})
        came = b"".join(iter(lambda: line.recv(PART), b""))
        if self.hear(reply, "commit") != len(came):
            raise Refused("protocol")
        replaced = path in self.content
        self.content[path] = came
        return {"size": len(came), **FACTS, "replaced": replaced}

    def logs(self, call: protocol.Call, reply: socket.socket, line: socket.socket) -> dict[str, Any]:
        """`ctr.logs`."""
        protocol.send(reply, {"progress": self.kept})
        self.hear(reply, "go")
        line.sendall(self.output[call.args["skip"] :])
        line.shutdown(socket.SHUT_WR)
        return {"sent": len(self.output)}

    def entries(self, call: protocol.Call, reply: socket.socket, line: socket.socket) -> dict[str, Any]:
        """`fs.entries`."""
        protocol.send(reply, {"progress": {"total": len(self.lines)}})
        self.hear(reply, "go")
        sent = self.lines[call.args["offset"] :]
        line.sendall(b"".join(sent))
        line.shutdown(socket.SHUT_WR)
        return {"entries": len(sent)}

    def archive(self, call: protocol.Call, reply: socket.socket, line: socket.socket) -> dict[str, Any]:
        """`fs.archive`."""
        protocol.send(reply, {"progress": self.counted})
        self.hear(reply, "go")
        line.sendall(self.archived)
        line.shutdown(socket.SHUT_WR)
        return {"members": 2, "bytes": 5, "changed": 0, "vanished": 0}


def noise(size: int) -> bytes:
    """Bytes in which a part that is lost, doubled or moved is seen."""
    return os.urandom(min(size, 1 << 20)) * (size // (1 << 20) + 1) if size > 1 << 20 else os.urandom(size)
