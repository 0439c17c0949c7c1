"""A TLS connection whose failure stays its own.

OpenSSL keeps the errors of a thread in a queue. Python 3.13 leaves the failure of a write to a closed
connection there, and takes it for that of the next read without data, on whichever connection the thread
reads then, until the process ends (python/cpython#148594). Reads that do not wait would fail for everybody.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any

_SCRATCH = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


class TlsSocket(ssl.SSLSocket):
    """The connections of a listener, by `SSLContext.sslsocket_class`."""

    def send(self, data: Any, flags: int = 0) -> int:
        """As of any connection."""
        try:
            return super().send(data, flags)
        except OSError:
            _forget_errors()
            raise

    def unwrap(self) -> Any:
        """As of any connection."""
        try:
            return super().unwrap()
        except OSError:
            _forget_errors()
            raise


def _forget_errors() -> None:
    """Empty the thread's queue: nothing in Python does only that; a refused list of ciphers does it too."""
    with suppress(ssl.SSLError):
        _SCRATCH.set_ciphers("none")
