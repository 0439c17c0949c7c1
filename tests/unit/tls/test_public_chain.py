"""The chain that everybody may have: certificates alone, as the file is now."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from svc.tls import certificates
from svc.tls.certificates import Certificate
from svc.tls.public_chain import CERTIFICATES_MAX, PublicChain, chain_of


def made(folder: Path, name: str) -> tuple[bytes, bytes]:
    """The certificate and the key of a new pair for a name."""
    files = Certificate(str(folder / name / "cert.pem"), str(folder / name / "key.pem"))
    certificates.create(files, [name])
    return Path(files.chain).read_bytes(), Path(files.key).read_bytes()


def test_a_key_in_the_same_file_stays_there(tmp_path: Path) -> None:
    """Some ACME clients write one file with everything."""
    leaf, key = made(tmp_path, "svc.example")
    above, _ = made(tmp_path, "authority.example")
    notes = b"subject=/CN=svc.example\n\xff\x1b[2J\n"
    chain = chain_of(key + notes + leaf + b"-----BEGIN CERTIFICATE-----\n" + key + above)
    assert chain
    assert chain.pem.encode() == leaf + above
    assert "PRIVATE" not in chain.pem


def test_nothing_else_is_a_certificate(tmp_path: Path) -> None:
    _, key = made(tmp_path, "svc.example")
    for content in (b"", key, b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n", b"\xff" * 99):
        assert chain_of(content) is None


def test_a_chain_has_an_end(tmp_path: Path) -> None:
    leaf, _ = made(tmp_path, "svc.example")
    chain = chain_of(leaf * 100)
    assert chain
    assert chain.pem.count("BEGIN") == CERTIFICATES_MAX


def test_windows_line_ends_become_plain_ones(tmp_path: Path) -> None:
    leaf, _ = made(tmp_path, "svc.example")
    chain = chain_of(leaf.replace(b"\n", b"\r\n"))
    assert chain
    assert chain.pem.encode() == leaf


def test_it_follows_the_file_and_keeps_the_last_one(tmp_path: Path) -> None:
    first, _ = made(tmp_path, "one.example")
    second, key = made(tmp_path, "two.example")
    file = tmp_path / "chain.pem"
    served = PublicChain(str(file))
    assert served.get() is None, "there is no file yet"
    file.write_bytes(first)
    one = served.get()
    assert one
    assert one.pem.encode() == first
    assert served.get() is one, "an unchanged file is not read again"
    for broken in (b"nonsense", key):
        file.write_bytes(broken)
        assert served.get() == one
    file.unlink()
    assert served.get() == one
    file.write_bytes(second)
    two = served.get()
    assert two
    assert two.pem.encode() == second
    assert two.tag != one.tag
    assert ssl.PEM_cert_to_DER_cert(two.pem)


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert PublicChain(str(tmp_path / "pipe")).get() is None
    assert PublicChain(str(tmp_path)).get() is None
