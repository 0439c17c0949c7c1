"""Certificates as files: a new one as every client wants it, and what is wrong with others."""

from __future__ import annotations

import os
import socket
import ssl
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from svc.tls import certificates
from svc.tls.certificates import Certificate

NAMES = ["svc.example", "node7", "192.0.2.7", "2001:db8::7"]


@pytest.fixture
def created(tmp_path: Path) -> Certificate:
    """A certificate as svc makes it."""
    certificate = Certificate(str(tmp_path / "tls" / "cert.pem"), str(tmp_path / "tls" / "key.pem"))
    certificates.create(certificate, NAMES)
    return certificate


def leaf_of(certificate: Certificate) -> x509.Certificate:
    return x509.load_pem_x509_certificate(Path(certificate.chain).read_bytes())


def test_a_new_one_is_a_servers_alone(created: Certificate) -> None:
    requested = {
        x509.SubjectAlternativeName: False,
        x509.BasicConstraints: True,
        x509.KeyUsage: True,
        x509.ExtendedKeyUsage: False,
        x509.SubjectKeyIdentifier: False,
        x509.AuthorityKeyIdentifier: False,
    }
    leaf = leaf_of(created)
    assert {type(one.value): one.critical for one in leaf.extensions} == requested
    value = leaf.extensions.get_extension_for_class
    assert not value(x509.BasicConstraints).value.ca
    assert value(x509.KeyUsage).value.digital_signature
    assert not value(x509.KeyUsage).value.key_cert_sign
    assert list(value(x509.ExtendedKeyUsage).value) == [x509.ExtendedKeyUsageOID.SERVER_AUTH]
    assert leaf.not_valid_after_utc - leaf.not_valid_before_utc <= certificates.datetime.timedelta(days=398)


def test_its_files_are_its_owners_alone(created: Certificate) -> None:
    assert stat.S_IMODE(os.stat(created.key).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(created.key)).st_mode) == 0o700
    assert sorted(os.listdir(os.path.dirname(created.key))) == ["cert.pem", "key.pem"]


def test_what_it_says_of_itself_is_found(created: Certificate) -> None:
    found = certificates.inspect(created)
    assert (found.problem, found.self_signed, found.names) == ("", True, tuple(NAMES))
    assert found.expires_at == leaf_of(created).not_valid_after_utc.timestamp()


@pytest.mark.allow_commands("openssl")
def test_openssl_prints_the_same_fingerprint(created: Certificate) -> None:
    command = ["openssl", "x509", "-in", created.chain, "-noout", "-fingerprint", "-sha256"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip().partition("=")[2] == certificates.inspect(created).fingerprint


@pytest.mark.allow_commands("openssl")
def test_openssl_finds_nothing_to_blame_in_strict_mode(created: Certificate) -> None:
    for name in ("-verify_hostname=svc.example", "-verify_ip=192.0.2.7"):
        command = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver"]
        command += [*name.split("="), "-CAfile", created.chain, created.chain]
        assert subprocess.run(command, capture_output=True, text=True, check=False).returncode == 0


def handshake(created: Certificate, name: str, flags: ssl.VerifyFlags) -> None:
    """One client's greeting of a server with this certificate; raises what the client raises."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*created)
    client = ssl.create_default_context(cafile=created.chain)
    client.verify_flags |= flags
    near, far = socket.socketpair()

    def serve() -> None:
        try:
            server.wrap_socket(far, server_side=True).close()
        except OSError:
            far.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        client.wrap_socket(near, server_hostname=name).close()
    finally:
        near.close()
        thread.join(5)


@pytest.mark.parametrize("name", NAMES)
def test_strict_clients_take_it_under_each_name(created: Certificate, name: str) -> None:
    """As Python does from 3.13 on by itself."""
    handshake(created, name, ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)
    handshake(created, name, ssl.VERIFY_X509_STRICT)


def test_clients_take_it_under_no_other_name(created: Certificate) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(created, "svc.example.evil.test", ssl.VERIFY_X509_STRICT)


def encrypted(created: Certificate) -> None:
    from cryptography.hazmat.primitives import serialization as forms

    key = forms.load_pem_private_key(Path(created.key).read_bytes(), None)
    Path(created.key).write_bytes(
        key.private_bytes(
            forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(b"kept elsewhere")
        )
    )


def another_key(created: Certificate) -> None:
    other = Certificate(created.chain + ".other", created.key + ".other")
    certificates.create(other, NAMES)
    os.rename(other.key, created.key)


def fifo(created: Certificate) -> None:
    os.unlink(created.key)
    os.mkfifo(created.key)  # opening it would wait for ever


FAULTS: dict[str, tuple[Callable[[Certificate], None], str]] = {
    "another key": (another_key, "is not the key of"),
    "an encrypted key": (encrypted, "is encrypted"),
    "an empty key": (lambda created: Path(created.key).write_text(""), "not usable for TLS"),
    "a certificate as key": (
        lambda created: Path(created.key).write_bytes(Path(created.chain).read_bytes()),
        "not usable for TLS",
    ),
    "no key": (lambda created: os.unlink(created.key), "No such file"),
    "no certificate": (lambda created: os.unlink(created.chain), "No such file"),
    "a directory": (lambda created: (os.unlink(created.chain), os.mkdir(created.chain))[0], "Is a directory"),
    "a FIFO": (fifo, "not a regular file"),
    "an empty certificate": (lambda created: Path(created.chain).write_text(""), "holds no certificate"),
    "bytes": (lambda created: Path(created.chain).write_bytes(os.urandom(2000)), "holds no certificate"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_what_cannot_be_served_with_is_said(created: Certificate, what: str) -> None:
    spoil, said = FAULTS[what]
    spoil(created)
    assert said in certificates.inspect(created).problem


@pytest.mark.parametrize("calls", range(12))
def test_cut_short_anywhere_no_key_lies_beside_another_certificate(
    created: Certificate, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    """The power fails at the n-th call that changes or secures something."""
    left = [calls]

    def failing(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] -= 1
            return real(*arguments, **named)

        return call

    with monkeypatch.context() as patch:
        for name in ("unlink", "rename", "fsync"):
            patch.setattr(certificates.os, name, failing(getattr(os, name)))
        try:
            after = certificates.create(created, NAMES)
        except KeyboardInterrupt:
            after = ""
    assert not os.path.lexists(created.chain) or not certificates.inspect(created).problem
    assert bool(after) == (calls > 7)
    certificates.create(created, NAMES)
    assert not certificates.inspect(created).problem
