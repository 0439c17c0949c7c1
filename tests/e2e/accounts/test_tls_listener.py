"""The TLS listener, reached from another host by name: tokens and their limits, browser sessions.

tse-dora makes the tokens, tse-emil's things are not hers, tse-gisa is a superuser.
"""

from __future__ import annotations

import contextlib
import http.server
import itertools
import json
import os
import pwd
import shutil
import ssl
import subprocess
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.far_host import FAR, NAME, Answer, Client, FarHost, far_host
from e2e.installation import Call, Service, run
from e2e.surroundings import in_database, make_accounts, must, template_of
from waiting import until

from svc.tls import certificates
from svc.tls.certificates import Certificate

PASSWORDS = {
    "tse-dora": "nine lanterns drift upstream",
    "tse-emil": "a crate of unripe quinces",
    "tse-gisa": "forty wet umbrellas singing",
}
LONGER_S = 6.5  # "out within 5 s", and the machine's own slowness
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def people(service: Service, registry: str) -> dict[str, str]:
    """The three users; the ids of a workspace of Dora's (`lab`, never started) and one of Emil's."""
    make_accounts(service.env, PASSWORDS)
    ids = {}
    for user, name in (("tse-dora", "lab"), ("tse-emil", "hut")):
        template_of(user, registry, service.env)
        arguments = ("ws", "setup" if name == "lab" else "create", "--template", "base", "--name", name)
        must(run(user, *arguments, env=service.env))
        printed = must(run(user, "api", "GET", f"/api/workspaces/{name}", env=service.env))
        ids[name] = printed.json()["id"]
    flag = ("admin", "edit-user", "tse-gisa", "--superuser")
    must(run("root", *flag, env=service.env))
    return ids


@pytest.fixture(scope="module")
def far(service: Service, people: dict[str, str]) -> Iterator[FarHost]:
    """Another host at the end of a cable."""
    certificate = Path(service.env["SVC_DB"]).parent / "tls" / "cert.pem"
    with far_host(int(service.env["SVC_PORT"]), certificate) as host:
        yield host


@pytest.fixture(scope="module")
def client(service: Service, far: FarHost) -> Iterator[Client]:
    """Python's requests over there, from an address without a wrong login."""
    in_database(service.env, "DELETE FROM login_failures")
    with far.client() as client:
        yield client


@pytest.fixture
def token_of(svc: Call) -> Iterator[Callable[[str], str]]:
    """token_of(user) -> the secret of a new token, made by that Linux user."""
    created = []

    def create(user: str) -> str:
        name = f"far-{next(NUMBERS)}"
        outcome = must(svc(user, "token", "create", "--name", name, "--expires", "30"))
        created.append((user, name))
        assert outcome.out.startswith("svc_pat_")
        assert outcome.out.count("\n") == 1, "the secret alone"
        assert outcome.out.strip() not in outcome.err
        return outcome.out.strip()

    yield create
    for user, name in created:
        svc(user, "token", "revoke", name)


@pytest.fixture
def token(token_of: Callable[[str], str]) -> str:
    """A token of Dora's."""
    return token_of("tse-dora")


def named(answer: Answer) -> list[str]:
    """The names on a page of records."""
    assert answer.status == 200, answer
    return [item["name"] for item in answer.json()["items"]]


def test_curl_lists_that_users_workspaces(far: FarHost, token: str) -> None:
    assert named(far.curl("/api/workspaces", token)) == ["lab"]


def test_nobody_takes_the_listener_for_it_without_the_certificate(far: FarHost, token: str) -> None:
    refused = far.run("curl", "-sS", "--max-time", "9", f"{far.base}/api/health")
    assert (refused.returncode, refused.stdout) == (60, "")
    as_other = far.run(
        "curl", "-sS", "--max-time", "9", "--cacert", far.ca,
        "--resolve", f"other.test:{far.port}:198.18.77.1", f"https://other.test:{far.port}/api/health",
    )  # fmt: skip
    assert (as_other.returncode, as_other.stdout) == (60, "")


