"""The TLS context of a listener, kept between connections and made again when its files change."""

from __future__ import annotations

import os
import ssl
from typing import Any

from gunicorn import sock as gunicorn_sock

from svc.log import log
from svc.web.gunicorn_worker.tls_socket import TlsSocket


class TlsContext:
    """Calling it gives the context; gunicorn makes one for each connection."""

    def __init__(self, cfg: Any) -> None:
        self.cfg = cfg
        self.versions: list[tuple[int, int]] | None = None
        self.context: ssl.SSLContext | None = None

    def __call__(self) -> ssl.SSLContext:
        """The context for the certificate and key as they are now.

        While they are not usable it is that for the last ones; raises OSError when there were none.
        """
        try:
            versions = [_version(path) for path in (self.cfg.certfile, self.cfg.keyfile)]
            if self.context is None or versions != self.versions:
                self.versions = versions
                self.context = gunicorn_sock.ssl_context(self.cfg)
                self.context.sslsocket_class = TlsSocket
        except OSError as error:
            if self.context is None:
                raise
            if self.versions is not None:
                log(
                    "tls",
                    "the changed certificate is not usable; the last one is served",
                    "error",
                    why=str(error),
                )
            self.versions = None
        return self.context


def _version(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns
