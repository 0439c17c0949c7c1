"""The process of apps from its start to its end."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import NoReturn

from svc.apps import addresses
from svc.apps.gateway import Client, Gateway
from svc.apps.pair import Listener
from svc.clients import SocketOwners, Uids
from svc_helper.shim.loop import Loop

BEAT_S = 1.0
UNKNOWN = "of nobody that the kernel knows"


def serve(
    listeners: Sequence[socket.socket], pair: socket.socket, client_of: Client, beat: Callable[[], None]
) -> NoReturn:
    """Serve the apps' connections until SIGTERM; calls `beat` each second."""
    loop = Loop()
    signal.signal(signal.SIGTERM, _end)

    def go_on() -> None:
        beat()
        loop.later(BEAT_S, go_on)

    go_on()
    find = partial(addresses.find, parent=addresses.LOCAL, scheme="http")
    authority = Listener(loop, pair)
    authority.on_ended(Gateway(loop, listeners, find, authority, client_of).end)
    loop.run()
    raise SystemExit(1)  # nothing ends the loop


def client_by(owners: SocketOwners, uids: Uids) -> Client:
    """Whose a loopback connection is: a user of the host, also behind `ssh -L`."""

    def client_of(sock: socket.socket) -> str:
        uid = owners.uid_of(sock.getpeername(), sock.getsockname())
        return UNKNOWN if uid is None else uids.client_of(uid)

    return client_of


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)
