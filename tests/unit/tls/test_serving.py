"""The TLS listener's certificate: the administrator's, else one of the host's own."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from svc.errors import HostRefused, SettingInvalid
from svc.settings import Settings
from svc.tls import certificates, serving
from svc.tls.certificates import Certificate


def settings(tmp_path: Path, **values: str) -> Settings:
    """Settings of an installation in tmp_path."""
    return Settings(environ={"SVC_DB": str(tmp_path / "svc.db"), **values}, file={})


def issued(folder: Path, days: float, issuer: str = "An authority") -> Certificate:
    """A certificate that somebody else has issued, in files of the administrator's."""
    key = ec.generate_private_key(ec.SECP256R1())
    common = x509.NameOID.COMMON_NAME
    now = datetime.datetime.now(datetime.UTC)
    leaf = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(common, "svc.example")]))
        .issuer_name(x509.Name([x509.NameAttribute(common, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=400))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("*.Example")]), critical=False)
        .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    )
    folder.mkdir(exist_ok=True)
    created = Certificate(str(folder / "cert.pem"), str(folder / "key.pem"))
    form = serialization.PrivateFormat.PKCS8
    Path(created.chain).write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
    Path(created.key).write_bytes(
        key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    )
    return created


def supplied(tmp_path: Path, certificate: Certificate) -> Settings:
    """Settings that name the administrator's certificate."""
    return settings(tmp_path, SVC_TLS_CERT=certificate.chain, SVC_TLS_KEY=certificate.key)


def test_a_certificate_is_made_once_for_the_hosts_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = settings(tmp_path, SVC_PUBLIC_HOSTS="svc.example, 192.0.2.7")
    serving.ensure_certificate(ours)
    said = json.loads(capsys.readouterr().err)
    created = serving.certificate_paths(ours)
    found = certificates.inspect(created)
    assert (found.problem, found.names) == ("", ("svc.example", "192.0.2.7"))
    assert said["sha256"] == found.fingerprint
    serving.ensure_certificate(ours)
    assert certificates.inspect(created) == found
    assert capsys.readouterr().err == ""


def test_without_names_the_certificate_is_for_this_host(tmp_path: Path) -> None:
    ours = settings(tmp_path)
    assert {os.uname().nodename.lower(), "localhost", "127.0.0.1", "::1"} <= set(serving.public_names(ours))
    serving.ensure_certificate(ours)
    assert list(certificates.inspect(serving.certificate_paths(ours)).names) == [
        *(name for name in serving.public_names(ours) if not name[0].isdigit() and ":" not in name),
        "127.0.0.1",
        "::1",
    ]


def test_one_that_ends_soon_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = settings(tmp_path)
    for valid, stays in ((31, True), (29, False), (0, False)):
        monkeypatch.setattr(certificates, "VALID_DAYS", valid)
        certificates.create(serving.certificate_paths(ours), serving.public_names(ours))
        before = certificates.inspect(serving.certificate_paths(ours))
        monkeypatch.undo()
        serving.ensure_certificate(ours)
        assert (certificates.inspect(serving.certificate_paths(ours)) == before) == stays


def test_one_that_lacks_a_name_wanted_now_is_made_anew(tmp_path: Path) -> None:
    certificate = serving.certificate_paths(settings(tmp_path))
    seen = []
    for names in ("a.example", "a.example,b.example", "b.example", "B.example.", "b.example,192.0.2.7"):
        serving.ensure_certificate(settings(tmp_path, SVC_PUBLIC_HOSTS=names))
        seen.append(certificates.inspect(certificate).fingerprint)
    first, second, last = seen[0], seen[1], seen[-1]
    assert seen == [first, second, second, second, last]
    assert len({first, second, last}) == 3


def test_every_spelling_of_an_address_is_found_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = settings(tmp_path, SVC_PUBLIC_HOSTS="::FFFF:192.0.2.7,[2001:db8:0::7],::192.0.2.7,192.0.2.7,::1")
    serving.ensure_certificate(ours)
    assert len(capsys.readouterr().err.splitlines()) == 1
    serving.ensure_certificate(ours)
    assert capsys.readouterr().err == ""


