"""The HTTPS door's certificate: the administrator's, else one made at first start.

`SVC_TLS_CERT` and `SVC_TLS_KEY` name the administrator's; without them a
self-signed one for the host's own names (and SVC_PUBLIC_HOSTS) is kept in tls/
beside the database.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import sys
from typing import Any

from svc.errors import HostRefused, SettingInvalid
from svc.settings import Settings
from svc.web.doors import Certificate

VALID_DAYS = 397  # what browsers take at most from a certificate


def ensure_certificate(settings: Settings) -> Certificate:
    """The certificate to serve with, made when there is none.

    Raises SettingInvalid when only one of the two settings is given or a file
    cannot be read, HostRefused when making one fails.
    """
    given = Certificate(settings.tls_cert, settings.tls_key)
    if any(given):
        for name, path in (("SVC_TLS_CERT", given.chain), ("SVC_TLS_KEY", given.key)):
            if not path or not os.access(path, os.R_OK):
                raise SettingInvalid(f"{name} names no file that the service can read", hint="svc env")
        return given
    directory = os.path.join(os.path.dirname(settings.db), "tls")
    own = Certificate(os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem"))
    if not (os.path.isfile(own.chain) and os.path.isfile(own.key)):
        _make_in_child(own, public_names(settings))
    return own


def public_names(settings: Settings) -> list[str]:
    """The names and addresses that clients may call this host by."""
    if settings.public_hosts:
        return list(settings.public_hosts)
    names = [socket.gethostname(), socket.getfqdn(), "localhost", "127.0.0.1", "::1"]
    return list(dict.fromkeys(name.lower() for name in names if name))


def _make_in_child(certificate: Certificate, names: list[str]) -> None:
    """In a child, so that the memory of the certificate library is not kept for the server's whole life."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _make(certificate, names)
            code = 0
        except OSError as error:
            print(f"svc: {error}", file=sys.stderr)
        finally:
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        raise HostRefused(
            f"no certificate could be made in {os.path.dirname(certificate.chain)}",
            hint="sudo svc admin doctor",
        )


def _make(certificate: Certificate, names: list[str]) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0][:64])])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    )
    signed = builder.sign(key, hashes.SHA256())
    os.makedirs(os.path.dirname(certificate.chain), mode=0o700, exist_ok=True)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(certificate.key, private)
    _write(certificate.chain, signed.public_bytes(serialization.Encoding.PEM))


def _general_name(name: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(path: str, content: bytes) -> None:
    temporary = path + ".new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)
