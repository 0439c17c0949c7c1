"""The doctor's word on the TLS listener's certificate."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from unit.tls.test_serving import issued

from svc.admin.checks.tls import tls_certificate, tls_key
from svc.admin.findings import Finding, Host
from svc.host.owner import Owner
from svc.settings import Settings
from svc.tls import certificates, serving
from svc.tls.certificates import Certificate


def host_of(tmp_path: Path, **values: str) -> Host:
    settings = Settings(environ={"SVC_DB": str(tmp_path / "svc.db"), **values}, file={})
    return Host(settings, str(tmp_path / "svc.db"), Owner(os.geteuid(), os.getegid()))


def only(host: Host) -> Finding:
    found = list(tls_certificate(host))
    assert len(found) == 1, found
    assert found[0].code == "tls_certificate"
    assert bool(found[0].remedy) == (found[0].level != "ok")
    return found[0]


def created(host: Host, *names: str, days: int = 397) -> Certificate:
    certificate = serving.certificate_paths(host.settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "VALID_DAYS", days)
        certificates.create(certificate, [*names] or serving.public_names(host.settings))
    return certificate


def test_a_new_one_is_sound(tmp_path: Path) -> None:
    host = host_of(tmp_path)
    assert (only(host).level, "none yet" in only(host).found) == ("warn", True)
    created(host)
    assert only(host).level == "ok"


@pytest.mark.parametrize(
    ("days", "level", "said"), [(31, "ok", "is for"), (29, "warn", "expires on"), (0, "fail", "expired on")]
)
def test_its_end_is_told_in_time(tmp_path: Path, days: int, level: str, said: str) -> None:
    host = host_of(tmp_path)
    created(host, days=days)
    assert only(host).level == level
    assert said in only(host).found


SPOILED: dict[str, tuple[Callable[[Certificate], None], str]] = {
    "another key": (
        lambda one: certificates.create(Certificate(one.chain, one.key + "2"), ["a"]) and None,
        "key of",
    ),
    "no key": (lambda one: os.unlink(one.key), "cannot be read"),
    "half a certificate": (lambda one: os.truncate(one.chain, 100), "holds no certificate"),
}


@pytest.mark.parametrize("what", SPOILED)
def test_what_cannot_serve_is_told_and_a_restart_mends_it(tmp_path: Path, what: str) -> None:
    host = host_of(tmp_path)
    spoil, said = SPOILED[what]
    spoil(created(host))
    found = only(host)
    assert said in found.found
    assert (found.level, found.remedy) == ("fail", "sudo systemctl restart svc")
    serving.ensure_certificate(host.settings)
    assert only(host).level == "ok"


def test_missing_names_are_told(tmp_path: Path) -> None:
    host = host_of(tmp_path, SVC_PUBLIC_HOSTS="a.example,b.example")
    created(host, "a.example")
    assert only(host)[1:3] == ("warn", f"{tmp_path}/tls/cert.pem does not name b.example")
    assert "restart" in only(host).remedy


def value(tmp_path: Path, days: float, **values: str) -> Host:
    one = issued(tmp_path / "pki", days)
    return host_of(tmp_path, SVC_TLS_CERT=one.chain, SVC_TLS_KEY=one.key, **values)


@pytest.mark.parametrize(
    ("days", "hosts", "level"),
    [
        (90, "svc.example", "ok"),
        (90, "svc.example,deep.svc.example", "warn"),
        (90, "", "warn"),  # the host's own name is no name of it, and its names are not answered to
        (20, "svc.example", "warn"),
        (-1, "svc.example", "fail"),
    ],
)
def test_the_administrators_own_is_judged_too(tmp_path: Path, days: float, hosts: str, level: str) -> None:
    found = only(value(tmp_path, days, SVC_PUBLIC_HOSTS=hosts))
    assert found.level == level
    assert days == 90 or "renew" in found.remedy
    assert days != 90 or level == "ok" or "SVC_PUBLIC_HOSTS" in found.remedy


def test_a_key_that_others_can_read(public_tmp_path: Path, needs_root: None) -> None:
    host = value(public_tmp_path, 90)
    key = host.settings.tls_key
    os.chmod(key, 0o640)
    assert [found.level for found in tls_key(host)] == ["ok"]
    os.chmod(key, 0o644)
    (found,) = tls_key(host)
    assert (found.code, found.level) == ("tls_key", "fail")
    assert found.remedy == f"sudo chmod o= {key}   (then renew it: others may know it)"
    os.chmod(key, 0o640)
    assert [found.level for found in tls_key(host)] == ["ok"]


def test_where_nobody_gets_to_the_key_its_mode_does_not_matter(
    public_tmp_path: Path, needs_root: None
) -> None:
    host = value(public_tmp_path, 90)
    os.chmod(host.settings.tls_key, 0o644)
    os.chmod(public_tmp_path / "pki", 0o700)
    assert [found.level for found in tls_key(host)] == ["ok"]


def test_no_chmod_is_printed_where_others_can_put_a_link(public_tmp_path: Path, needs_root: None) -> None:
    host = value(public_tmp_path, 90)
    os.chmod(host.settings.tls_key, 0o644)
    os.chmod(public_tmp_path / "pki", 0o777)
    (found,) = tls_key(host)
    assert (found.level, found.remedy) == ("fail", "choose a path where only root can write: svc env --all")


def test_the_generated_key_is_a_file_of_the_data_directory(tmp_path: Path) -> None:
    host = host_of(tmp_path)
    created(host)
    assert list(tls_key(host)) == []
    gone = host_of(tmp_path, SVC_TLS_KEY=str(tmp_path / "none.pem"))
    assert list(tls_key(gone)) == []
