"""The two listeners: one gunicorn each, on a socket that root bound.

Two masters, because TLS applies to every socket of one master, and because
remote load must not starve users on the host.
"""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from svc.domain import audit
from svc.helper.helper import Helper
from svc.limits import CONNECTIONS_MAX, STOP_GRACEFUL_S
from svc.log import log
from svc.settings import Settings
from svc.tls.certificates import Certificate
from svc.web.app import create_app
from svc.web.gunicorn_worker.clients import Uids
from svc.web.gunicorn_worker.fair_worker import FairThreads

# Forward secrecy and authenticated encryption alone, as all suites of TLS 1.3 (which this does not select)
TLS12_SUITES = "ECDHE+AESGCM:ECDHE+CHACHA20:@SECLEVEL=2"


class Listener(NamedTuple):
    """One listener; `certificate` is None without TLS."""

    name: str
    fd: int  # the bound socket
    ready: int  # the pipe to report readiness on
    dev: bool
    certificate: Certificate | None


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
        "workers": 1,
        "threads": settings.web_threads,
        "preload_app": True,
        "worker_tmp_dir": "/dev/shm",  # noqa: S108  a heartbeat file, made by mkstemp; must not touch a disk
        "graceful_timeout": STOP_GRACEFUL_S,
        "timeout": 30,
        "keepalive": 5,
        "worker_connections": CONNECTIONS_MAX,
        "backlog": 1024,  # who finds no place tries again after a second (TCP), or fails (some Unix clients)
        "loglevel": settings.log_level,
        "logger_class": _Log,
        "proc_name": f"svc-{listener.name}",
        "control_socket_disable": True,
        # No header may change a client's address or scheme: only the kernel's values count.
        "forwarded_allow_ips": "",
        "forwarder_headers": "",
        "secure_scheme_headers": {},
        "header_map": "drop",
        "limit_request_line": 8190,
        "limit_request_fields": 100,
        "limit_request_field_size": 8190,
        "post_worker_init": lambda _worker: ready(),
        "worker_exit": lambda _server, _worker: audit.write_counted(everyone=True),
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


def serve(listener: Listener, settings: Settings, helper: Helper, wake: Callable[[], None]) -> None:
    """Serve one listener until SIGTERM; requests in flight get STOP_GRACEFUL_S.

    Writes the first letter of its name to the ready pipe once the worker accepts
    requests (gunicorn reports READY before its workers load).
    """

    def ready() -> None:
        with contextlib.suppress(OSError):
            os.write(listener.ready, listener.name[:1].encode())
        wake()  # the worker settles what a former process of this listener has left

    logging.captureWarnings(True)
    logging.getLogger().handlers = [_Lines(listener.name)]  # of other libraries
    app = create_app(settings, helper, listener=listener.name, dev=listener.dev, wake=wake)
    # By the socket-activation protocol, as descriptor 3, gunicorn neither chowns nor unlinks the socket;
    # the ready pipe and the socket pair have higher numbers.
    if listener.fd != 3:
        os.dup2(listener.fd, 3)
        os.close(listener.fd)
    os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
    FairThreads.uids = Uids(os.path.join(settings.state_dir, "enrolled"))
    _Gunicorn(app, _options(listener, settings, ready)).run()
