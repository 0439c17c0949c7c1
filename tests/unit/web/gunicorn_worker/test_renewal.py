"""A listener that has grown ends while nobody is connected, and never before."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path
from typing import Any

from unit.web.gunicorn_worker.test_connections import GET, answer, connection
from unit.web.gunicorn_worker.test_listeners import Served, shared_listeners, socket_folder  # noqa: F401

from svc.web.gunicorn_worker import renewal
from svc.web.gunicorn_worker.renewal import GROWN_MAX_KIB, QUIET_S, Renewal

MODULE = "svc.web.gunicorn_worker.renewal"


def private_memory(size: int) -> mmap.mmap:
    """So many bytes that are new to this process: an allocator may have some that earlier tests left."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(bytes(size))
    return memory


def test_it_is_due_a_minute_after_the_last_connection_of_a_process_that_has_grown() -> None:
    mine = Renewal()
    assert not mine.is_due(0, 100.0)
    assert not mine.is_due(0, 100.0 + QUIET_S), "it has not grown"
    grown = private_memory((GROWN_MAX_KIB + 1024) * 1024)
    assert not mine.is_due(0, 110.0 + QUIET_S), "the memory is looked at once in that time"
    assert not mine.is_due(1, 120.0 + QUIET_S)
    assert not mine.is_due(0, 130.0 + QUIET_S)
    assert not mine.is_due(0, 129.0 + 2 * QUIET_S), "somebody was connected less than a minute ago"
    assert mine.is_due(0, 130.0 + 2 * QUIET_S)
    assert GROWN_MAX_KIB < mine.grown_kib < GROWN_MAX_KIB + 8 * 1024
    grown.close()
    assert not mine.is_due(0, 130.0 + 3 * QUIET_S), "it was given back"


def test_the_memory_of_a_process_is_read_from_the_kernel() -> None:
    before = renewal.anonymous_kib()
    held = private_memory(32 << 20)
    assert 30_000 < renewal.anonymous_kib() - before < 40_000
    held.close()


def ended(server: Served) -> int | None:
    """The exit status of a listener; it stays for the end of the test."""
    found = os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    return None if found is None else found.si_status


def test_a_listener_ends_when_its_last_client_has_gone(
    tmp_path: Path,
    socket_folder: Path,  # noqa: F811
) -> None:
    """What a client has begun is answered; who comes later waits in the listening socket."""
    at_once = {f"{MODULE}.QUIET_S": 0.5, f"{MODULE}.GROWN_MAX_KIB": -(1 << 30)}
    with shared_listeners(tmp_path, socket_folder, at_once) as shared:
        server: Any = shared.start("unix")
        with connection(server) as sock:
            sock.sendall(GET[:10])
            time.sleep(1.5)
            assert ended(server) is None
            sock.sendall(GET[10:])
            assert answer(sock).startswith(b"HTTP/1.1 200")
        deadline = time.monotonic() + 10
        while ended(server) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert ended(server) == 0
        with connection(server) as late:
            late.sendall(GET)  # neither refused nor lost: the socket is the parent's
