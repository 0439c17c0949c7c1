"""Reads of TLS that would not come back: OpenSSL goes on for as long as it gets what brings no data.

TLS 1.3 lets a client change its keys as often as it likes (KeyUpdate, RFC 8446, 4.6.3), and one SSL_read()
takes as many of these 27 bytes as there are, at 4 MB/s. A stranger with a prepared stream of them would
keep the thread that reads the heads of all connections. Python sets SSL_MODE_AUTO_RETRY and has no limit.

So another thread inspects the processor time that a read has used, which no busy host prolongs, and puts
/dev/null in the place of its connection: the read ends.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from svc.log import log

LONGEST_S = 0.05  # of processor time; a handshake takes 2 ms, a read of 64 KiB less than 1
PERIOD_S = 0.02
LOGGED_S = 60.0

Result = TypeVar("Result")

_lock = threading.Lock()
_reading: dict[int, tuple[Any, float]] = {}  # by thread: its connection, its processor time at the begin
_busy = threading.Event()
_logged_at = -LOGGED_S
_watching = False


def bounded(sock: Any, read: Callable[[], Result]) -> Result:
    """A read or a handshake of a connection, in a thread that serves others too; raises what it raises.

    One that does not come back ends as if the client had closed the connection.
    """
    if not isinstance(sock, ssl.SSLSocket):
        return read()
    me = threading.get_ident()
    with _lock:
        _reading[me] = sock, time.thread_time()
        if not _busy.is_set():
            _watch()
    try:
        return read()
    finally:
        with _lock:  # from here on the descriptor may be closed, and used again
            del _reading[me]


def _watch() -> None:
    """Begin to look, with the lock held: the thread is started with the first read, after every fork."""
    global _watching
    _busy.set()
    if not _watching:
        _watching = True
        threading.Thread(target=_inspect, daemon=True, name="tls-reads").start()


def _inspect() -> None:
    while True:
        _busy.wait()
        time.sleep(PERIOD_S)
        with _lock:
            if not _reading:
                _busy.clear()
            for thread, (sock, began) in _reading.items():
                if time.clock_gettime(time.pthread_getcpuclockid(thread)) - began > LONGEST_S:
                    with contextlib.suppress(OSError):  # no descriptor is free: once more in a moment
                        _end(sock)


def _end(sock: ssl.SSLSocket) -> None:
    global _logged_at
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.dup2(nothing, sock.fileno(), inheritable=False)
    finally:
        os.close(nothing)
    if time.monotonic() > _logged_at + LOGGED_S:
        _logged_at = time.monotonic()
        log("tls", "a connection that kept TLS busy without data was closed", "warning")
