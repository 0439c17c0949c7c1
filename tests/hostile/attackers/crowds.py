"""Crowds of connections: each held by a process of its own, as a Linux user, from chosen addresses.

`hold` is run by `crowd` in a process that has only the standard library: it connects,
sends the beginning of a request, and replaces each connection that the server closes.
"""

from __future__ import annotations

import array
import contextlib
import inspect
import json
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

HALF_A_HEAD = b"GET /api/health HTTP/1.1\r\nX: "
HALF_A_BODY = b"POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
HALF_A_HELLO = b"\x16\x03\x01\x02"
SILENCE = b""
LINGER_S = 30000

IMPORTS = "import array, contextlib, json, select, socket, struct, sys, threading, time\n"


def clogged() -> tuple[socket.socket, socket.socket]:
    """A TCP connection whose close waits LINGER_S, and its far end, which reads nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    near.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            near.send(b"x" * 65536)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_S))
    return near, far


def send_last_copy(sock: socket.socket, data: bytes, near: socket.socket) -> None:
    """Send data with the last copy of a clogged connection; the data alone where the kernel refuses that."""
    rights = array.array("i", [near.fileno()])
    try:
        sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    except OSError as error:  # still ours, and so is the lingering
        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if not isinstance(error, PermissionError):
            raise
        sock.send(data)
    finally:
        # The last copy after all, where the server has let go of its own already: then we linger.
        threading.Thread(target=near.close, daemon=True).start()


def join(order: dict[str, Any], number: int, data: bytes, kept: list[socket.socket]) -> socket.socket | None:
    """One more connection with the data sent; None while the server takes none."""
    sock = socket.socket(socket.AF_UNIX if order["path"] else socket.AF_INET)
    near = None
    if order["descriptors"]:  # made first: the server should find it at once
        near, far = clogged()
        kept.append(far)
    try:
        sock.settimeout(2)
        if order["path"]:
            sock.connect(order["path"])
        else:
            sock.bind((order["sources"][number % len(order["sources"])], 0))
            sock.connect(("127.0.0.1", order["port"]))
        if near is not None:
            send_last_copy(sock, data or b"G", near)
        elif data:
            sock.send(data)
        sock.setblocking(False)
    except OSError:
        sock.close()
        return None
    return sock


def hold() -> None:
    """Read an order, hold as many connections, and replace those that are closed; until killed."""
    order = json.loads(sys.stdin.readline())
    payloads = [bytes.fromhex(text) for text in order["payloads"]]
    held: dict[int, socket.socket] = {}
    kept: list[socket.socket] = []
    poll, number, began = select.poll(), 0, time.monotonic()
    announced = False
    while True:
        for _ in range(min(order["count"] - len(held), 100)):
            sock = join(order, number, payloads[number % len(payloads)], kept)
            number += 1
            if sock is None:
                break
            held[sock.fileno()] = sock
            poll.register(sock, select.POLLIN)
        if not announced and (len(held) >= order["count"] or time.monotonic() > began + 2):
            print(len(held), flush=True)
            announced = True
        for descriptor, _ in poll.poll(20):
            try:
                if held[descriptor].recv(65536):
                    continue
            except BlockingIOError:
                continue
            except OSError:
                pass
            poll.unregister(descriptor)
            held.pop(descriptor).close()


PROGRAM = (
    IMPORTS
    + "\n".join(f"{name} = {value!r}" for name, value in {"LINGER_S": LINGER_S}.items())
    + "\nfrom typing import Any\n"
)


def program() -> str:
    """The text that the process runs."""
    return (
        PROGRAM
        + "\n".join(inspect.getsource(function) for function in (clogged, send_last_copy, join, hold))
        + "\nhold()\n"
    )


@contextlib.contextmanager
def crowd(
    count: int,
    payloads: list[bytes],
    *,
    uid: int,
    path: str = "",
    port: int = 0,
    sources: list[str] | None = None,
    descriptors: bool = False,
) -> Iterator[int]:
    """`count` connections of that uid to the socket or port; yields how many were held at once at first.

    With the lowest priority: it stands for hosts with processors of their own.
    """
    order = {
        "path": path, "port": port, "count": count, "payloads": [data.hex() for data in payloads],
        "sources": sources or ["127.0.0.1"], "descriptors": descriptors,
    }  # fmt: skip
    # Raised for the number of connections; the attacker's own limit is no matter of the server's.
    limited = [
        "prlimit",
        "--nofile=8192:8192",
        "nice",
        "-n",
        "19",
        "setpriv",
        f"--reuid={uid}",
        f"--regid={uid}",
    ]
    command = [*limited, "--clear-groups", "/usr/bin/python3", "-I", "-c", program()]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
    ) as process:
        assert process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            yield int(process.stdout.readline())
        finally:
            process.kill()


def subordinate_uids(user: str, count: int) -> list[int]:
    """The first subordinate uids of a user."""
    with open("/etc/subuid", encoding="ascii") as file:
        rows = [line.split(":") for line in file]
    first = next(int(row[1]) for row in rows if row[0] == user)
    return list(range(first, first + count))