@pytest.mark.parametrize("arguments", [(), ("--db",)])
def test_the_fingerprint_is_that_of_the_listener(
    far: FarHost, service: Service, svc: Call, arguments: tuple[str, ...]
) -> None:
    result = svc("root", "admin", "tls-fingerprint", *arguments, *(service.env["SVC_DB"] for _ in arguments))
    assert (result.code, result.err) == (0, "")
    seen = far.run("openssl", "s_client", "-connect", f"{NAME}:{far.port}").stdout
    printed = far.run("openssl", "x509", "-noout", "-fingerprint", "-sha256", stdin=seen).stdout
    assert printed.partition("=")[2] == result.out


def test_everybody_gets_the_certificate_and_it_is_that_of_the_listener(
    far: FarHost, service: Service, svc: Call
) -> None:
    """ "The served certificate can be read by everybody": elsewhere without a credential."""
    kept = far.run("curl", "-sS", "--insecure", "--max-time", "9", f"{far.base}/api/certificate").stdout
    assert kept == Path(far.ca).read_text()
    assert "PRIVATE" not in kept
    printed = svc("tse-dora", "env", "--certificate")
    assert (printed.code, printed.out) == (0, kept)
    assert svc("root", "admin", "tls-fingerprint").out in printed.err


def test_requests_works_a_workspace(client: Client, people: dict[str, str], token: str) -> None:
    assert named(client.ask("GET", "/api/workspaces", token=token)) == ["lab"]
    lab = f"/api/workspaces/{people['lab']}"
    started = client.ask("POST", f"{lab}/start", {}, token=token)
    assert (started.status, started.json()["status"]) == (200, "running"), started
    ran = client.ask("POST", f"{lab}/exec", {"command": ["echo", "from afar"]}, token=token)
    assert (ran.status, ran.json()["exit_code"]) == (200, 0), ran
    assert b64decode(ran.json()["stdout"]) == b"from afar\n"
    stopped = client.ask("POST", f"{lab}/stop", {}, token=token)
    assert (stopped.status, stopped.json()["status"]) == (200, "stopped"), stopped
    me = client.ask("GET", "/api/users/me", token=token).json()
    assert (me["name"], me["via"]) == ("tse-dora", "token")


# "It never performs administrator operations. A token cannot create, list or revoke tokens."
NEVER = [
    ("GET", "/api/tokens", None),
    ("POST", "/api/tokens", {"name": "more"}),
    ("DELETE", "/api/tokens/far-1", None),
    ("GET", "/api/users", None),
    ("PATCH", "/api/users/{me}", {"display_name": "Somebody"}),
    ("PATCH", "/api/users/{me}", {"superuser": True}),
    ("PATCH", "/api/users/tse-emil", {"disabled": True}),
    ("PUT", "/api/users/{me}/password", {"current_password": "{password}", "password": "ten slow red kites"}),
    ("GET", "/api/auth/session", None),
    ("POST", "/api/auth/logout", {}),
    ("GET", "/api/auth/sessions", None),
    ("DELETE", "/api/auth/sessions", None),
    ("GET", "/api/audit", None),
    ("GET", "/api/admin/audit", None),
    ("GET", "/api/admin/users", None),
    ("GET", "/api/admin/license", None),
    ("GET", "/api/admin/backups", None),
    ("PUT", "/api/admin/registries", {"registries": []}),
    ("GET", "/api/fs/roots", None),
    ("GET", "/api/fs/work/list", None),
    ("GET", "/api/fs/work/download?path=a", None),
    ("PUT", "/api/fs/work/file?path=a", {}),
    ("DELETE", "/api/fs/work/file?path=a", None),
    ("GET", "/api/openapi.json", None),
]  # fmt: skip


