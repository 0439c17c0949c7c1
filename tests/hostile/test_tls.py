"""The TLS listener as a client with other wishes meets it: old protocols, weak suites, headers."""

from __future__ import annotations

import re
import socket
import subprocess

import pytest
from e2e.installation import Service
from hostile.attackers.raw import Answer, ask, connect, connect_tls, request

AEAD = re.compile(r"GCM|CHACHA20|POLY1305")
NONE = "(NONE)"
HOST = socket.gethostname().lower()


def suites() -> list[str]:
    """Every suite of TLS 1.2 and before that this host's OpenSSL has, the weakest too."""
    listed = subprocess.run(
        ["openssl", "ciphers", "-tls1_2", "ALL:COMPLEMENTOFALL:eNULL:@SECLEVEL=0"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return [name for name in listed.strip().split(":") if not name.startswith("TLS_")]


def negotiated(port: int, *options: str) -> str:
    """The suite that openssl's client agrees on with the listener; NONE without an agreement."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", "localhost", *options]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=20, check=False)
    found = re.search(r"Cipher is (\S+)", done.stdout)
    return found[1] if found else NONE


def test_only_suites_with_authenticated_encryption(service: Service) -> None:
    port = int(service.env["SVC_PORT"])
    agreed = {
        name for name in suites() if negotiated(port, "-tls1_2", "-cipher", f"{name}:@SECLEVEL=0") == name
    }
    weak = {name for name in agreed if not (AEAD.search(name) and name.startswith("ECDHE-"))}
    assert not weak
    assert {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"} <= agreed
    for name in ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"):
        assert negotiated(port, "-tls1_3", "-ciphersuites", name) == name
    for name in ("TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256"):
        assert negotiated(port, "-tls1_3", "-ciphersuites", name) == NONE


def test_a_client_with_a_long_list_is_given_a_strong_suite(service: Service) -> None:
    """The client's wish is not the server's order: CBC and RSA key exchange first."""
    port = int(service.env["SVC_PORT"])
    wish = "ECDHE-ECDSA-AES128-SHA:AES128-SHA:ECDHE-ECDSA-AES256-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256"
    assert negotiated(port, "-tls1_2", "-cipher", f"{wish}:@SECLEVEL=0") == "ECDHE-ECDSA-AES128-GCM-SHA256"


@pytest.mark.parametrize("version", ["-tls1", "-tls1_1"])
def test_old_protocols_are_refused(service: Service, version: str) -> None:
    port = int(service.env["SVC_PORT"])
    assert negotiated(port, version, "-cipher", "ALL:@SECLEVEL=0") in (NONE, "0000")


MALFORMED = (b"GARBAGE\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n")


def headers_of(answer: Answer) -> dict[str, str]:
    """The headers by their names in lower case."""
    lines = (line.partition(":") for line in answer.head.split("\r\n")[1:])
    return {name.lower(): value.strip() for name, _, value in lines}


def test_no_answer_names_the_server(service: Service) -> None:
    port, path = int(service.env["SVC_PORT"]), service.env["SVC_SOCKET"]
    requests = [
        request("GET", "/api/health"),
        request("HEAD", "/api/health"),
        request("GET", "/nowhere"),
        request("GET", "/api/workspaces"),
        request("POST", "/api/auth/login", b"{"),
        request("GET", "/api/health", host="evil.test"),
        *MALFORMED,
    ]
    for data in requests:
        for answer in (ask(connect_tls(port), data), ask(connect(path, "tsz-mallory"), data)):
            assert answer.status
            assert "server" not in headers_of(answer), answer
            assert "gunicorn" not in answer.head.lower()


def test_browsers_are_told_to_stay_on_https(service: Service) -> None:
    port, path = int(service.env["SVC_PORT"]), service.env["SVC_SOCKET"]
    for target in ("/api/health", "/nowhere", "/api/workspaces"):
        answer = ask(connect_tls(port), request("GET", target, host=HOST))
        assert headers_of(answer)["strict-transport-security"] == "max-age=31536000", answer
        assert "strict-transport-security" not in headers_of(
            ask(connect(path, "tsz-mallory"), request("GET", target))
        )
        for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", "[::1]"):
            answer = ask(connect_tls(port), request("GET", target, host=host))
            assert "strict-transport-security" not in headers_of(answer), (host, answer)