def test_one_that_cannot_be_served_with_is_made_anew(tmp_path: Path) -> None:
    ours = settings(tmp_path)
    own = serving.certificate_paths(ours)
    for spoil in (
        lambda: Path(own.chain).unlink(),
        lambda: Path(own.key).unlink(),
        lambda: Path(own.key).write_text("x"),
        lambda: Path(own.chain).write_text("x"),
        lambda: Path(own.key).chmod(0o640),
        lambda: certificates.create(Certificate(own.chain, own.key + ".other"), serving.public_names(ours)),
    ):
        serving.ensure_certificate(ours)
        before = certificates.inspect(own).fingerprint
        spoil()
        serving.ensure_certificate(ours)
        found = certificates.inspect(own)
        assert not found.problem
        assert found.fingerprint != before
        assert os.stat(own.key).st_mode & 0o077 == 0


def test_the_administrators_own_is_taken_as_it_is(tmp_path: Path) -> None:
    certificate = issued(tmp_path / "pki", days=20)
    ours = supplied(tmp_path, certificate)
    before = certificates.inspect(certificate)
    serving.ensure_certificate(ours)
    assert serving.certificate_paths(ours) == certificate
    assert certificates.inspect(certificate) == before
    assert before.names == ("*.example",)
    assert not (tmp_path / "tls").exists()


def test_the_administrators_own_in_the_place_of_ours_is_not_touched(tmp_path: Path) -> None:
    certificate = issued(tmp_path / "tls", days=20)
    before = certificates.inspect(certificate)
    serving.ensure_certificate(settings(tmp_path))
    assert certificates.inspect(serving.certificate_paths(settings(tmp_path))) == before
    Path(certificate.key).write_bytes(Path(issued(tmp_path / "other", 20).key).read_bytes())
    with pytest.raises(SettingInvalid, match="is not the key of"):
        serving.ensure_certificate(settings(tmp_path))


def test_one_of_the_administrators_that_cannot_serve_is_refused(tmp_path: Path) -> None:
    good, other = issued(tmp_path / "a", 20), issued(tmp_path / "b", 20)
    for certificate, said in (
        (Certificate(good.chain, other.key), "is not the key of"),
        (issued(tmp_path / "c", -1), "expired on"),
        (Certificate(good.chain, "/none/such"), "/none/such cannot be read: No such file"),
        (Certificate("/etc/passwd", good.key), "/etc/passwd holds no certificate"),
    ):
        with pytest.raises(SettingInvalid, match=said) as refused:
            serving.ensure_certificate(supplied(tmp_path, certificate))
        assert refused.value.message.startswith("SVC_TLS_CERT")
        assert refused.value.hint


@pytest.mark.parametrize("name", ["SVC_TLS_CERT", "SVC_TLS_KEY"])
def test_half_a_certificate_is_refused(tmp_path: Path, name: str) -> None:
    other = {"SVC_TLS_CERT": "SVC_TLS_KEY", "SVC_TLS_KEY": "SVC_TLS_CERT"}[name]
    with pytest.raises(SettingInvalid, match=f"{other} is not set"):
        serving.ensure_certificate(settings(tmp_path, **{name: "/etc/passwd"}))


def test_where_none_can_be_made_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "tls").write_text("in the way")
    with pytest.raises(HostRefused, match="cannot create a certificate"):
        serving.ensure_certificate(settings(tmp_path))


@pytest.mark.parametrize(
    "value",
    ["a:1", "a b", "https://a", "a/b", "b\u00fccher.example", "1.2.3", "-a", "a..b", "*.example", "[a]"],
)
def test_public_hosts_that_are_none_are_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(SettingInvalid, match="SVC_PUBLIC_HOSTS"):
        _ = settings(tmp_path, SVC_PUBLIC_HOSTS=value).public_hosts


def test_public_hosts_in_one_form(tmp_path: Path) -> None:
    ours = settings(tmp_path, SVC_PUBLIC_HOSTS="[2001:DB8::1],Svc.Example., 192.0.2.7 ,my_host")
    assert serving.public_names(ours) == ["2001:db8::1", "svc.example", "192.0.2.7", "my_host"]