@pytest.mark.parametrize("user", ["tse-dora", "tse-gisa"])
def test_what_no_token_may(client: Client, token_of: Callable[[str], str], user: str) -> None:
    secret = token_of(user)
    for method, path, body in NEVER:
        text = json.dumps(body).replace("{password}", PASSWORDS[user])
        answer = client.ask(method, path.format(me=user), json.loads(text), token=secret)
        assert (answer.status, answer.code) == (403, "pat_not_allowed"), (method, path, answer)


@pytest.mark.parametrize("user", ["tse-dora", "tse-gisa"])
def test_anothers_workspace_is_not_there(
    client: Client, people: dict[str, str], token_of: Callable[[str], str], user: str
) -> None:
    """Not for a superuser's token either: it is an ordinary user's."""
    secret, ask = token_of(user), client.ask
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"display_name": "x"}),
        ("DELETE", "", None),
        ("POST", "/start", {}),
        ("POST", "/stop", {}),
        ("POST", "/exec", {"command": ["id"]}),
        ("GET", "/logs", None),
    ):
        bodies = []
        for name in (people["hut"], "ws-zzzzzzzz"):
            answer = ask(method, f"/api/workspaces/{name}{path}", body, token=secret)
            assert (answer.status, answer.code) == (404, "not_found"), (method, path, answer)
            result = answer.text.replace(name, "").replace(answer.json()["error"]["request_id"], "")
            bodies.append(result)
        assert bodies[0] == bodies[1]
    for method, path in (("GET", ""), ("POST", f"/{people['hut']}/stop"), ("DELETE", f"/{people['hut']}")):
        answer = ask(
            method, f"/api/workspaces{path}?owner=tse-emil", {} if method == "POST" else None, token=secret
        )
        assert answer.status in (403, 404), answer
        assert answer.code in ("admin_only", "not_found", "pat_not_allowed"), answer


def test_a_superusers_token_sees_that_users_things_alone(
    client: Client, token_of: Callable[[str], str]
) -> None:
    assert named(client.ask("GET", "/api/workspaces", token=token_of("tse-gisa"))) == []


def test_a_token_is_no_password(client: Client, token: str) -> None:
    body = {"username": "tse-dora", "password": token}
    for headers in ({}, {"Authorization": f"Bearer {token}"}):
        answer = client.ask("POST", "/api/auth/login", body, jar="none", headers=headers)
        assert answer.status in (400, 401, 403), answer
        assert client.cookies["none"] == {}


def refused(client: Client, secret: str) -> tuple[int, str]:
    """What the list of workspaces is answered with now."""
    answer = client.ask("GET", "/api/workspaces", token=secret)
    return answer.status, answer.code


def test_an_expired_token_stays_expired(client: Client, service: Service, token: str) -> None:
    def ends(at: float) -> None:
        text = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at))
        in_database(service.env, "UPDATE tokens SET expires_at = ? WHERE prefix = ?", text, token[:12])

    assert refused(client, token) == (200, "")
    ends(time.time() - 1)
    assert refused(client, token) == (401, "token_expired")
    ends(time.time() + 3600)  # as if the clock were set back
    assert refused(client, token)[0] == 401


def test_a_revoked_token_is_a_wrong_one(client: Client, svc: Call, token: str) -> None:
    held = svc("tse-dora", "token", "list", "--json").json()["items"][0]
    assert refused(client, token) == (200, "")
    must(svc("tse-dora", "token", "revoke", held["id"]))
    assert refused(client, token) == (401, "unauthenticated")


def test_administrators_end_tokens(client: Client, svc: Call, token_of: Callable[[str], str]) -> None:
    for arguments, stdin in (
        (("admin", "revoke-tokens", "tse-dora"), ""),
        (("admin", "set-password", "tse-dora"), PASSWORDS["tse-dora"] + "\n"),
    ):
        first, second = token_of("tse-dora"), token_of("tse-dora")
        assert refused(client, first) == refused(client, second) == (200, "")
        must(svc("root", *arguments, stdin=stdin))
        assert refused(client, first) == refused(client, second) == (401, "unauthenticated")


