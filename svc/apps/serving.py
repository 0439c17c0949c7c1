"""The process of apps from its start to its end."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import NoReturn

from svc.apps import addresses
from svc.apps.gateway import Gateway
from svc.apps.pair import Listener
from svc_helper.shim.loop import Loop

BEAT_S = 1.0


def serve(listeners: Sequence[socket.socket], pair: socket.socket, beat: Callable[[], None]) -> NoReturn:
    """Serve the apps' connections until SIGTERM; calls `beat` each second."""
    loop = Loop()
    signal.signal(signal.SIGTERM, _end)

    def go_on() -> None:
        beat()
        loop.later(BEAT_S, go_on)

    go_on()
    find = partial(addresses.find, parent=addresses.LOCAL, scheme="http")
    authority = Listener(loop, pair)
    authority.on_ended(Gateway(loop, listeners, find, authority).end)
    loop.run()
    raise SystemExit(1)  # nothing ends the loop


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)
