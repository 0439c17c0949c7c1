"""`svc server --dev` by an ordinary user: no root, no account to make, the agent is that user."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.installation import PATH, SVC, Outcome, Service, command
from ports import free_port
from waiting import until

USER = "tse-carol"  # a Linux user whom the installed service does not know


class Dev:
    """The server of one user and how that user calls it."""

    def __init__(self, runtime: Path) -> None:
        self.port = free_port()
        self.env = {"PATH": PATH, "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": str(runtime)}
        self.client = self.env | {"SVC_SOCKET": str(runtime / "svc-dev" / "svc.sock")}

    def svc(self, *argv: str) -> Outcome:
        return command(USER, str(SVC), *argv, env=self.client)

    def get(self, path: str, **headers: str) -> tuple[int, str | None]:
        """The status and the CORS header of a request on the TLS listener."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.headers["Access-Control-Allow-Origin"]
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Access-Control-Allow-Origin"]


@pytest.fixture
def dev(service: Service) -> Iterator[Dev]:
    account = pwd.getpwnam(USER)
    runtime = Path(f"/run/user/{account.pw_uid}")
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chown(runtime, account.pw_uid, account.pw_gid)
    dev = Dev(runtime)
    server = subprocess.Popen(
        [SVC, "server", "--dev", "--db", f"{account.pw_dir}/dev.db", "--port", str(dev.port)],
        user=account.pw_uid, group=account.pw_gid, extra_groups=[], cwd=account.pw_dir,
        env=dev.env | {"HOME": account.pw_dir, "SVC_APPS_LOCAL_PORT": str(free_port())},
        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: dev.svc("api", "GET", "/api/health").code == 0, 60)
        yield dev
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(10)
        shutil.rmtree(runtime, ignore_errors=True)


def test_the_user_is_the_one_account(dev: Dev) -> None:
    me = dev.svc("whoami", "--json").json()
    assert (me["name"], me["superuser"]) == (USER, True)
    assert json.loads(dev.svc("ws", "list", "--json").out)["items"] == []
    assert dev.svc("image", "list").code == 0  # the agent and that user's own Podman


def test_cors_for_exact_loopback_origins_only(dev: Dev) -> None:
    assert dev.get("/api/version", Origin="http://localhost:5173") == (200, "http://localhost:5173")
    assert dev.get("/api/version", Origin="http://localhost.evil") == (200, None)
    assert dev.get("/api/workspaces") == (401, None)


def test_production_needs_root(service: Service) -> None:
    refused = command(USER, str(SVC), "server", env={"PATH": PATH, "LANG": "C.UTF-8"})
    assert refused.code == 1 and "must be run as root" in refused.err and "--dev" in refused.err
