"""Both listeners' apps on one migrated database, and people to come through them."""

from __future__ import annotations

import pwd
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from unit.configuring import configured
from unit.serving import FarEnd, Peer, Visitor, copy_of_migrated, make_template, make_user, make_workspace

from svc.db import connect
from svc.db.connect import write
from svc.domain.accounts import account_status
from svc.domain.workspaces import ports
from svc.settings import Settings
from svc.tls.public_chain import PublicChain
from svc.web.api import service
from svc.web.app import build
from svc.web.callers import credentials
from svc.web.callers.credentials import COOKIE, HEADER
from svc.web.streaming import monitors
from svc.web.streaming.event_feed import feed
from svc.web.streaming.loop import loop

UIDS = {"root": 0, "ada": 2001, "bob": 2002, "boss": 2003, "half": 2004, "gone": 2005, "stranger": 2009}


class Relay:
    """Stands for the helper in apps that outlive one test; each test puts its own far end behind it."""

    far: FarEnd

    def call(self, *call: Any, **options: Any) -> Any:
        return self.far.helper.call(*call, **options)

    def call_later(self, *call: Any, **options: Any) -> Any:
        return self.far.helper.call_later(*call, **options)

    def transfer(self, *call: Any, **options: Any) -> Any:
        return self.far.helper.transfer(*call, **options)

    def attached(self, *call: Any, **options: Any) -> Any:
        return self.far.helper.attached(*call, **options)


RELAY = Relay()
PEM = (
    "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"  # an empty sequence: enough for a chain
)
PORT = {"name": "ada", "container_port": 8000, "access": "owner"}
LAUNCHER = {"name": "ada", "title": "", "command": ["serve"], "env": [], "port": "ada", "autostart": False}


@cache
def app_of(listener: str, dev: bool = False) -> Flask:
    """The app of a listener, built once: its eighty routes take a while to compile."""
    settings = Settings(
        environ={"SVC_LOG_LEVEL": "warning", "SVC_PUBLIC_HOSTS": "svc.example,2001:db8::1"}, file={}
    )
    return build(settings, RELAY, listener=listener, dev=dev)


class Listeners:
    """The two apps; ``ask("ada", "GET", "/api/...")`` comes in as that Linux user, ``None`` over TCP."""

    def __init__(self) -> None:
        self.far = RELAY.far = FarEnd("unix")
        self.apps = {listener: app_of(listener) for listener in ("unix", "tls")}

    def ask(self, who: str | None, method: str, path: str, **options: Any) -> Any:
        """One request; options as for Flask's test client, `environ` for what the path cannot say.

        Over TCP a credential comes as `headers={"Authorization": ...}`, or as `session`, the secrets of
        sessions.begin; `dev` asks the listener of `svc server --dev`.
        """
        sock: Any = Visitor() if who is None else Peer(UIDS[who])
        overrides = {"gunicorn.socket": sock, **options.pop("environ", {})}
        if secrets := options.pop("session", None):
            both = {"Cookie": f"{COOKIE}={secrets.cookie}", HEADER: secrets.header}
            options["headers"] = both | dict(options.pop("headers", {}))
        dev = options.pop("dev", False)
        app = app_of("tls", dev=True) if dev else self.apps["tls" if who is None else "unix"]
        scheme = "https" if who is None and not dev else "http"
        try:
            client = app.test_client(use_cookies=False)
            base_url = options.pop("base_url", f"{scheme}://localhost")
            return client.open(path, base_url, method=method, environ_overrides=overrides, **options)
        finally:
            if who is not None:
                sock.close()

    def close(self) -> None:
        self.far.close()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(environ={"SVC_DB": str(tmp_path / "svc.db"), "SVC_STATE_DIR": str(tmp_path)}, file={})


@pytest.fixture
def linux(monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """The Linux accounts of this host, by uid."""
    names = {uid: name for name, uid in UIDS.items()}

    def entry(name: str, uid: int) -> pwd.struct_passwd:
        return pwd.struct_passwd((name, "x", uid, uid, "", f"/home/{name}", "/bin/sh"))

    def by_uid(uid: int) -> pwd.struct_passwd:
        return entry(names[uid], uid)

    def by_name(name: str) -> pwd.struct_passwd:
        return entry(name, next(uid for uid in names if names[uid] == name))

    monkeypatch.setattr("svc.web.callers.caller.pwd.getpwuid", by_uid)
    monkeypatch.setattr("svc.web.api.users.pwd.getpwnam", by_name)
    return names


@pytest.fixture
def db(settings: Settings) -> Iterator[str]:
    connect.open_database(copy_of_migrated(settings.db))
    yield settings.db
    connect.close_database()


@pytest.fixture
def people(db: str) -> dict[str, Any]:
    """Accounts: root and boss administer, half is incomplete, gone is disabled; stranger has none."""
    created = {
        "root": make_user("root", 0, superuser=True),
        "ada": make_user("ada", 2001),
        "bob": make_user("bob", 2002),
        "boss": make_user("boss", 2003, superuser=True),
        "half": make_user("half", 2004, provisioning="cleanup_required"),
        "gone": make_user("gone", 2005),
    }
    connect.database.execute_sql("UPDATE users SET disabled = 1 WHERE name = 'gone'")
    return created


@pytest.fixture
def listeners(
    settings: Settings, people: dict[str, Any], linux: dict[int, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Listeners]:
    policy = Path(settings.state_dir, "registries.json")
    configured(registries_path=str(policy))
    monkeypatch.setattr(service, "_ping", service._Kept(service.PING_KEPT_S))
    monkeypatch.setattr(service, "_probe", service._Kept(service.PROBE_KEPT_S))
    monkeypatch.setattr(credentials, "_wrong_tokens", credentials._WrongTokens())
    account_status.forget()
    policy.write_text('{"registries": [{"host": "registry.example", "path_prefix": "", "insecure": false}]}')
    monkeypatch.setattr(monitors, "_samplers", {})
    monkeypatch.setattr(monitors, "_asking", Counter())
    created = Listeners()
    chain = Path(settings.state_dir, "chain.pem")
    chain.write_text(PEM)
    for app in created.apps.values():
        monkeypatch.setitem(app.extensions["svc"], "chain", PublicChain(str(chain)))
    yield created
    for end in (loop.close, feed.close, loop.close):  # a stream may just begin, and the feed may just tell
        end()
    created.close()


@pytest.fixture
def lab(listeners: Listeners, people: dict[str, Any]) -> str:
    """A running workspace of ada's, made from her template `base`, with PORT and LAUNCHER; its id."""
    template = make_template(people["ada"].id, launchers=[LAUNCHER], ports=[PORT])
    workspace = make_workspace(people["ada"].id, template, status="running", container_id="c" * 64)
    with write():
        ports.adopt(workspace, [PORT])
    return workspace
