"""The authorisation matrix: every route x method x identity.

A cell is `ok` (2xx), the code of the refusal, or `later` (501, the rule let it
through). Each cell is asked on the same state of the database: what it changed
is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from flask import Blueprint, Flask
from unit.bundling import END, member, written
from unit.configuring import configured
from unit.serving import IMAGE, caller_of, make_template

from svc.db.connect import database
from svc.domain.accounts import sessions, tokens
from svc.domain.licence import trial
from svc.errors import NotAvailable
from svc.host.ids import now
from svc.web import access
from svc.web.api import BLUEPRINTS
from svc.web.callers.credentials import COOKIE, HEADER

# On the host socket: a Linux account without a service account, another user, a superuser who is not the
# owner, root, the owner. On the TLS listener: nobody, sessions and tokens of the owner and of the superuser,
# the owner's tokens that are over, and one with the scope `files`.
SOCKET = ("stranger", "bob", "boss", "root", "ada")
TLS = (
    "nobody", "ada's session", "boss's session", "ada's token", "boss's token", "ada's expired token",
    "ada's revoked token", "ada's files token",
)  # fmt: skip
STRANGER, NOBODY, OVER = "account_missing", "unauthenticated", ("token_expired", "unauthenticated")
NO_TOKENS = "pat_not_allowed pat_not_allowed"


class Cells(NamedTuple):
    """What each identity gets: bob, boss, root, ada on the socket; ada's and boss's session; their tokens."""

    socket: str
    session: str
    token: str = NO_TOKENS
    stranger: str = STRANGER
    nobody: str = NOBODY
    over: tuple[str, str] = OVER
    files: str = ""  # what the owner's token with that scope gets, where it differs from the other's

    def by_identity(self) -> dict[str, str]:
        """The expected cell of each identity."""
        socket = (self.stranger, *self.socket.split())
        token = self.token.split()
        tcp = (self.nobody, *self.session.split(), *token, *self.over, self.files or token[0])
        return dict(zip((*SOCKET, *TLS), (*socket, *tcp), strict=True))

    def without_tokens(self) -> Cells:
        """The same where no token goes."""
        return self._replace(token=NO_TOKENS)

    def after(self, code: str) -> Cells:
        """The same, where whoever is let through meets this state."""
        return self._replace(
            **{key: getattr(self, key).replace("ok", code) for key in ("socket", "session", "token", "files")}
        )


ANYBODY = Cells("ok ok ok ok", "ok ok", "ok ok", "ok", "ok", ("ok", "ok"))
EVERYBODY = Cells("ok ok ok ok", "ok ok", "ok ok")
MEMBERS = Cells("ok ok root_not_allowed ok", "ok ok", "ok ok")
FILES = MEMBERS.without_tokens()._replace(files="ok")
OWNER = Cells("not_found not_found root_not_allowed ok", "ok not_found", "ok not_found")
OWNER_EVEN_OF_ROOT = Cells("not_found not_found not_found ok", "ok not_found", "ok not_found")
OWNER_SAID_SO = Cells("not_found owner_only owner_only ok", "ok owner_only", "ok not_found")
ADMINS = Cells("admin_only ok ok admin_only", "admin_only ok")
ADMINS_NO_TOKEN = ADMINS._replace(token="admin_only admin_only")  # a token reaches it, as an ordinary user
OTHERS_OWNER = Cells("admin_only ok ok ok", "ok ok", "ok pat_not_allowed")
OWNER_OR_ADMINS = Cells("not_found ok ok ok", "ok ok")
NOT_ON_SOCKET = Cells(" ".join(["not_allowed_on_socket"] * 4), "ok ok", stranger="not_allowed_on_socket")
ONLY_ON_SOCKET = "socket_only socket_only"
LOGIN = Cells(
    NOT_ON_SOCKET.socket, *["validation_failed validation_failed"] * 2, "not_allowed_on_socket",
    "validation_failed", ("validation_failed", "validation_failed"),
)  # fmt: skip
PASSWORD = NOT_ON_SOCKET._replace(session="validation_failed not_found")  # not the right one; not the owner
# Without a handshake, and over TLS without an Origin; whose it is: api/test_terminals.py, test_piping.py
WEBSOCKET = Cells(
    " ".join(["invalid_request"] * 4), "cross_site cross_site", "invalid_request invalid_request",
    nobody="cross_site",
)  # fmt: skip
BY_COMMAND = Cells(
    "not_found admin_command_only admin_command_only admin_only", "admin_only admin_command_only"
)
ONLY_ADMINS = Cells("not_found ok ok admin_only", "admin_only ok")
POLICY = BY_COMMAND._replace(socket=BY_COMMAND.socket.replace("not_found", "admin_only"))


TEMPLATE = {"name": "new", "source": {"type": "registry", "image_ref": IMAGE}}
WORKSPACE = {"name": "new", "template": "open"}
BUNDLE = written(TEMPLATE, None, {})
CONTEXT = member("run.sh") + END


class Content(bytes):
    """A file to upload."""


CONTENT = Content(b"content")

# method, path as registered, [?query], cells, body
ROWS: list[tuple[str, str, str, Cells, Any]] = [
    ("GET", "/api/health", "", ANYBODY, None),
    ("GET", "/api/version", "", ANYBODY, None),
    ("GET", "/api/certificate", "", ANYBODY, None),
    ("GET", "/api/openapi.json", "", EVERYBODY.without_tokens(), None),
    ("POST", "/api/auth/login", "", LOGIN, {}),
    ("POST", "/api/auth/logout", "", NOT_ON_SOCKET, {}),
    ("GET", "/api/auth/session", "", NOT_ON_SOCKET, None),
    ("GET", "/api/auth/sessions", "", EVERYBODY.without_tokens(), None),
    ("DELETE", "/api/auth/sessions", "", EVERYBODY.without_tokens(), None),
    ("DELETE", "/api/auth/sessions/<ref>", "", OWNER_EVEN_OF_ROOT.without_tokens(), None),
    ("GET", "/api/users/me", "", EVERYBODY, None),
    ("GET", "/api/users", "", ADMINS, None),
    ("PATCH", "/api/users/<name>", "", OWNER_OR_ADMINS, {"display_name": "A"}),
    ("PATCH", "/api/users/<name>", "", ONLY_ADMINS, {"disabled": True}),
    ("PATCH", "/api/users/<name>", "", ONLY_ADMINS, {"quota": None}),
    ("PATCH", "/api/users/<name>", "", BY_COMMAND, {"superuser": True}),
    ("PUT", "/api/users/<name>/password", "", PASSWORD, {"current_password": "x", "password": "y"}),
    ("GET", "/api/tokens", "", EVERYBODY.without_tokens(), None),
    ("POST", "/api/tokens", "", MEMBERS.without_tokens()._replace(session=ONLY_ON_SOCKET), {"name": "new"}),
    ("DELETE", "/api/tokens/<ref>", "", OWNER_EVEN_OF_ROOT.without_tokens(), None),
    ("POST", "/api/tickets", "", EVERYBODY.without_tokens(), {"url": "/api/fs/work/download?path=a"}),
    ("GET", "/api/usage/me", "", EVERYBODY, None),
    ("GET", "/api/usage/workspaces", "", MEMBERS, None),
    ("GET", "/api/servers/hardware", "", EVERYBODY, None),
    ("GET", "/api/workspaces/capacity", "", MEMBERS, None),
    ("POST", "/api/workspaces/recommend", "", MEMBERS, {"template": "open"}),
    ("POST", "/api/workspaces/check", "", MEMBERS, WORKSPACE),
    ("GET", "/api/workspaces", "", MEMBERS, None),
    ("GET", "/api/workspaces", "?owner=ada", OTHERS_OWNER, None),
    ("POST", "/api/workspaces", "", MEMBERS, WORKSPACE),
    ("POST", "/api/workspaces/setup", "", MEMBERS, WORKSPACE),
    ("GET", "/api/workspaces/<ref>", "", OWNER, None),
    ("GET", "/api/workspaces/<ref>", "?owner=ada", OTHERS_OWNER, None),
    ("PATCH", "/api/workspaces/<ref>", "", OWNER.after("workspace_not_stopped"), {"name": "new"}),
    ("POST", "/api/workspaces/<ref>/rename", "", OWNER, {"name": "new"}),
    ("DELETE", "/api/workspaces/<ref>", "", OWNER, None),
    ("DELETE", "/api/workspaces/<ref>", "?owner=ada", OTHERS_OWNER, None),
    ("POST", "/api/workspaces/<ref>/start", "", OWNER, {}),
    ("POST", "/api/workspaces/<ref>/restart", "", OWNER, {}),
    ("GET", "/api/workspaces/<ref>/upgrade", "", OWNER, None),
    ("POST", "/api/workspaces/<ref>/upgrade", "", OWNER, {}),
    ("POST", "/api/workspaces/<ref>/extend", "", OWNER, {"hours": 1}),
    ("POST", "/api/workspaces/<ref>/stop", "", OWNER, {}),
    ("POST", "/api/workspaces/<ref>/stop", "?owner=ada", OTHERS_OWNER, {}),
    ("POST", "/api/workspaces/<ref>/exec", "", OWNER_SAID_SO, {"command": ["id"]}),
    ("GET", "/api/workspaces/<ref>/logs", "", OWNER, None),
    ("GET", "/api/workspaces/<ref>/launchers", "", OWNER_SAID_SO, None),
    ("POST", "/api/workspaces/<ref>/launchers/<name>/start", "", OWNER_SAID_SO, {}),
    ("POST", "/api/workspaces/<ref>/launchers/<name>/stop", "", OWNER_SAID_SO, {}),
    ("GET", "/api/workspaces/<ref>/launchers/<name>/logs", "", OWNER_SAID_SO, None),
    ("GET", "/api/workspaces/<ref>/ports", "", OWNER, None),
    ("POST", "/api/workspaces/<ref>/ports", "", OWNER, {"name": "new", "container_port": 22}),
    ("DELETE", "/api/workspaces/<ref>/ports/<name>", "", OWNER, None),
    (
        "POST", "/api/workspaces/<ref>/ports/<name>/open", "",
        OWNER_SAID_SO.without_tokens()._replace(session=ONLY_ON_SOCKET), {},
    ),
    ("GET", "/api/workspaces/<ref>/monitor", "", OWNER, None),
    ("GET", "/api/workspaces/<ref>/monitor/stream", "", OWNER, None),
    ("GET", "/api/workspaces/<ref>/logs/stream", "", OWNER, None),
    ("GET", "/api/workspaces/<ref>/logs/raw", "", OWNER, None),
    ("GET", "/api/workspaces/<ref>/terminals", "", OWNER_SAID_SO, None),
    ("POST", "/api/workspaces/<ref>/terminals", "", OWNER_SAID_SO, {}),
    ("DELETE", "/api/workspaces/<ref>/terminals/<terminal>", "", OWNER_SAID_SO, None),
    ("GET", "/api/workspaces/<ref>/terminal", "", WEBSOCKET, None),
    ("GET", "/api/workspaces/<ref>/exec/stream", "", WEBSOCKET, None),
    ("GET", "/api/events", "", EVERYBODY, None),
    ("GET", "/api/events", "?all=true", ADMINS_NO_TOKEN, None),
    ("GET", "/api/events/history", "", EVERYBODY, None),
    ("GET", "/api/events/history", "?all=true", ADMINS_NO_TOKEN, None),
    ("GET", "/api/templates", "", EVERYBODY, None),
    ("GET", "/api/templates", "?owner=ada", OTHERS_OWNER, None),
    ("POST", "/api/templates", "", MEMBERS, TEMPLATE),
    ("POST", "/api/templates", "", MEMBERS, BUNDLE),
    ("GET", "/api/templates/<ref>", "", OWNER_EVEN_OF_ROOT, None),
    ("GET", "/api/templates/<ref>", "?owner=ada", OTHERS_OWNER, None),
    ("PATCH", "/api/templates/<ref>", "", OWNER_EVEN_OF_ROOT, {"description": "x"}),
    ("DELETE", "/api/templates/<ref>", "", OWNER_EVEN_OF_ROOT.after("conflict"), None),
    ("POST", "/api/templates/<ref>/enable", "", OWNER_EVEN_OF_ROOT, {}),
    ("POST", "/api/templates/<ref>/disable", "", OWNER_EVEN_OF_ROOT, {}),
    ("POST", "/api/templates/<ref>/clone", "", OWNER, {"name": "new"}),
    ("GET", "/api/templates/<ref>/dockerfile", "", OWNER_EVEN_OF_ROOT, None),
    ("PUT", "/api/templates/<ref>/dockerfile", "", OWNER_EVEN_OF_ROOT, {"dockerfile": "FROM scratch\n"}),
    ("GET", "/api/templates/<ref>/context", "", OWNER_EVEN_OF_ROOT, None),
    ("PUT", "/api/templates/<ref>/context", "", OWNER_EVEN_OF_ROOT, CONTEXT),
    ("GET", "/api/templates/<ref>/context/file", "?path=run.sh", OWNER_EVEN_OF_ROOT.after("not_found"), None),
    ("PUT", "/api/templates/<ref>/context/file", "?path=new", OWNER_EVEN_OF_ROOT, CONTENT),
    ("DELETE", "/api/templates/<ref>/context/file", "?path=a", OWNER_EVEN_OF_ROOT.after("not_found"), None),
    ("GET", "/api/templates/<ref>/revisions", "", OWNER_EVEN_OF_ROOT, None),
    ("GET", "/api/templates/<ref>/revisions/<int:revision>", "", OWNER_EVEN_OF_ROOT, None),
    ("GET", "/api/templates/<ref>/revisions/<int:revision>/context", "", OWNER_EVEN_OF_ROOT, None),
    ("GET", "/api/templates/<ref>/diff", "", OWNER_EVEN_OF_ROOT, None),
    ("GET", "/api/templates/<ref>/export", "", OWNER_EVEN_OF_ROOT, None),
    ("POST", "/api/templates/import", "", MEMBERS, BUNDLE),
    ("POST", "/api/templates/import", "?scope=global", ADMINS_NO_TOKEN, BUNDLE),
    ("GET", "/api/images", "", MEMBERS, None),
    ("GET", "/api/images/allowlist", "", EVERYBODY, None),
    ("GET", "/api/images/builds", "", MEMBERS, None),
    ("GET", "/api/images/overview", "", MEMBERS, None),
    ("POST", "/api/images/prune", "", MEMBERS, {}),
    ("GET", "/api/templates/<ref>/image", "", OWNER, None),
    ("GET", "/api/templates/<ref>/image/preflight", "", OWNER, None),
    ("POST", "/api/templates/<ref>/image/pull", "", OWNER, {}),
    ("POST", "/api/templates/<ref>/image/build", "", OWNER.after("conflict"), {}),
    ("DELETE", "/api/templates/<ref>/image", "", OWNER.after("conflict"), None),
    ("DELETE", "/api/images/<ref>", "", MEMBERS.after("not_found"), None),
    ("PUT", "/api/admin/registries", "", POLICY, {"registries": []}),
    ("GET", "/api/operations", "", EVERYBODY, None),
    ("GET", "/api/operations/<ref>", "", OWNER_EVEN_OF_ROOT, None),
    ("GET", "/api/operations/<ref>/log", "", OWNER_EVEN_OF_ROOT, None),
    ("POST", "/api/operations/<ref>/cancel", "", OWNER_EVEN_OF_ROOT, {}),
    ("GET", "/api/fs/roots", "", FILES, None),
    ("GET", "/api/fs/<root>/list", "", FILES, None),
    ("GET", "/api/fs/<root>/entries", "", FILES, None),
    ("GET", "/api/fs/<root>/read", "?path=notes.txt", FILES, None),
    ("GET", "/api/fs/<root>/download", "?path=notes.txt", FILES, None),
    ("GET", "/api/fs/<root>/archive", "", FILES, None),
    ("PUT", "/api/fs/<root>/file", "?path=new", FILES, CONTENT),
    ("POST", "/api/fs/<root>/mkdir", "?path=new", FILES, {}),
    ("POST", "/api/fs/<root>/move", "?path=notes.txt", FILES, {"to": "new"}),
    ("DELETE", "/api/fs/<root>/file", "?path=notes.txt", FILES, None),
    ("GET", "/api/admin/audit", "", ADMINS, None),
    ("GET", "/api/admin/quotas", "", ADMINS, None),
    ("PUT", "/api/admin/quotas/<name>", "", ADMINS, {"max_running": 2}),
    ("DELETE", "/api/admin/quotas/<name>", "", ADMINS.after("not_found"), None),
    ("GET", "/api/admin/license", "", ADMINS, None),
    ("GET", "/api/admin/audit/chain", "", ADMINS, None),
    ("GET", "/api/admin/backups", "", ADMINS, None),
    ("GET", "/api/admin/recovery-sets", "", ADMINS, None),
    ("GET", "/api/admin/updates", "", ADMINS, None),
    ("GET", "/api/admin/host", "", ADMINS, None),
    ("GET", "/api/admin/users", "", ADMINS, None),
    ("GET", "/api/admin/disk", "", ADMINS, None),
    ("POST", "/api/admin/disk/measure", "", ADMINS, {}),
    ("GET", "/api/admin/templates", "", ADMINS, None),
    ("GET", "/api/audit", "", EVERYBODY.without_tokens(), None),
]  # fmt: skip


def printed(response: Any) -> str:
    if response.status_code < 300:
        return "ok"
    code = response.get_json()["error"]["code"]
    return "later" if code == NotAvailable.code else str(code)


@contextmanager
def undone() -> Iterator[None]:
    """What happens inside leaves the database as it was."""
    with database.atomic() as transaction:
        yield
        transaction.rollback()


@pytest.fixture
def credentials(listeners: Any, people: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """The headers of each identity of the TLS listener."""
    monkeypatch.setattr("svc.web.callers.credentials.TOKEN_FAILURES_MAX", 10**6)
    created: dict[str, dict[str, str]] = {"nobody": {}}
    for name in ("ada", "boss"):
        _, secrets = sessions.begin(people[name].id, "192.0.2.1")
        created[f"{name}'s session"] = {"Cookie": f"{COOKIE}={secrets.cookie}", HEADER: secrets.header}
        caller = caller_of(people[name], listeners.far)
        for state in ("", "expired ", "revoked ", "files "):
            scopes = ["files"] if state == "files " else []
            token = tokens.create(caller, f"{state}{name}", scopes=scopes)
            created[f"{name}'s {state}token"] = {"Authorization": f"Bearer {token['secret']}"}
    database.execute_sql("UPDATE tokens SET expires_at = ? WHERE name LIKE 'expired%'", (now(),))
    database.execute_sql(
        "UPDATE tokens SET ended_at = ?, end_reason = 'revoked' WHERE name LIKE 'revoked%'", (now(),)
    )
    return created


def sent(body: Any) -> dict[str, Any]:
    """A body as the test client takes it: JSON, or the bytes of a bundle or of a file."""
    if isinstance(body, Content):
        return {"data": bytes(body), "content_type": "application/octet-stream"}
    if isinstance(body, bytes):
        return {"data": body, "content_type": "application/x-tar"}
    return {} if body is None else {"json": body}


def ask(listeners: Any, who: str, method: str, path: str, body: Any, credentials: Any) -> Any:
    options = sent(body)
    if who in SOCKET:
        return listeners.ask(who, method, path, **options)
    return listeners.ask(None, method, path, headers=credentials[who], **options)


def the_path(path: str, lab: str, listeners: Any) -> str:
    """The path of a thing of ada's."""
    refs = {
        "/dockerfile": "made",
        "/context": "made",
        "/workspaces/": lab,
        "/templates/": "tpl-0000base",
        "/tokens/": "ada",
        "/images/": "f" * 12,
    }
    if "/operations/" in path:
        pulled = listeners.ask("ada", "POST", "/api/templates/base/image/pull").get_json()
        refs["/operations/"] = pulled["operation"]["id"]
    if "/sessions/" in path:
        [refs["/sessions/"]] = database.execute_sql(
            "SELECT s.id FROM sessions s JOIN users u ON u.id = s.user_id WHERE u.name = 'ada'"
        ).fetchone()
    ref = next((refs[part] for part in refs if part in path), "")
    path = path.replace("<int:revision>", "1").replace("<terminal>", "t-4k2m9x")
    return path.replace("<ref>", ref).replace("<name>", "ada").replace("<root>", "work")


