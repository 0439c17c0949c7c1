"""The chain of the served certificate, for whoever asks: certificates alone, never a key.

Read by the account of a listener, again only when the file has changed. A chain file may hold the
private key too (some ACME clients write one file); only the blocks CERTIFICATE leave this module.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import stat
import threading
from typing import NamedTuple

from svc.tls.certificates import CHAIN_MAX

BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
LINE = 64  # characters of base64 in a line (RFC 7468)
CERTIFICATES_MAX = 20


class Chain(NamedTuple):
    """Certificates in PEM form, the leaf first, and the version of them."""

    pem: str
    tag: str


class PublicChain:
    """The certificates of one file, as last read; a file that is being replaced leaves the last ones."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._version: tuple[int, int, int] | None = None
        self._chain: Chain | None = None

    def get(self) -> Chain | None:
        """The chain as it is now; None when the file was never readable, or never held a certificate."""
        with self._lock:
            try:
                self._refresh()
            except OSError:
                self._version = None
            return self._chain

    def _refresh(self) -> None:
        status = os.stat(self.path)
        version = (status.st_ino, status.st_mtime_ns, status.st_size)
        if version == self._version or not stat.S_ISREG(status.st_mode):
            return
        with open(self.path, "rb") as file:
            found = chain_of(file.read(CHAIN_MAX))
        self._version = version
        self._chain = found or self._chain


def chain_of(content: bytes) -> Chain | None:
    """The certificates in a PEM file, each written anew from its bytes; None without one."""
    blocks = []
    for body in BLOCK.findall(content)[:CERTIFICATES_MAX]:
        try:
            der = base64.b64decode(b"".join(body.split()), validate=True)
        except binascii.Error:
            continue
        text = base64.b64encode(der).decode()
        lines = [text[at : at + LINE] for at in range(0, len(text), LINE)]
        blocks.append("\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]))
    pem = "".join(blocks)
    return Chain(pem, hashlib.sha256(pem.encode()).hexdigest()[:20]) if pem else None
