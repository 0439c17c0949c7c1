"""A user's own process in the place of that user's agent: takes its channel and answers as the mode says.

Run as the user: `usurper.py AGENT-PID MODE`. The agent is stopped, not ended, so
that the helper goes on giving it calls; they are read here.
"""

from __future__ import annotations

import array
import ctypes
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

from svc_helper.wire.protocol import Frame, receive, send, send_reply

SYS_PIDFD_GETFD = 438
CHANNEL_FD = 3
FIGURE = 10**4000


def take_channel(pid: int) -> socket.socket:
    """A copy of the agent's end of its channel."""
    pidfd = os.pidfd_open(pid)
    taken = ctypes.CDLL(None, use_errno=True).syscall(SYS_PIDFD_GETFD, pidfd, CHANNEL_FD, 0)
    if taken < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    signal.pidfd_send_signal(pidfd, signal.SIGSTOP)
    return socket.socket(fileno=taken)


def raw(reply: socket.socket, data: bytes, fds: list[int] | None = None) -> None:
    """Any bytes with any descriptors."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    reply.sendmsg([data], rights)


def lingering() -> int:
    """A connection whose close waits for a far end that never reads."""
    listener = socket.create_server(("127.0.0.1", 0))
    out = socket.create_connection(listener.getsockname())
    KEPT.append(listener.accept()[0])
    out.setblocking(False)
    try:
        while True:
            out.send(b"x" * 65536)
    except BlockingIOError:
        pass
    out.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
    return out.detach()


KEPT: list[socket.socket] = []


def silent(reply: socket.socket, _frame: Frame) -> None:
    """Never answer, never hang up."""
    KEPT.append(reply)


def nonsense(reply: socket.socket, frame: Frame) -> None:
    """Well-formed answers of the wrong types, another for each call."""
    wrong: list[Any] = [
        {},
        {"containers": 7},
        {"containers": [{"id": ["x"]}, 5]},
        {"containers": [{"id": "x", "exit_code": FIGURE}]},
        {"containers": [{"id": "ws-00000000", "status": {}, "exit_code": True}]},
        {"exists": 1, "status": "running", "present": "yes"},
        {"present": True, "digest": 5, "size_bytes": FIGURE, "exists": True, "status": "running"},
        {"text": "\u0000\u001b[2J", "truncated": 0, "exit_code": FIGURE, "stdout": "***"},
    ]
    send_reply(reply, {"ok": True, "data": wrong[len(KEPT) % len(wrong)]})
    KEPT.append(reply)


def garbage(reply: socket.socket, _frame: Frame) -> None:
    """No protocol at all: another frame for each call."""
    frames: list[bytes] = [
        b"\xff\xfe", b"[" * 60000, b'{"ok":true,"data":"\\ud800"}', b'{"ok":NaN}', b'{"ok":1e999}',
        b'{"ok":true,"ok":true}', b'{"memfd":4294967296}', b'{"memfd":100}', b"7" * 65000,
        b'{"ok":false,"code":"root","message":"\\u001b]0;x"}', b'{"ok":false,"code":[],"message":{}}',
    ]  # fmt: skip
    raw(reply, frames[len(KEPT) % len(frames)])
    KEPT.append(reply)


def memfds(reply: socket.socket, _frame: Frame) -> None:
    """What is no sealed memfd of the announced size: unsealed, huge and sparse, a pipe, a terminal's."""
    kind = len(KEPT) % 4
    fd = os.memfd_create("x", os.MFD_ALLOW_SEALING) if kind < 2 else os.pipe()[0]
    if kind == 1:
        os.truncate(fd, 1 << 42)
    raw(reply, b'{"memfd":%d}' % (1 << 42 if kind == 1 else 100), [fd])
    os.close(fd)
    KEPT.append(reply)


def linger(reply: socket.socket, _frame: Frame) -> None:
    """A good answer with a descriptor whose close does not come back."""
    if os.fork() == 0:  # whose own close may be the one that waits
        signal.alarm(40)
        fd = lingering()
        raw(reply, b'{"ok":true,"data":{"text":"","truncated":false}}', [fd])
        os.close(fd)
        time.sleep(40)
    KEPT.append(reply)


def flood(reply: socket.socket, _frame: Frame) -> None:
    """Progress without end, each message different."""
    until = time.monotonic() + 6
    number = 0
    while time.monotonic() < until:
        number += 1
        figures = {
            "current": FIGURE,
            "total": -1,
            "unit": 5,
            "text": f"\u202e\u001b[31m{number}" + "x" * 9000,
        }
        try:
            send(reply, {"progress": figures})
        except OSError:
            return
    reply.close()


MODES: dict[str, Callable[[socket.socket, Frame], None]] = {
    mode.__name__: mode for mode in (silent, nonsense, garbage, memfds, linger, flood)
}


def main() -> None:
    """Until killed."""
    channel = take_channel(int(sys.argv[1]))
    print("ready", flush=True)
    while True:
        frame = receive(channel)
        try:
            MODES[sys.argv[2]](socket.socket(fileno=frame.fds[0]), frame)
        except OSError:
            continue  # the app has hung up already


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    main()