@pytest.mark.parametrize(("method", "path", "query", "cells", "body"), ROWS, ids=lambda part: str(part)[:40])
def test_matrix(
    listeners: Any, people: Any, lab: str, credentials: Any,
    method: str, path: str, query: str, cells: Cells, body: Any,
) -> None:  # fmt: skip
    make_template(None, "open")
    make_template(people["ada"].id, "made", dockerfile="FROM registry.example/debian:12\n")
    real = the_path(path, lab, listeners) + query
    got = {}
    for who in (*SOCKET, *TLS):
        listeners.far.files.content.pop(b"new", None)
        with undone(), ask(listeners, who, method, real, body, credentials) as answer:
            got[who] = printed(answer)
    assert got == cells.by_identity()


def test_every_route_has_its_row(listeners: Any) -> None:
    rows = {(method, path) for method, path, *_ in ROWS}
    routes = {
        (method, rule.rule)
        for rule in listeners.apps["unix"].url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    assert routes == rows


def test_a_lapsed_licence_stops_these_and_nothing_else(
    listeners: Any, people: Any, lab: str, credentials: Any, tmp_path: Path
) -> None:
    """ "When lapsed: create and start are refused; stop, delete, files, export, backup always work"."""
    make_template(people["ada"].id, "made", dockerfile="FROM registry.example/debian:12\n")
    configured(state_dir=str(tmp_path))
    trial.write_file(str(tmp_path), "2020-01-01T00:00:00.000Z")
    stopped = []
    for method, path, query, _, body in ROWS:
        with undone():
            database.execute_sql("UPDATE workspaces SET status = 'stopped'")
            real = the_path(path, lab, listeners) + query
            for who in ("ada", "boss"):
                with ask(listeners, who, method, real, body, credentials) as answer:
                    if printed(answer) == "license_required":
                        stopped.append((method, path))
    assert set(stopped) == {
        ("POST", "/api/workspaces"),
        ("POST", "/api/workspaces/setup"),
        ("POST", "/api/workspaces/<ref>/start"),
        ("POST", "/api/workspaces/<ref>/restart"),
    }


def test_nobody_reaches_the_helper_without_a_credential(listeners: Any, lab: str) -> None:
    """Every route, unauthenticated: no call but health's own ping."""
    for method, path, query, _, body in ROWS:
        real = path.replace("<ref>", lab).replace("<name>", "ada").replace("<root>", "work")
        for who in (None, "stranger", "half", "gone"):
            listeners.ask(who, method, real + query, **sent(body))
    assert set(listeners.far.verbs()) == {"helper.ping"}


def test_an_app_with_a_route_without_a_rule_does_not_start() -> None:
    bare = Blueprint("bare", __name__)
    bare.add_url_rule("/bare", "bare", lambda: "")
    app = Flask("x", static_folder=None)
    for blueprint in (*BLUEPRINTS, bare):
        app.register_blueprint(blueprint)
    with pytest.raises(RuntimeError, match="/bare has no access rule"):
        access.routes_of(app)


@pytest.mark.parametrize(
    "path",
    [
        "/api/events",
        "/api/workspaces/lab/monitor/stream",
        "/api/workspaces/lab/logs/stream",
        "/api/workspaces/lab/logs/raw",
        "/api/workspaces/lab/terminal",
        "//api//events/",
    ],
)
def test_svc_api_gets_no_streams(listeners: Any, lab: str, path: str) -> None:
    options = {"environ": {"PATH_INFO": path}, "headers": {"X-Svc-Via": "api"}}
    assert printed(listeners.ask("ada", "GET", "/", **options)) == "streaming_not_supported"
    with listeners.ask("ada", "GET", "/", environ={"PATH_INFO": path}) as answer:
        assert printed(answer) in ("later", "ok", "invalid_request")  # the last without a handshake


def test_svc_api_makes_no_credential(listeners: Any) -> None:
    headers = {"X-Svc-Via": "api"}
    assert (
        printed(listeners.ask("ada", "POST", "/api/tokens", json={}, headers=headers))
        == "not_allowed_on_socket"
    )
    assert printed(listeners.ask("ada", "GET", "/api/tokens", headers=headers)) == "ok"


@pytest.mark.parametrize(
    "path",
    ["//api/auth/login", "/api//auth///login", "/api/auth/login/", "/api/auth/login//", "///api/auth/login"],
)
def test_login_on_the_socket_however_it_is_spelt(listeners: Any, path: str) -> None:
    """ "the login endpoint and password changes are rejected on the socket"."""
    for who in ("ada", "root", "stranger"):
        response = listeners.ask(who, "POST", "/", json={}, environ={"PATH_INFO": path})
        assert printed(response) == "not_allowed_on_socket"
    for path_ in ("/API/auth/login", "/api/auth/login.", "/api/./auth/login", "/api/auth/login%00"):
        response = listeners.ask("ada", "POST", "/", json={}, environ={"PATH_INFO": path_})
        assert printed(response) == "not_found"
