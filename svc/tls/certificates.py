"""Certificate files: inspect one, and create a self-signed one.

The certificate library is imported on first use, in a short-lived process of the account that owns the
files.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import ssl
from typing import TYPE_CHECKING, Any, NamedTuple

from svc_helper import atomic_file

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

VALID_DAYS = 397  # the most that browsers accept
CHAIN_MAX = 1024 * 1024


class Certificate(NamedTuple):
    """Paths of the certificate chain, leaf first, and of the leaf's private key (PEM)."""

    chain: str
    key: str


class CertificateInfo(NamedTuple):
    """What the files hold, in JSON values: another process may inspect them."""

    problem: str  # why TLS cannot be served with them; empty when it can
    fingerprint: str = ""  # SHA-256 of the leaf, as openssl and browsers print it
    names: tuple[str, ...] = ()
    expires_at: float = 0.0  # Unix time
    self_signed: bool = False


def inspect(certificate: Certificate) -> CertificateInfo:
    """Read both files as the server would; `problem` does not cover the dates."""
    problem = _unreadable(certificate.chain)
    if problem:
        return CertificateInfo(problem)
    from cryptography import x509

    try:
        with open(certificate.chain, "rb") as file:
            leaf = x509.load_pem_x509_certificates(file.read(CHAIN_MAX))[0]
    except ValueError:
        return CertificateInfo(f"{certificate.chain} holds no certificate in PEM form")
    return CertificateInfo(
        _unreadable(certificate.key) or _unusable(certificate),
        fingerprint_of(leaf),
        tuple(_names_of(leaf)),
        leaf.not_valid_after_utc.timestamp(),
        leaf.issuer == leaf.subject,
    )


def _unreadable(path: str) -> str:
    try:
        with open(path, "rb", opener=_open_without_blocking) as file:
            return "" if os.path.isfile(f"/proc/self/fd/{file.fileno()}") else f"{path} is not a regular file"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"


def _open_without_blocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _unusable(certificate: Certificate) -> str:
    """Why OpenSSL refuses the pair: the key of another certificate, an encrypted key, a weak one."""
    is_encrypted = False

    def passphrase() -> str:  # otherwise OpenSSL asks for it on the terminal
        nonlocal is_encrypted
        is_encrypted = True
        return "-"

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*certificate, password=passphrase)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"{certificate.key} is not the key of {certificate.chain}"
        if is_encrypted:
            return f"{certificate.key} is encrypted; store it without a passphrase"
        reason = (error.reason or "no key in PEM form").replace("_", " ").lower()
        return f"{certificate.chain} and {certificate.key} are not usable for TLS: {reason}"
    return ""


def _names_of(leaf: x509.Certificate) -> list[str]:
    from cryptography import x509

    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return [
        *(name.lower() for name in names.get_values_for_type(x509.DNSName)),
        *map(_format_address, names.get_values_for_type(x509.IPAddress)),
    ]


def _format_address(address: Any) -> str:
    """An address in the form of the settings (ipaddress writes ::ffff:192.0.2.7 differently)."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    return socket.inet_ntop(family, address.packed)


def fingerprint_of(leaf: x509.Certificate) -> str:
    """The SHA-256 fingerprint, as upper-case pairs with colons."""
    from cryptography.hazmat.primitives import hashes

    return leaf.fingerprint(hashes.SHA256()).hex(":").upper()


def create(certificate: Certificate, names: list[str]) -> str:
    """Write a new key and a self-signed certificate for these names; returns its fingerprint. Raises OSError.

    The old certificate is removed before the new key is written: after an
    interruption no certificate lies beside the key of another.
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
    atomic_file.write(drafts.key, private, 0o600)
    atomic_file.write(drafts.chain, leaf.public_bytes(serialization.Encoding.PEM), 0o600)
    if os.path.lexists(certificate.chain):
        os.unlink(certificate.chain)
        atomic_file.sync_directory(directory)
    os.rename(drafts.key, certificate.key)
    atomic_file.sync_directory(directory)
    os.rename(drafts.chain, certificate.chain)
    atomic_file.sync_directory(directory)
    return fingerprint_of(leaf)


def _signed(key: ec.EllipticCurvePrivateKey, names: list[str]) -> x509.Certificate:
    """A certificate for a server, not a CA: trusting it trusts no other certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0][:64])])
    now = datetime.datetime.now(datetime.UTC)
    server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
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

    refused = (
        "content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "key_cert_sign",
        "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(digital_signature=True, **dict.fromkeys(refused, False))


def _general_name(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
