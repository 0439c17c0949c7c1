"""A Podman that answers what a test tells it: a real program, started by the agent's own service code.

$FAKE is a directory: `answers.json` maps "METHOD path" (the query left off) to an answer or to a
list of answers used up one by one; every request is noted in `requests`, every command in `commands`.
An answer is {"status", "json"}, {"raw": text sent as it is, byte for latin-1 character},
{"repeat": text, "times": n} appended to raw, {"hang": true} or {"die": true}.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(os.environ.get("FAKE", "/nonexistent"))
LOCK = threading.Lock()


def pick(key: str) -> dict[str, Any]:
    """The answer for a request."""
    with LOCK:
        with (HERE / "requests").open("a") as file:
            file.write(key + "\n")
        answers = json.loads((HERE / "answers.json").read_text())
        found = answers.get(
            key.partition("?")[0], {"status": 404, "json": {"cause": "unknown", "message": key}}
        )
        if isinstance(found, list):
            first = found.pop(0) if len(found) > 1 else found[0]
            (HERE / "answers.json").write_text(json.dumps(answers))
            return first
        return found


def serve_one(sock: socket.socket) -> None:
    """Read one request and answer it."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = sock.recv(65536)
        if not part:
            return
        received += part
    method, path, _ = received.partition(b"\r\n")[0].decode().split(" ")
    answer = pick(f"{method} {path}")
    if answer.get("die"):
        os._exit(1)
    if answer.get("hang"):
        time.sleep(3600)
    if "raw" in answer:
        payload = answer["raw"].encode("latin-1")
    else:
        body = json.dumps(answer["json"]).encode() if "json" in answer else b""
        payload = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (answer["status"], len(body)) + body
    try:
        sock.sendall(payload)
        for _ in range(answer.get("times", 0)):
            sock.sendall(answer["repeat"].encode("latin-1"))
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)
    except OSError:
        pass


def main() -> None:
    """Be `podman system service` on the socket that is handed down, or note any other command."""
    with (HERE / "commands").open("a") as file:
        file.write(" ".join(sys.argv[1:]) + "\n")
    if sys.argv[1:3] != ["system", "service"]:
        return
    assert os.environ["LISTEN_PID"] == str(os.getpid())
    failures = HERE / "start-failures.json"
    if failures.exists():
        left = json.loads(failures.read_text())
        if left:
            arguments = left.pop(0)
            failures.write_text(json.dumps(left))
            sys.exit(arguments)
    (HERE / "pid").write_text(str(os.getpid()))
    listener = socket.socket(fileno=3)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve_one, args=(sock,), daemon=True).start()


if __name__ == "__main__":
    main()
