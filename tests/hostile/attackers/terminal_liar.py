"""A user's own process in the place of that user's agent, for terminals: lies about them, shows rubbish.

Run as the user: `terminal_liar.py AGENT-PID MODE`, as usurper.py, which takes the channel.
"""

from __future__ import annotations

import contextlib
import itertools
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

from svc_helper.wire.protocol import Frame, receive, send_reply

ROW: dict[str, Any] = {
    "id": "t-000000", "title": "", "command": None, "cols": 80, "rows": 24, "viewers": 0, "state": "running",
    "exit_code": None, "opened_at": "2026-01-31T12:00:00Z", "active_at": "2026-01-31T12:00:00Z",
}  # fmt: skip
EVIL = "\u001b]0;owned\u0007\u001b[2J\u009b31m\u202e"
FACES: list[dict[str, Any]] = [
    {"title": EVIL, "command": [EVIL, "x" * 5000]},  # the one that is shown: nothing else is wrong with it
    {"title": "x" * 60_000}, {"title": 5}, {"title": "x\u0000"}, {"command": [EVIL] * 9000},
    {"command": {"x": 1}}, {"command": [5]},
    {"id": "../../x"}, {"id": "t-\u001b[2J"}, {"id": None}, {"cols": 0}, {"cols": FIGURE}, {"rows": True},
    {"viewers": -1}, {"state": EVIL}, {"exit_code": FIGURE}, {"opened_at": EVIL}, {"active_at": "9999-99-99"},
]  # fmt: skip
LISTS: list[Any] = [
    [ROW | face for face in FACES[:1]], *([ROW | face] for face in FACES[1:]), [ROW] * 5000, [[]], [None], {},
    "x", None, [ROW] * 16,
]  # fmt: skip
STATE = b's{"title":"x","cols":80,"rows":24}'
FRAMES = [
    b's{"title":5,"cols":80,"rows":24}', b's{"cols":0,"rows":24}', b's{"cols":80,"rows":99999}', b"s[]", b"s",
    b's{"title":"x","cols":80,"rows":24,"cols":81}', b's{"cols":NaN}', b"s" + b"[" * 4000, b"k{}", b"k",
    b'k{"bytes":-1}', b'k{"bytes":%d}' % 10**40, b'k{"bytes":1e9}', b"e{}", b'e{"reason":"lost"}',
    b'e{"reason":"exited","exit_code":"0"}', b"o" + b"x" * 100_000, b"\x00", b"\xff" * 100, b"", b"ix",
    b'r{"cols":1}',
]  # fmt: skip
turns = itertools.count()


def refuse(reply: socket.socket) -> None:
    """Whatever else is asked."""
    send_reply(reply, {"ok": False, "code": "failed", "message": EVIL})
    reply.close()


def viewer_of(reply: socket.socket) -> socket.socket:
    """The end of the pair that came with the call."""
    return socket.socket(fileno=receive(reply).fds[0])


def lists(reply: socket.socket, frame: Frame) -> None:
    """Another list for each call."""
    if frame.message["verb"] != "terminal.list":
        refuse(reply)
        return
    with contextlib.suppress(Exception):  # an answer too large to send is none
        send_reply(reply, {"ok": True, "data": {"terminals": LISTS[next(turns) % len(LISTS)]}})
    reply.close()


def records(reply: socket.socket, frame: Frame) -> None:
    """Another record of a new terminal for each call, and a viewer that nobody serves."""
    if not frame.message["verb"].startswith("terminal."):
        refuse(reply)
        return
    row = ROW | FACES[next(turns) % len(FACES)]
    with contextlib.suppress(Exception):
        send_reply(reply, {"ok": True, "data": {"terminal": row}})
    KEPT.append(reply)


def attached(show: Callable[[socket.socket], None]) -> Callable[[socket.socket, Frame], None]:
    """A mode that attaches every viewer, and shows it that; a command with input has it as its output."""

    def serve(reply: socket.socket, frame: Frame) -> None:
        verb = frame.message["verb"]
        if verb not in ("terminal.attach", "terminal.open", "ctr.pipe"):
            refuse(reply)
            return
        viewer = viewer_of(reply)
        if verb != "ctr.pipe":
            send_reply(reply, {"ok": True, "data": {"terminal": ROW}})
        threading.Thread(target=shown, args=(viewer, reply), daemon=True).start()

    def shown(viewer: socket.socket, reply: socket.socket) -> None:
        with contextlib.suppress(OSError):
            show(viewer)
        with contextlib.suppress(OSError):
            viewer.close()
        reply.close()

    return serve


def rubbish(viewer: socket.socket) -> None:
    """Another frame for each viewer, after a good one."""
    viewer.send(STATE)
    viewer.send(FRAMES[next(turns) % len(FRAMES)])
    time.sleep(1)


def titles(viewer: socket.socket) -> None:
    """A title of control characters, then nothing."""
    viewer.send(b's{"title":"\\u001b]0;owned\\u0007\\u009b31m","cols":80,"rows":24}')
    viewer.send(b'e{"reason":"exited","exit_code":0}')


def states(viewer: socket.socket) -> None:
    """As many states, all different, as go through."""
    for number in itertools.count():
        viewer.send(b's{"title":"%d","cols":%d,"rows":24}' % (number, number % 1000 + 1))


def output(viewer: socket.socket) -> None:
    """As much output as goes through."""
    while True:
        viewer.send(b"o" + bytes(32 * 1024))


def descriptors(viewer: socket.socket) -> None:
    """Descriptors with the frames, one of them slow to close."""
    fds = [lingering(), os.memfd_create("x"), os.pipe()[0]]
    for _ in range(20):
        raw(viewer, STATE, fds)
    time.sleep(40)  # whose own close may be the one that waits


MODES: dict[str, Callable[[socket.socket, Frame], None]] = {"lists": lists, "records": records} | {
    mode.__name__: attached(mode) for mode in (rubbish, titles, states, output, descriptors)
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
