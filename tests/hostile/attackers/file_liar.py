"""A user's own process in the place of that user's agent, for files: lies, stalls, sends rubbish.

Run as the user: `file_liar.py AGENT-PID MODE`, as usurper.py, which takes the channel.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from usurper import FIGURE, KEPT, lingering, raw, take_channel

from svc_helper.wire.protocol import Frame, receive, send, send_reply

PROMISED = 1 << 20  # bytes of the file that there is said to be
KNOWN = {"size": PROMISED, "mtime_ns": 1, "inode": 2, "device": 3}
MEMBERS = {"members": 1, "bytes": PROMISED, "skipped": 0, "skipped_names": []}
ROW = ["name", "file", 5, 6, 0o644, None]
WRONG: list[Any] = [None, True, -1, FIGURE, 1.5, "x", "\u001b[2J", [], {}, [[]], {"x": FIGURE}]
NAMES = [
    "..", ".", "", "a/b", "a%2Fb", "%00", "%1b", "%1B%5B2J", "%", "%ZZ", "\u001b[2J", "x" * 5000, "%FF" * 86,
    "caf\u00e9", 5, None, ["x"],
]  # fmt: skip
turn = 0


def value(reply: socket.socket) -> int:
    """The line for the bytes that came with the call."""
    fd = receive(reply).fds[0]
    os.set_blocking(fd, True)
    return fd


def argument(reply: socket.socket) -> Any:
    """What the app says next."""
    return receive(reply).message


def facts(verb: str, wrong: Any) -> dict[str, Any]:
    """The data of a verb with one wrong thing in each place."""
    row = [wrong if index == turn % len(ROW) else part for index, part in enumerate(ROW)]
    return {
        "fs.roots": {"roots": [{"id": "work", "path": wrong, "exists": True, "read_only": wrong,
                                "free_bytes": wrong, "size_bytes": -1}]},
        "fs.list": {"entry": ROW, "rows": [row], "total": 1} if turn % 2 else {"entry": row, "rows": wrong},
        "fs.read": KNOWN | {"size": wrong, "mtime_ns": wrong},
        "fs.write": {"size": wrong, "mtime_ns": wrong, "inode": wrong, "device": 1, "replaced": wrong},
        "fs.archive": MEMBERS | {"members": wrong, "skipped_names": [wrong]},
        "fs.remove": {"removed": wrong},
    }.get(verb, {"entry": row})  # fmt: skip


def figures(reply: socket.socket, frame: Frame) -> None:
    """Well-formed answers with something of a wrong type, another for each call."""
    global turn
    verb, wrong = frame.message["verb"], WRONG[turn % len(WRONG)]
    turn += 1
    if verb in ("fs.read", "fs.archive", "fs.write"):
        pipe = value(reply)
        send(reply, {"progress": facts(verb, wrong) if verb != "fs.write" else {"ready": True}})
        if verb == "fs.write":
            message_or_end(reply, pipe)
        os.close(pipe)
    send_reply(reply, {"ok": True, "data": facts(verb, wrong)})


def message_or_end(reply: socket.socket, pipe: int) -> None:
    """Take what is uploaded to its end, and the word that commits it."""
    while os.read(pipe, 65536):
        pass
    argument(reply)


def names(reply: socket.socket, frame: Frame) -> None:
    """Directories of names that no directory has; more of them than were asked for."""
    global turn
    turn += 1
    name: Any = NAMES[turn % len(NAMES)]
    rows: list[Any] = [[name, "file", 1, 1, 0o644, None]]
    if turn % 3 == 0:
        rows = [[f"n{number}", "file", 1, 1, 0o644, name] for number in range(12_000)]
    if frame.message["verb"] == "fs.list":
        data: dict[str, Any] = {"entry": rows[0], "rows": rows, "total": len(rows) - 1}
    else:
        data = {"entry": rows[0], "roots": [{"id": name}]}
    with contextlib.suppress(Exception):  # an answer too large to send is none
        send_reply(reply, {"ok": True, "data": data})


def bytes_of(pipe: int, count: int) -> None:
    """Write so many bytes, or until nobody reads."""
    part = b"x" * 65536
    while count > 0:
        count -= os.write(pipe, part[: min(count, len(part))])


def serving(send_bytes: Callable[[int, int], None]) -> Callable[[socket.socket, Frame], None]:
    """A mode that promises PROMISED bytes, and writes into the pipe as `send_bytes(pipe, count)` does."""

    def serve(reply: socket.socket, frame: Frame) -> None:
        verb = frame.message["verb"]
        if verb not in ("fs.read", "fs.archive"):
            send_reply(reply, {"ok": False, "code": "failed", "message": "not now"})
            return
        pipe = value(reply)
        send(reply, {"progress": KNOWN if verb == "fs.read" else MEMBERS})
        argument(reply)
        threading.Thread(target=answered, args=(reply, pipe), daemon=True).start()

    def answered(reply: socket.socket, pipe: int) -> None:
        with contextlib.suppress(OSError):
            send_bytes(pipe, PROMISED)
            send_reply(reply, {"ok": True, "data": KNOWN | MEMBERS | {"sent": PROMISED}})
        if send_bytes is not keeps_open:
            os.close(pipe)
        reply.close()

    return serve


def keeps_open(pipe: int, count: int) -> None:
    """All the bytes, and the pipe stays open."""
    bytes_of(pipe, count)


def in_crumbs(pipe: int, count: int) -> None:
    """Through as small a buffer as can be, first byte by byte."""
    with socket.socket(fileno=os.dup(pipe)) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    for _ in range(1000):
        os.write(pipe, b"x")
    bytes_of(pipe, count - 1000)


def with_rights(pipe: int, count: int) -> None:
    """Descriptors among the bytes, one of them slow to close."""
    fds = [lingering(), os.memfd_create("x"), *[pipe] * 60]
    with socket.socket(fileno=os.dup(pipe)) as line:
        for _ in range(20):
            raw(line, b"x" * 1000, fds)
    bytes_of(pipe, count - 20_000)
    time.sleep(40)  # whose own close may be the one that waits


def urgent(pipe: int, count: int) -> None:
    """Bytes out of the line's order, where the kernel has them."""
    with socket.socket(fileno=os.dup(pipe)) as line:
        for _ in range(20):
            line.sendall(b"x" * 999)
            with contextlib.suppress(OSError):
                line.send(b"y", socket.MSG_OOB)
    bytes_of(pipe, count - 20_000)


