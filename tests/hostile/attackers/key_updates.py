"""A TLS client that changes its keys again and again, all prepared: nothing of it is data.

Python cannot change keys, so OpenSSL is called itself, over buffers in memory.
"""

from __future__ import annotations

import ctypes
import socket
from typing import Any

PART = 1 << 20


class Client:
    """A TLS connection over `sock`, after its handshake."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.tls = ctypes.CDLL("libssl.so.3")
        self.crypto = ctypes.CDLL("libcrypto.so.3")
        context = self._pointer(self.tls.SSL_CTX_new, self._pointer(self.tls.TLS_client_method))
        self.connection = self._pointer(self.tls.SSL_new, context)
        kind = self._pointer(self.crypto.BIO_s_mem)
        self.received, self.sent = (self._pointer(self.crypto.BIO_new, kind) for _ in range(2))
        self.tls.SSL_set_bio(self.connection, self.received, self.sent)
        self.tls.SSL_set_connect_state(self.connection)
        self.buffer = ctypes.create_string_buffer(PART)
        while self.tls.SSL_do_handshake(self.connection) != 1:
            self.sock.sendall(self._take())
            data = self.sock.recv(65536)
            assert data, "the handshake was refused"
            self.crypto.BIO_write(self.received, data, len(data))
        self.sock.sendall(self._take())

    def updates(self, count: int) -> bytes:
        """So many changes of keys, ready to be sent."""
        made = []
        for number in range(count):
            assert self.tls.SSL_key_update(self.connection, 0) == 1
            assert self.tls.SSL_do_handshake(self.connection) == 1
            if number % 10_000 == 0:
                made.append(self._take())
        return b"".join([*made, self._take()])

    def _take(self) -> bytes:
        data = b""
        while (count := self.crypto.BIO_read(self.sent, self.buffer, PART)) > 0:
            data += self.buffer.raw[:count]
        return data

    @staticmethod
    def _pointer(function: Any, *arguments: ctypes.c_void_p) -> ctypes.c_void_p:
        function.restype = ctypes.c_void_p
        return ctypes.c_void_p(function(*arguments))
