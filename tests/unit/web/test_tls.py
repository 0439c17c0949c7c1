"""The HTTPS door's certificate: the administrator's, else one of the host's own."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509

from svc.errors import SettingInvalid
from svc.settings import Settings
from svc.web import tls


def settings(tmp_path: Path, **values: str) -> Settings:
    """Settings of an installation in tmp_path."""
    return Settings(environ={"SVC_DB": str(tmp_path / "svc.db"), **values}, file={})


def test_a_certificate_is_made_once_for_the_hosts_names(tmp_path: Path) -> None:
    ours = settings(tmp_path, SVC_PUBLIC_HOSTS="svc.example,192.0.2.7")
    made = tls.ensure_certificate(ours)
    content = Path(made.chain).read_bytes()
    names = x509.load_pem_x509_certificate(content).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == ["svc.example"]
    assert [str(one) for one in names.value.get_values_for_type(x509.IPAddress)] == ["192.0.2.7"]
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(made.chain, made.key)
    assert stat.S_IMODE(os.stat(made.key).st_mode) == 0o600
    assert tls.ensure_certificate(ours) == made
    assert Path(made.chain).read_bytes() == content


def test_without_names_the_certificate_is_for_this_host(tmp_path: Path) -> None:
    assert {"localhost", "127.0.0.1", "::1"} <= set(tls.public_names(settings(tmp_path)))


def test_the_administrators_own_is_taken_as_it_is(tmp_path: Path) -> None:
    for name in ("cert", "key"):
        (tmp_path / name).write_text("pem")
    given = settings(tmp_path, SVC_TLS_CERT=str(tmp_path / "cert"), SVC_TLS_KEY=str(tmp_path / "key"))
    assert tls.ensure_certificate(given) == (str(tmp_path / "cert"), str(tmp_path / "key"))
    assert not (tmp_path / "tls").exists()


HALVES = (
    {"SVC_TLS_CERT": "/etc/passwd"},
    {"SVC_TLS_KEY": "/etc/passwd"},
    {"SVC_TLS_CERT": "/etc/passwd", "SVC_TLS_KEY": "/none/such"},
)


@pytest.mark.parametrize("values", HALVES)
def test_half_a_certificate_is_refused(tmp_path: Path, values: dict[str, str]) -> None:
    with pytest.raises(SettingInvalid, match="SVC_TLS_"):
        tls.ensure_certificate(settings(tmp_path, **values))
