"""Everything that relies on private parts of gunicorn, which may change with each of its releases.

Written for gunicorn 27.0.1, the version in packaging/requirements.lock. Whoever updates gunicorn reads
these parts again and then changes the version here (tests/conventions/test_gunicorn.py):

- gunicorn.workers.gthread: ThreadWorker TConn
- gunicorn.workers.gthread.ThreadWorker: __init__ init_process get_thread_pool notify handle_exit accept
  enqueue_req finish_request handle handle_request handle_error murder_pending wait_for_and_dispatch_events
  _keepalive_after poller nr_conns worker_connections alive cfg run method_queue tpool
- gunicorn.workers.gthread.TConn: __init__ sock parser initialized client cfg close
- gunicorn.sock: ssl_context
- gunicorn.http: get_parser
- gunicorn.http.errors: ParseException and its subclasses
- gunicorn.http.parser.Parser: unreader finish_body
- gunicorn.http.body: Body LengthReader
- gunicorn.http.body.Body: reader read
- gunicorn.http.body.LengthReader: unreader length
- gunicorn.http.body.ChunkedReader: req
- gunicorn.http.unreader.Unreader: chunk unread take_buffered
- gunicorn.http.wsgi: gunicorn.socket Response
- gunicorn.http.wsgi.Response: default_headers
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from gunicorn.http.errors import ParseException as MalformedBody

__all__ = ["MalformedBody", "client", "connection", "note_client"]

_clients: WeakKeyDictionary[socket.socket, str] = WeakKeyDictionary()


def connection(environ: Mapping[str, Any]) -> socket.socket:
    """The accepted connection of a request."""
    sock: socket.socket = environ["gunicorn.socket"]
    return sock


def note_client(sock: socket.socket, name: str) -> None:
    """Note which client a connection counts as (svc.web.gunicorn_worker.shares)."""
    _clients[sock] = name


def client(environ: Mapping[str, Any]) -> str:
    """The client that the connection of a request counts as; empty where nobody has noted one."""
    return _clients.get(connection(environ), "")
