"""The two listeners: one worker of gunicorn each, on a socket that root bound.

Two processes, because each has an account of its own, and because remote load must not
starve users on the host. The app parent restarts them, and an arbiter of gunicorn's has no part in it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import ssl
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from svc.clients import SocketOwners, Uids
from svc.domain.audit import audit
from svc.helper.helper import Helper
from svc.limits import CONNECTIONS_MAX, STOP_GRACEFUL_S
from svc.log import log
from svc.settings import Settings
from svc.tls.certificates import Certificate
from svc.web import visitors
from svc.web.app import begin
from svc.web.gunicorn_worker.fair_worker import FairThreads, serve_alone
from svc.web.gunicorn_worker.malformed import FIELD_MAX

# Forward secrecy and authenticated encryption alone, as all suites of TLS 1.3 (which this does not select)
TLS12_SUITES = "ECDHE+AESGCM:ECDHE+CHACHA20:@SECLEVEL=2"


class Listener(NamedTuple):
    """One listener; `certificate` is None without TLS."""

    name: str
    fd: int  # the bound socket
    ready: int  # the pipe to report readiness on
    dev: bool
    certificate: Certificate | None
    app: Flask  # built before the fork
    netlink: int = -1  # of the host's network namespace, which tells whose a loopback connection is
    visitors: int = -1  # the pair by which the process of apps asks


class _Lines(logging.Handler):
    """Writes a record to our log, which redacts tokens."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self.process = process

    def emit(self, record: logging.LogRecord) -> None:
        trace = {"trace": "".join(traceback.format_exception(record.exc_info[1]))} if record.exc_info else {}
        log(self.process, record.getMessage(), record.levelname.lower(), **trace)


class _Log(Logger):
    """gunicorn's messages in our log; without its access log, since the app writes one."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers = [_Lines(str(cfg.proc_name).removeprefix("svc-"))]


class _Gunicorn(BaseApplication):
    """gunicorn configured by a dictionary alone."""

    def __init__(self, app: Flask, options: dict[str, Any]) -> None:
        self.flask_app = app
        self.options = options
        super().__init__()

    def load_config(self) -> None:
        for name, value in self.options.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        return self.flask_app


def _options(listener: Listener, settings: Settings, ready: Callable[[], None]) -> dict[str, Any]:
    options = {
        "worker_class": FairThreads,
        "user": os.geteuid(),  # the role's; gunicorn's default is that of the process which imported it
        "threads": settings.web_threads,
        "worker_tmp_dir": "/dev/shm",  # noqa: S108  a file, made by mkstemp, for an arbiter; must not touch a disk
        "graceful_timeout": STOP_GRACEFUL_S,
        "keepalive": 5,
        "worker_connections": CONNECTIONS_MAX,
        "loglevel": settings.log_level,
        "logger_class": _Log,
        "proc_name": f"svc-{listener.name}",
        # No header may change a client's address or scheme: only the kernel's values count.
        "forwarded_allow_ips": "",
        "forwarder_headers": "",
        "secure_scheme_headers": {},
        "header_map": "drop",
        "limit_request_line": 8190,
        "limit_request_fields": 100,
        "limit_request_field_size": FIELD_MAX,
        "post_worker_init": lambda _worker: ready(),
    }
    if listener.certificate:
        options |= {
            "certfile": listener.certificate.chain,
            "keyfile": listener.certificate.key,
            "ssl_context": _tls,
        }
    return options


def _tls(_config: object, make_default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    context = make_default()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(TLS12_SUITES)
    return context


def serve(
    listener: Listener, settings: Settings, helper: Helper, wake: Callable[[], None], beat: Callable[[], None]
) -> None:
    """Serve one listener until SIGTERM; requests in flight get STOP_GRACEFUL_S.

    Writes the first letter of its name to the ready pipe once it accepts requests, and calls
    `beat` each second.
    """

    def ready() -> None:
        with contextlib.suppress(OSError):
            os.write(listener.ready, listener.name[:1].encode())
        wake()  # the worker settles what a former process of this listener has left

    logging.captureWarnings(True)
    logging.getLogger().handlers = [_Lines(listener.name)]  # of other libraries
    begin(listener.app, settings, helper, dev=listener.dev, wake=wake)
    if listener.visitors >= 0:
        visitors.serve(socket.socket(fileno=listener.visitors), helper)
    listening = socket.socket(fileno=listener.fd)
    if listening.family != socket.AF_UNIX:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted connections inherit it
    if listener.netlink >= 0:
        FairThreads.uids_of_clients = SocketOwners(socket.socket(fileno=listener.netlink))
    FairThreads.uids = Uids(os.path.join(settings.state_dir, "enrolled"))
    try:
        serve_alone(_Gunicorn(listener.app, _options(listener, settings, ready)), listening, beat)
    finally:
        audit.write_counted(everyone=True)
