"""A program that listens on a container's loopback and serves in one of a few ways; run in its network.

Argv: the address, the port, the way, and a file for what was received.
"""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

BLOCK = bytes(65536)


def serve(sock: socket.socket, way: str, file: str) -> None:
    """Serve one connection, until it is broken off."""
    with sock, suppress(ConnectionError):
        if way == "echo":
            while part := sock.recv(65536):
                sock.sendall(part)
        elif way == "flood":
            while True:
                sock.sendall(BLOCK)
        elif way == "count":
            count = 0
            while part := sock.recv(65536):
                count += len(part)
            sock.sendall(b"%d\n" % count)
        elif way == "collect":
            sock.sendall(b"first\n")
            sock.shutdown(socket.SHUT_WR)
            with Path(file).open("wb", buffering=0) as kept:
                while part := sock.recv(65536):
                    kept.write(part)
        else:
            sock.sendall(way.encode())


def main() -> None:
    """Serve for good."""
    address, port, way, file = sys.argv[1:]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, int(port)), family=family, backlog=1024)
    print("listening", flush=True)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve, args=(sock, way, file), daemon=True).start()


if __name__ == "__main__":
    main()