def test_a_disabled_owner_is_out_on_both_listeners(client: Client, svc: Call, token: str) -> None:
    def disable(flag: bool) -> None:
        body = json.dumps({"disabled": flag})
        must(svc("root", "api", "PATCH", "/api/users/tse-dora", "--body", body))

    assert refused(client, token) == (200, "")
    disable(True)
    try:
        assert refused(client, token)[0] in (401, 403)
        here = svc("tse-dora", "ws", "list")
        assert here.code == 1
        assert "disabled" in here.err
    finally:
        disable(False)
    assert svc("tse-dora", "ws", "list").code == 0
    assert refused(client, token) == (401, "unauthenticated"), "it ended when the account was disabled"


def test_an_expired_linux_account_is_out_within_5_s_on_both_listeners(
    client: Client, svc: Call, token: str
) -> None:
    """And back when the date is lifted: nothing of the account has ended."""

    def both() -> tuple[tuple[int, str], int]:
        return refused(client, token), svc("tse-dora", "ws", "list").code

    assert both() == ((200, ""), 0)
    subprocess.run(["usermod", "--expiredate", "1", "tse-dora"], check=True)
    try:
        until(lambda: both() == ((403, "account_disabled"), 1), LONGER_S)
        assert "disabled" in svc("tse-dora", "ws", "list").err
    finally:
        subprocess.run(["usermod", "--expiredate", "", "tse-dora"], check=True)
    until(lambda: both() == ((200, ""), 0), LONGER_S)


# --- browsers ---------------------------------------------------------------------------


def log_in(
    client: Client, jar: str, user: str = "tse-dora", password: str = ""
) -> tuple[Answer, dict[str, str]]:
    """A login in a jar; the answer, and the header that the page keeps."""
    body = {"username": user, "password": password or PASSWORDS[user]}
    answer = client.ask("POST", "/api/auth/login", body, jar=jar)
    assert answer.status == 200, answer
    return answer, {"X-Svc-Session": answer.json()["session_secret"]}


@pytest.fixture
def jars() -> Iterator[str]:
    """Names of jars that no other test used."""
    return iter(f"jar-{number}" for number in NUMBERS)


def test_a_browsers_session(client: Client, jars: Iterator[str]) -> None:
    jar = next(jars)
    answer, page = log_in(client, jar)
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Host-svc=")
    attributes = {argument.strip().lower() for argument in cookie.split(";")[1:]}
    assert {"httponly", "secure", "samesite=strict", "path=/"} <= attributes
    assert not any(argument.startswith(("domain", "expires", "max-age")) for argument in attributes)
    result = answer.json()
    assert result["user"]["name"] == "tse-dora"
    assert result["session"]["address"] == FAR
    assert named(client.ask("GET", "/api/workspaces", jar=jar, headers=page)) == ["lab"]
    printed = client.ask("GET", "/api/auth/session", jar=jar, headers=page).json()
    assert (printed["session"]["id"], printed["user"]) == (result["session"]["id"], result["user"])
    assert client.ask("GET", "/api/tokens", jar=jar, headers=page).status == 200
    created = client.ask("POST", "/api/tokens", {"name": "x"}, jar=jar, headers=page)
    assert (created.status, created.code) == (403, "socket_only"), (
        '"Creation is possible only through the CLI"'
    )


def test_both_secrets_are_needed_and_of_one_session(client: Client, jars: Iterator[str]) -> None:
    first, second = next(jars), next(jars)
    (_, page), (_, other) = log_in(client, first), log_in(client, second)
    for jar, headers in ((first, {}), (next(jars), page), (first, other), (first, {"X-Svc-Session": "x"})):
        answer = client.ask("GET", "/api/workspaces", jar=jar, headers=headers)
        assert (answer.status, answer.code) == (401, "unauthenticated"), (jar, answer)
    assert client.ask("GET", "/api/workspaces", jar=first, headers=page).status == 200


