"""`svc env`: works without a server, and shows what is wrong."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from fake_service import Service, Svc

from svc import settings
from svc.cli import env
from svc.settings import ENV_FILE, NAMES, Setting, Settings
from svc.tls import host_names, serving


def values(svc: Svc, *options: str) -> dict[str, str]:
    """What `svc env` says, by name."""
    return {row["name"]: row["value"] for row in json.loads(svc("env", *options, "--json").out)["items"]}


def test_what_is_set_and_where(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_PORT", "8443")
    for module in (settings, env):
        monkeypatch.setattr(module, "read_env_file", lambda: {"SVC_PORT": "1", "SVC_DB": "/x/svc.db"})
    rows = [line.split("\t") for line in svc("env").out.splitlines()]
    assert rows[0] == ["SVC_DB", "/x/svc.db", "/etc/svc/svc.env"]
    assert rows[1] == ["SVC_PORT", "8443", "environment"]
    assert [row[0] for row in rows[2:]] == ["SVC_SOCKET"]


def test_all_adds_the_defaults(svc: Svc) -> None:
    rows = [line.split("\t") for line in svc("env", "--all").out.splitlines()]
    assert [row[0] for row in rows] == list(NAMES)
    assert ["SVC_PORT", "24680", "default"] in rows


def test_json(svc: Svc) -> None:
    result = json.loads(svc("env", "--all", "--json").out)
    assert result["total"] == len(NAMES)
    assert {"name": "SVC_LOG_LEVEL", "value": "info", "source": "default"} in result["items"]


def test_nothing_set(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SVC_SOCKET")
    assert svc("env").out == ""
    assert "svc env --all" in svc("env", terminal=True).out


def test_secrets_are_masked(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Setting("SVC_SECRET", str, "", "A secret.", secret=True)
    monkeypatch.setattr(settings, "TABLE", (secret,))
    monkeypatch.setenv("SVC_SECRET", "hunter2")
    assert svc("env").out == "SVC_SECRET\t********\tenvironment\n"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("/srv/releases", "/srv/releases"),
        ("https://host.example/releases", "https://host.example/releases"),
        ("https://ada:hunter2@host.example/x", "https://********@host.example/x"),
        ("https://hunter2@host.example", "https://********@host.example"),
        ("https://ada:hun/ter2@host.example/x", "https://********@host.example/x"),
        ("https://ada:hun?ter2@host.example/x", "https://********@host.example/x"),
        ("https://ada:hun@ter2@host.example/x", "https://********@host.example/x"),
        ("https://host.example/x?key=hunter2", "https://host.example/x?********"),
        ("https://ada:x@host.example/x?key=hunter2#y", "https://********@host.example/x?********"),
        ("https://@host.example/x?", "https://@host.example/x?"),
    ],
)
def test_secrets_in_a_url_are_masked(
    svc: Svc, monkeypatch: pytest.MonkeyPatch, text: str, printed: str
) -> None:
    monkeypatch.setenv("SVC_UPDATE_SOURCE", text)
    assert f"SVC_UPDATE_SOURCE\t{printed}\tenvironment\n" in svc("env").out
    assert values(svc)["SVC_UPDATE_SOURCE"] == printed
    assert printed in svc("env", terminal=True).out


# --- what it comes to -----------------------------------------------------------------------


def test_a_relative_path_is_shown_where_it_leads(
    svc: Svc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"SVC_DB\t{tmp_path}/svc.db\tdefault\n" in svc("env", "--all").out
    monkeypatch.setenv("SVC_DB", "data/../svc.db")
    assert values(svc)["SVC_DB"] == f"{tmp_path}/svc.db"


def test_a_working_directory_that_is_gone(svc: Svc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()
    assert values(svc, "--all")["SVC_DB"] == "svc.db"


@pytest.mark.parametrize("database", ["", "data/svc.db", "/srv/svc/svc.db"])
def test_computed_defaults_are_what_the_programs_compute(
    svc: Svc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SVC_DB", database)
    result, resolved = values(svc, "--all"), Settings(file={})
    assert result["SVC_JWT_SECRET_FILE"] == resolved.secret_file
    certificate = serving.certificate_paths(resolved)
    assert (result["SVC_TLS_CERT"], result["SVC_TLS_KEY"]) == (certificate.chain, certificate.key)
    assert result["SVC_PUBLIC_HOSTS"] == ",".join(host_names.of_service([]))
    assert result["SVC_HOST"] == "all addresses"
    assert ("SVC_TLS_CERT\t" + certificate.chain + "\tdefault") in svc("env", "--all").out


def test_half_a_certificate_has_no_default_for_the_other_half(
    svc: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_TLS_CERT", "/etc/ssl/x.pem")
    assert values(svc, "--all")["SVC_TLS_KEY"] == ""


def test_a_resolver_that_knows_nothing(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_name: bytes) -> None:
        raise OSError("no such host")

    monkeypatch.setattr("_socket.gethostbyaddr", fail)
    assert values(svc, "--all")["SVC_PUBLIC_HOSTS"] == os.uname().nodename.lower()


# --- what is wrong --------------------------------------------------------------------------


def test_a_bad_value_is_shown_and_named(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_PORT", "70000")
    done = svc("env")
    assert done.code == 1
    assert "SVC_PORT\t70000\tenvironment" in done.out
    assert done.err == (
        "svc: SVC_PORT from environment must be a port number from 1 to 65535\nhint: unset SVC_PORT\n"
    )


def test_every_bad_value_is_named(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    file = {"SVC_LOG_LEVEL": "loud", "SVC_PORT": "0", "SVC_SOCKET": "here"}
    monkeypatch.setattr(env, "read_env_file", lambda: file)
    monkeypatch.setenv("SVC_PORT", "80")  # wins over the bad one, which is then nobody's business
    monkeypatch.delenv("SVC_SOCKET")
    for options in ([], ["--json"], ["--all"]):
        done = svc("env", *options)
        assert done.code == 1
        assert "loud" in done.out
        assert [line.split(":")[0].strip() for line in done.err.splitlines()] == [
            "svc", "SVC_SOCKET", "SVC_LOG_LEVEL", "hint"
        ]  # fmt: skip
        assert f"hint: sudo editor {ENV_FILE}" in done.err


def test_a_file_that_may_not_be_read_is_told_of(
    svc: Svc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "svc.env"
    monkeypatch.setattr(env, "ENV_FILE", str(file))
    assert svc("env").err == ""  # there is none
    file.write_text("SVC_PORT=1\n")
    assert svc("env").err == ""
    monkeypatch.setattr(os, "access", lambda *_: False)
    done = svc("env")
    assert done.code == 0
    assert f"{file} is not readable for you" in done.err

    def shut(_path: str) -> None:
        raise PermissionError

    monkeypatch.setattr(env.os, "stat", shut)
    assert not env.may_read()


def test_an_unknown_name_warns(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_PROT", "1")
    done = svc("env")
    assert done.code == 0
    assert "SVC_PROT" in done.err


def test_a_hostile_name_commands_no_terminal(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_\x1b[2J", "1")
    monkeypatch.setenv("SVC_HOST", "\x1b[31mred")
    for terminal in (False, True):
        done = svc("env", terminal=terminal)
        assert "\x1b" not in done.out + done.err


PEM = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"


def certificate_answer(body: str) -> bytes:
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-pem-file\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body.encode())}\r\n\r\n{body}".encode()


def test_the_certificate_alone_is_on_standard_output(service: Service, svc: Svc) -> None:
    service.raw("GET /api/certificate", certificate_answer(PEM))
    result = svc("env", "--certificate")
    fingerprint = hashlib.sha256(b"0\0").digest().hex(":").upper()
    assert (result.code, result.out) == (0, PEM)
    assert result.err == f"svc: SHA-256 fingerprint: {fingerprint}\n"
    as_json = json.loads(svc("env", "--certificate", "--json").out)
    assert as_json == {"certificate": PEM, "sha256": fingerprint}


@pytest.mark.parametrize(
    "body", ["", "nonsense", "\x1b[2J", PEM.replace("MAA=", "M"), PEM.replace("MAA=", ""), "é" + PEM]
)
def test_no_certificate_is_a_bad_answer(service: Service, svc: Svc, body: str) -> None:
    service.raw("GET /api/certificate", certificate_answer(body))
    result = svc("env", "--certificate")
    assert (result.code, result.out) == (1, "")
    assert "holds no certificate" in result.err


def test_without_a_certificate_the_service_says_why(service: Service, svc: Svc) -> None:
    service.refuse("GET /api/certificate", 404, "not_found", "svc server --dev serves plain HTTP")
    assert "plain HTTP" in svc("env", "--certificate").err
