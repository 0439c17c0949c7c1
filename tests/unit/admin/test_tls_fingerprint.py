"""`svc admin tls-fingerprint`: the form of openssl, alone on standard output, read as the files' owner."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from svc.admin import tls_fingerprint
from svc.host.owner import Owner
from svc.tls import certificates
from svc.tls.certificates import Certificate, CertificateInfo


def created_beside(database: str) -> Certificate:
    folder = Path(database).parent / "tls"
    created = Certificate(str(folder / "cert.pem"), str(folder / "key.pem"))
    certificates.create(created, ["svc.example", "192.0.2.7"])
    return created


@pytest.mark.allow_commands("openssl")
def test_it_is_what_openssl_prints(svc: Any, database: str) -> None:
    command = ["openssl", "x509", "-in", created_beside(database).chain, "-noout", "-fingerprint", "-sha256"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    code, out, err = svc("tls-fingerprint")
    assert (code, err) == (0, "")
    assert out == printed.partition("=")[2]
    assert re.fullmatch(r"([0-9A-F]{2}:){31}[0-9A-F]{2}\n", out)


def test_of_a_chain_it_is_the_first(
    svc: Any, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaf, other = (Certificate(str(tmp_path / f"{n}.pem"), str(tmp_path / f"{n}.key")) for n in "ab")
    fingerprint = certificates.create(leaf, ["svc.example"])
    certificates.create(other, ["An authority"])
    with open(leaf.chain, "ab") as chain:
        chain.write(Path(other.chain).read_bytes())
    monkeypatch.setenv("SVC_TLS_CERT", leaf.chain)
    monkeypatch.setenv("SVC_TLS_KEY", leaf.key)
    assert svc("tls-fingerprint") == (0, fingerprint + "\n", "")


def test_on_a_terminal_it_says_more_beside_it(
    svc: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = created_beside(database)
    monkeypatch.setattr("svc.commandline.output.on_terminal", lambda: True)
    code, out, err = svc("tls-fingerprint")
    assert (code, out) == (0, certificates.inspect(created).fingerprint + "\n")
    assert "names: svc.example, 192.0.2.7\n" in err
    assert f"file:  {created.chain} (for --cacert)\n" in err
    assert re.search(r"^ends:  20\d\d-\d\d-\d\d$", err, re.MULTILINE)


def test_without_a_certificate_it_says_what_makes_one(svc: Any, database: str) -> None:
    code, out, err = svc("tls-fingerprint")
    assert (code, out) == (1, "")
    assert "there is no certificate yet" in err
    assert f"hint: {tls_fingerprint.start_command()}\n" in err


def test_one_of_the_administrator_that_is_not_there_is_named(
    svc: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_TLS_CERT", "/none/such.pem")
    monkeypatch.setenv("SVC_TLS_KEY", "/none/such.key")
    assert svc("tls-fingerprint")[::2] == (
        1,
        "svc: /none/such.pem cannot be read: No such file or directory\nhint: sudo svc admin doctor\n",
    )


def test_root_reads_nothing_of_it_itself(svc: Any, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the service's account can write is parsed by that account alone."""
    created = created_beside(database)
    parsed_by = []

    def inspect(certificate: Certificate) -> CertificateInfo:
        parsed_by.append(os.getpid())
        return CertificateInfo("", f"by {os.getuid()}", (str(os.getpid()),), 0.0, True)

    monkeypatch.setattr(certificates, "inspect", inspect)
    for path in (*created, os.path.dirname(created.chain), database, os.path.dirname(database)):
        os.chown(path, 65534, 65534)
    for folder in Path(database).parents[1:4]:
        folder.chmod(folder.stat().st_mode | 0o055)
    assert svc("tls-fingerprint")[:2] == (0, "by 65534\n")
    assert parsed_by == []  # not in this process


def test_it_opens_no_database_that_is_somebody_elses(
    svc: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc.admin.command.owner_of", lambda _path: Owner(65534, 65534))
    monkeypatch.setattr("os.geteuid", lambda: 4242)
    code, _, err = svc("tls-fingerprint")
    assert code == 1
    assert "hint: sudo svc admin tls-fingerprint" in err