@contextlib.contextmanager
def app_on_another_port(certificate: Path) -> Iterator[tuple[int, list[str]]]:
    """A web app of somebody's on this host, over TLS: its port, and the cookies that it was sent."""
    stolen: list[str] = []

    class App(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stolen.append(self.headers.get("Cookie", ""))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.parent / "key.pem")
    with http.server.HTTPServer(("", 0), App) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port, stolen
        finally:
            server.shutdown()
            thread.join()


def test_a_cookie_stolen_by_an_app_on_another_port_opens_nothing(
    client: Client, service: Service, jars: Iterator[str]
) -> None:
    """Cookies are not bound to a port: the browser sends ours to all servers of this host."""
    jar = next(jars)
    _, page = log_in(client, jar)
    with app_on_another_port(Path(service.env["SVC_DB"]).parent / "tls" / "cert.pem") as (port, stolen):
        assert client.ask("GET", f"https://{NAME}:{port}/", jar=jar).status == 200
    name, _, value = stolen[0].partition("=")
    assert name == "__Host-svc"
    thief = next(jars)
    for method, path in (("GET", "/api/workspaces"), ("POST", "/api/auth/logout"), ("GET", "/api/users/me")):
        answer = client.ask(method, path, {} if method == "POST" else None, jar=thief, cookies={name: value})
        assert (answer.status, answer.code) == (401, "unauthenticated"), answer
    for either in (jar, thief):  # it is the header that the thief did not get
        assert client.ask("GET", "/api/workspaces", jar=either, headers=page).status == 200


def test_another_sites_page_logs_nobody_in(client: Client, jars: Iterator[str]) -> None:
    body = {"username": "tse-dora", "password": PASSWORDS["tse-dora"]}
    for headers in (
        {"Origin": "https://evil.test"},
        {"Origin": f"https://{NAME}:1"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "null"},
    ):
        answer = client.ask("POST", "/api/auth/login", body, jar=next(jars), headers=headers)
        assert (answer.status, answer.code) == (403, "cross_site"), answer
        assert "Set-Cookie" not in answer.headers


def test_logout_ends_it(client: Client, jars: Iterator[str]) -> None:
    jar, thief = next(jars), next(jars)
    _, page = log_in(client, jar)
    kept = client.cookies[jar]
    out = client.ask("POST", "/api/auth/logout", {}, jar=jar, headers=page)
    assert (out.status, client.cookies[jar]) == (204, {})
    again = client.ask("GET", "/api/workspaces", jar=thief, headers=page, cookies=kept)
    assert (again.status, again.code) == (401, "unauthenticated")


def test_a_password_change_ends_everything(
    client: Client, svc: Call, token: str, jars: Iterator[str]
) -> None:
    """ "A password reset ends all sessions and tokens": a change by its owner too."""
    here, elsewhere = next(jars), next(jars)
    (_, page), (_, other) = log_in(client, here), log_in(client, elsewhere)
    kept, old, new = client.cookies[here], PASSWORDS["tse-dora"], "eleven lanterns drift ashore"
    path, body = "/api/users/tse-dora/password", {"current_password": old, "password": new}
    mistaken = client.ask("PUT", path, body | {"current_password": "not it, sorry"}, jar=here, headers=page)
    assert (mistaken.status, mistaken.json()["error"]["fields"][0]["field"]) == (422, "current_password")
    changed = client.ask("PUT", path, body, jar=here, headers=page)
    assert (changed.status, client.cookies[here]) == (204, {}), changed
    try:
        for jar, headers, cookies in ((elsewhere, other, {}), (next(jars), page, kept)):
            answer = client.ask("GET", "/api/workspaces", jar=jar, headers=headers, cookies=cookies)
            assert answer.status == 401, answer
        assert refused(client, token) == (401, "unauthenticated")
        wrong = {"username": "tse-dora", "password": old}
        assert client.ask("POST", "/api/auth/login", wrong, jar=next(jars)).status == 401
        log_in(client, next(jars), password=new)
        assert svc("tse-dora", "ws", "list").code == 0  # the host needs no password
    finally:
        must(svc("root", "admin", "set-password", "tse-dora", stdin=old + "\n"))


