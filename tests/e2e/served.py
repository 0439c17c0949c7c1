"""An image with Python in it and a program like Jupyter's: HTTP and WebSockets on the container's loopback.

Python is this host's own, with no more of its library than the program loads;
`call` and `Socket` are the browser.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import re
import socket
import struct
import subprocess
from collections.abc import Mapping
from functools import cache
from urllib.parse import urlsplit

from e2e.registries import Shelf

TAG = "served"
PYTHON = "/usr/bin/python3"
ENV = ["PATH=/bin", "PYTHONHOME=/py", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1"]
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455

SERVER = """
import base64, hashlib, os, struct
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, form, *values):
        print("request", form % values)

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self):
        if self.headers.get("Upgrade", "").lower() != "websocket":
            return self.answer(f"hello from {self.path}".encode())
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_header("Sec-WebSocket-Accept", accept)
        self.end_headers()
        self.close_connection = True
        while self.echo():
            pass

    def echo(self):
        head = self.rfile.read(2)
        if len(head) < 2 or head[0] & 15 == 8:
            return False
        size = head[1] & 127
        if size >= 126:
            size = int.from_bytes(self.rfile.read(2 if size == 126 else 8), "big")
        mask = self.rfile.read(4)
        data = self.rfile.read(size)
        keys = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        data = (int.from_bytes(data, "big") ^ keys).to_bytes(size, "big")
        self.wfile.write(bytes([head[0], 127]) + struct.pack(">Q", size) + data)
        return True

class Server(ThreadingHTTPServer):
    daemon_threads = True

port = int(os.environ["SVC_PORT"])
server = Server(("127.0.0.1", port), Handler)
print("listening on", port)
server.serve_forever()
"""

_LOADED = """
import sys
import base64, hashlib, http.server, json, os, struct
import encodings.ascii, encodings.idna, encodings.latin_1, encodings.utf_8
for module in list(sys.modules.values()):
    if getattr(module, "__file__", None):
        print(module.__file__)
print(sys.prefix + "/lib/" + os.path.basename(os.path.dirname(os.__file__)) + "/os.py")
"""


@cache
def _files() -> dict[str, bytes]:
    """The layer: python3, the libraries that it is linked with, the modules that the program loads."""
    printed = subprocess.run([PYTHON, "-I", "-S", "-c", _LOADED], capture_output=True, text=True, check=True)
    modules = {os.path.realpath(line) for line in printed.stdout.split()}
    program = os.path.realpath(PYTHON)
    found = {"bin/python3": program, "app/server.py": ""}
    for path in modules:
        found["py/" + path.removeprefix("/usr/")] = path
    for path in (program, *(path for path in modules if path.endswith(".so"))):
        linked = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", linked):
            found[library.lstrip("/")] = library
    created = {}
    for name, path in found.items():
        if path:
            with open(path, "rb") as file:
                created[name] = file.read()
    return created | {"app/server.py": SERVER.encode()}


def put(shelf: Shelf, tag: str = TAG, scripts: Mapping[str, bytes] | None = None) -> str:
    """Put the image on the shelf, with more programs if need be; its tag."""
    files = _files() | dict(scripts or {})
    programs = [name for name in files if name.startswith("bin/") or ".so" in name]
    shelf.put(tag, files, programs, Env=ENV)
    return tag


# --- the browser ----------------------------------------------------------------------------


def call(url: str, path: str = "/", body: bytes | None = None) -> bytes:
    """One request, and its answer; raises OSError or HTTPException where there is none."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    try:
        connection.request("GET" if body is None else "POST", path, body)
        return connection.getresponse().read()
    finally:
        connection.close()


def answers(url: str) -> bool:
    """Whether the program answers there."""
    try:
        return call(url, "/up") == b"hello from /up"
    except (OSError, http.client.HTTPException):
        return False


class Socket:
    """A WebSocket to the program, which sends every message back; `headers` are more of the request."""

    def __init__(self, url: str, headers: str = "") -> None:
        host, port = urlsplit(url).netloc.split(":")
        self.sock = socket.create_connection(("127.0.0.1", int(port)), timeout=20)
        self.file = self.sock.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall(
            f"GET /ws HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"{headers}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.file.readline()
        assert head.startswith(b"HTTP/1.1 101 "), head
        accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest())
        assert accept in head

    def echo(self, message: bytes) -> bytes:
        """Send one message and give what comes back."""
        mask = os.urandom(4)
        keys = int.from_bytes((mask * (len(message) // 4 + 1))[: len(message)], "big")
        masked = (int.from_bytes(message, "big") ^ keys).to_bytes(len(message), "big")
        self.sock.sendall(b"\x82\xff" + struct.pack(">Q", len(message)) + mask + masked)
        head = self.file.read(10)
        assert head[:2] == b"\x82\x7f"
        return self.file.read(struct.unpack(">Q", head[2:])[0])

    def is_over(self) -> bool:
        """Whether the far end has ended it; waits for that."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """End it."""
        self.file.close()
        self.sock.close()