def drips(pipe: int, _count: int) -> None:
    """A byte a second."""
    for _ in range(300):
        os.write(pipe, b"x")
        time.sleep(1)


def stalls(reply: socket.socket, frame: Frame) -> None:
    """Some bytes, or the word that it is ready, and then nothing at all."""
    KEPT.append(reply)
    if frame.message["verb"] in ("fs.read", "fs.archive", "fs.write"):
        pipe = value(reply)
        if frame.message["verb"] == "fs.write":
            send(reply, {"progress": {"ready": True}})
        else:
            send(reply, {"progress": KNOWN | MEMBERS})
            os.write(pipe, b"x" * 1000)


def commits(reply: socket.socket, frame: Frame) -> None:
    """Says that a file is written that is not: at once, when half has come, of another size."""
    global turn
    if frame.message["verb"] != "fs.write":
        send_reply(reply, {"ok": False, "code": "failed", "message": "not now"})
        return
    turn += 1
    pipe = value(reply)
    done = {"size": PROMISED, "mtime_ns": 1, "inode": 2, "device": 3, "replaced": False}
    if turn % 4:
        send(reply, {"progress": {"ready": True}})
    if turn % 4 == 2:
        os.read(pipe, 65536)
    elif turn % 4 == 3:
        message_or_end(reply, pipe)
        done["size"] += 1
    send_reply(reply, {"ok": True, "data": done})
    os.close(pipe)


def floods(reply: socket.socket, frame: Frame) -> None:
    """What is there, again and again, and words that were not asked for."""
    until, number = time.monotonic() + 5, 0
    pipe = value(reply) if frame.message["verb"] in ("fs.read", "fs.archive", "fs.write") else None
    with contextlib.suppress(OSError):
        while time.monotonic() < until:
            number += 1
            said = {"text": "\u202e\u001b[31m" + "x" * 9000, "ready": True, "removed": number}
            send(reply, {"progress": KNOWN | MEMBERS | said})
    if pipe is not None:
        os.close(pipe)
    reply.close()


def descriptors(reply: socket.socket, frame: Frame) -> None:
    """Descriptors with every message, some of which are slow to close."""
    verb = frame.message["verb"]
    fds = [lingering(), os.pipe()[0], os.memfd_create("x")]
    if verb in ("fs.read", "fs.archive", "fs.write"):
        pipe = value(reply)
        raw(reply, b'{"progress":{"size":5,"mtime_ns":1,"inode":2,"device":3,"ready":true}}', fds)
        os.close(pipe)
    raw(reply, b'{"ok":true,"data":{"entry":null,"rows":[],"total":0,"roots":[]}}', fds)
    if os.fork() == 0:  # whose own close may be the one that waits
        signal.alarm(40)
        time.sleep(40)
    reply.close()


MODES: dict[str, Callable[[socket.socket, Frame], None]] = {
    mode.__name__: mode for mode in (figures, names, stalls, commits, floods, descriptors)
} | {
    "more": serving(lambda pipe, count: bytes_of(pipe, 16 * count)),
    "less": serving(lambda pipe, count: bytes_of(pipe, count - 1000)),
    "keeps_open": serving(keeps_open),
    "in_crumbs": serving(in_crumbs),
    "with_rights": serving(with_rights),
    "urgent": serving(urgent),
    "drips": serving(drips),
}


def main() -> None:
    """Until killed."""
    channel = take_channel(int(sys.argv[1]))
    print("ready", flush=True)
    while True:
        frame = receive(channel)
        reply = socket.socket(fileno=frame.fds[0])
        with contextlib.suppress(OSError, EOFError):  # the app has hung up already
            MODES[sys.argv[2]](reply, frame)


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    main()