def test_a_superusers_session_administers(client: Client, jars: Iterator[str]) -> None:
    jar = next(jars)
    answer, page = log_in(client, jar, "tse-gisa")
    assert answer.json()["user"]["superuser"] is True
    assert "tse-dora" in named(client.ask("GET", "/api/users", jar=jar, headers=page))
    assert client.ask("GET", "/api/admin/audit", jar=jar, headers=page).status == 200
    asked = client.ask("PATCH", "/api/users/tse-dora", {"superuser": True}, jar=jar, headers=page)
    assert (asked.status, asked.code) == (403, "admin_command_only")


def test_an_ordinary_users_session_does_not(client: Client, jars: Iterator[str]) -> None:
    jar = next(jars)
    _, page = log_in(client, jar, "tse-emil")
    for path in ("/api/users", "/api/admin/audit"):
        answer = client.ask("GET", path, jar=jar, headers=page)
        assert (answer.status, answer.code) == (403, "admin_only"), answer


# --- the certificate at the server's start ----------------------------------------------


@pytest.fixture
def pki(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The administrator's folder: a valid certificate, an expired one, and a key that only root may read."""
    folder = Path(service.env["SVC_STATE_DIR"]) / "pki"
    folder.mkdir(mode=0o755)
    for name, days in (("good", 9), ("ended", 0)):
        monkeypatch.setattr(certificates, "VALID_DAYS", days)
        certificates.create(Certificate(f"{folder}/{name}.pem", f"{folder}/{name}.key"), ["svc.test"])
    shutil.copy(folder / "good.key", folder / "roots.key")
    for path in folder.iterdir():
        path.chmod(0o600 if path.stem == "roots" else 0o644)
    yield folder
    shutil.rmtree(folder)


def test_a_certificate_that_cannot_serve_stops_the_start(service: Service, pki: Path) -> None:
    """`svc server` prints the error once, before it listens; exit code 78, after which systemd waits."""
    with service.stopped():
        for chain, key, said in (
            ("good", "ended", "ended.key is not the key of"),
            ("ended", "ended", "ended.pem expired on"),
            ("good", "roots", "roots.key cannot be read: Permission denied"),
            ("none", "good", "none.pem cannot be read: No such file"),
        ):
            supplied = {"SVC_TLS_CERT": f"{pki}/{chain}.pem", "SVC_TLS_KEY": f"{pki}/{key}.key"}
            outcome = run("root", "server", env=service.env | supplied, timeout=20)
            assert (outcome.code, said in outcome.err) == (os.EX_CONFIG, True), outcome
            assert outcome.err.count("svc: SVC_TLS_CERT") == 1
            assert "hint: " in outcome.err
            assert not os.path.exists(service.env["SVC_SOCKET"])


def test_a_crash_while_it_was_made_is_mended_by_the_next_start(service: Service, svc: Call) -> None:
    """A key without a certificate, or with another's: a new pair, private to the service, and a log entry."""
    tls = Path(service.env["SVC_DB"]).parent / "tls"
    account = pwd.getpwnam("svc")
    before = svc("root", "admin", "tls-fingerprint").out
    kept = {path: path.read_bytes() for path in tls.iterdir()}
    with service.stopped():
        other = subprocess.run(["openssl", "ecparam", "-genkey", "-name", "prime256v1"], capture_output=True)
        (tls / "key.pem").write_bytes(other.stdout)
        assert "is not the key of" in svc("root", "admin", "doctor").out
    try:
        after = svc("root", "admin", "tls-fingerprint").out
        assert after not in ("", before)
        assert after.strip() in service.log.read_text()
        for path in tls.iterdir():
            assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (account.pw_uid, 0o640), path
    finally:
        with service.stopped():
            for path, content in kept.items():
                path.write_bytes(content)
