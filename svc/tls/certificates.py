"""Certificates as files: what one says of itself, whether it can be served with, and a new one.

Nothing of the certificate library is loaded before it is used: who calls does
so in a process that ends, as the account that the files belong to.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import ssl
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

VALID_DAYS = 397  # what browsers take at most from a certificate
CHAIN_MAX = 1024 * 1024


class Certificate(NamedTuple):
    """Paths of the certificate chain, its leaf first, and of the leaf's private key (PEM)."""

    chain: str
    key: str


class Found(NamedTuple):
    """What the files hold; JSON values, so that another process can say it."""

    fault: str  # why nothing can be served with them; empty when it can
    fingerprint: str = ""  # SHA-256 of the leaf, as openssl and browsers print it
    names: tuple[str, ...] = ()
    ends_at: float = 0.0
    self_signed: bool = False


def look(certificate: Certificate) -> Found:
    """Read both files as the server would. What is wrong with them is in `fault`; dates are not judged."""
    fault = _unreadable(certificate.chain)
    if fault:
        return Found(fault)
    from cryptography import x509

    try:
        with open(certificate.chain, "rb") as file:
            leaf = x509.load_pem_x509_certificates(file.read(CHAIN_MAX))[0]
    except ValueError:
        return Found(f"{certificate.chain} holds no certificate in PEM form")
    return Found(
        _unreadable(certificate.key) or _unfit(certificate),
        fingerprint_of(leaf),
        tuple(_names_of(leaf)),
        leaf.not_valid_after_utc.timestamp(),
        leaf.issuer == leaf.subject,
    )


def _unreadable(path: str) -> str:
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            return "" if os.path.isfile(f"/proc/self/fd/{file.fileno()}") else f"{path} is not a regular file"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _unfit(certificate: Certificate) -> str:
    """Why OpenSSL would not serve with them: another certificate's key, an encrypted one, a weak one."""
    asked = []

    def passphrase() -> str:  # else OpenSSL would ask for it on the terminal
        asked.append(True)
        return "-"

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*certificate, password=passphrase)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"{certificate.key} is not the key of {certificate.chain}"
        if asked:
            return f"{certificate.key} is encrypted; the server has nobody to ask for its passphrase"
        what = (error.reason or "no key in PEM form").replace("_", " ").lower()
        return f"{certificate.key} and {certificate.chain} cannot be served with: {what}"
    return ""


def _names_of(leaf: x509.Certificate) -> list[str]:
    from cryptography import x509

    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return [
        *(name.lower() for name in names.get_values_for_type(x509.DNSName)),
        *map(_spelt, names.get_values_for_type(x509.IPAddress)),
    ]


def _spelt(address: Any) -> str:
    """An address as the settings spell it (ipaddress has its own way with ::ffff:192.0.2.7)."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    return socket.inet_ntop(family, address.packed)


def fingerprint_of(leaf: x509.Certificate) -> str:
    """SHA-256 over the certificate, in pairs of capital digits."""
    from cryptography.hazmat.primitives import hashes

    return leaf.fingerprint(hashes.SHA256()).hex(":").upper()


def make(certificate: Certificate, names: list[str]) -> str:
    """A new key and a certificate for these names, signed by itself; its fingerprint. Raises OSError.

    The old certificate goes before the new key comes: wherever this is cut
    short, no certificate lies beside another one's key.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    leaf = _signed(key, names)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    directory = os.path.dirname(certificate.chain)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    drafts = Certificate(certificate.chain + ".new", certificate.key + ".new")
    _write(drafts.key, private)
    _write(drafts.chain, leaf.public_bytes(serialization.Encoding.PEM))
    if os.path.lexists(certificate.chain):
        os.unlink(certificate.chain)
        _sync(directory)
    os.rename(drafts.key, certificate.key)
    _sync(directory)
    os.rename(drafts.chain, certificate.chain)
    _sync(directory)
    return fingerprint_of(leaf)


def _signed(key: ec.EllipticCurvePrivateKey, names: list[str]) -> x509.Certificate:
    """For a server and nothing else: who trusts it trusts no other certificate by it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0][:64])])
    now = datetime.datetime.now(datetime.UTC)
    server = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_signatures_only(), critical=True)
        .add_extension(server, critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _signatures_only() -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)  # what a cut run left may have another mode
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
