"""The two listeners: one gunicorn each, on a listener that root bound.

Two masters, because TLS covers every listener of one, and because remote load
must not starve the people on the host.
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

from svc.helper.helper import Helper
from svc.limits import STOP_GRACEFUL_S
from svc.log import log
from svc.settings import Settings
from svc.tls.certificates import Certificate
from svc.web.app import create_app
from svc.web.gunicorn_worker.fair_worker import FairThreads


class Listener(NamedTuple):
    """One listener: name, descriptor of the bound socket, ready pipe, and certificate (None without TLS)."""

    name: str
    fd: int
    ready: int
    dev: bool
    certificate: Certificate | None


class _Lines(logging.Handler):
    """Passes a record on as a line of our log, which no token's secret gets into."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self.process = process

    def emit(self, record: logging.LogRecord) -> None:
        trace = {"trace": "".join(traceback.format_exception(record.exc_info[1]))} if record.exc_info else {}
        log(self.process, record.getMessage(), record.levelname.lower(), **trace)


class _Log(Logger):
    """gunicorn's own words as lines of our log; no access log, the app writes its own."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        name = str(cfg.proc_name).removeprefix("svc-")
        handler = _Lines(name)
        self.error_log.handlers = [handler]


class _Gunicorn(BaseApplication):
    """A gunicorn that is configured by a dictionary alone."""

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
        "workers": 1,
        "threads": settings.web_threads,
        "preload_app": True,
        "worker_tmp_dir": "/dev/shm",  # noqa: S108  a heartbeat file, made by mkstemp; must not touch a disk
        "graceful_timeout": STOP_GRACEFUL_S,
        "timeout": 30,
        "keepalive": 5,
        "backlog": 256,
        "loglevel": settings.log_level,
        "logger_class": _Log,
        "proc_name": f"svc-{listener.name}",
        "control_socket_disable": True,
        # Nothing that a client sends may change who it is or how it came (DESIGN: the kernel's word alone).
        "forwarded_allow_ips": "",
        "forwarder_headers": "",
        "secure_scheme_headers": {},
        "header_map": "drop",
        "limit_request_line": 8190,
        "limit_request_fields": 100,
        "limit_request_field_size": 8190,
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
    return context


def serve(listener: Listener, settings: Settings, helper: Helper, wake: Callable[[], None]) -> None:
    """Serve one listener until SIGTERM; requests in flight get STOP_GRACEFUL_S.

    Writes the first letter of its name to the ready pipe when the worker accepts requests, which is
    when the listener answers (gunicorn's own READY comes before its workers load).
    """

    def ready() -> None:
        with contextlib.suppress(OSError):
            os.write(listener.ready, listener.name[:1].encode())

    logging.captureWarnings(True)
    logging.getLogger().handlers = [_Lines(listener.name)]  # what other libraries say
    app = create_app(settings, helper, listener=listener.name, dev=listener.dev, wake=wake)
    # A listener that gunicorn must neither chown nor unlink comes by the socket-activation protocol, as
    # number 3; the ready pipe and the pair keep their numbers, both above it.
    if listener.fd != 3:
        os.dup2(listener.fd, 3)
        os.close(listener.fd)
    os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
    _Gunicorn(app, _options(listener, settings, ready)).run()
