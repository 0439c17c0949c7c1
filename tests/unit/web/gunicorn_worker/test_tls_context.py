"""The certificate that the TLS listener serves while its files change."""

from __future__ import annotations

import os
import socket
import ssl
from pathlib import Path
from typing import Any

from unit.web.gunicorn_worker.test_listeners import Served, served, socket_folder  # noqa: F401  (fixtures)

from svc.tls import certificates
from svc.tls.certificates import Certificate


def certificate_of(server: Served) -> bytes | None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    address = server.listener.getsockname()
    with socket.create_connection(address, timeout=10) as plain, context.wrap_socket(plain) as sock:
        return sock.getpeercert(binary_form=True)


def test_a_new_certificate_is_served_at_once_and_a_broken_one_never(served: Any, tmp_path: Path) -> None:  # noqa: F811  (fixture)
    files = Certificate(str(tmp_path / "tls" / "cert.pem"), str(tmp_path / "tls" / "key.pem"))
    certificates.create(files, ["localhost"])
    server = served("tls", certificate=files)
    first = certificate_of(server)
    certificates.create(files, ["localhost", "another.example"])
    second = certificate_of(server)
    assert second != first
    Path(files.key).write_text("nonsense")
    assert certificate_of(server) == second
    os.unlink(files.chain)
    assert certificate_of(server) == second
