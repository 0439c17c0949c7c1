"""The host's login is used where the user has none; tests/e2e/accounts/test_people.py pulls with it."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from pathlib import Path

import pytest

from svc_helper.agent.home import Home
from svc_helper.agent.images import logins

IMAGE = "reg.example:5000/team/base:1"
AUTH = {"auth": "cm9ib3Q6cGE6c3M/Pz4+"}  # robot:pa:ss??>>


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    put(tmp_path / "state/registry-logins/ada", {"auths": {"reg.example:5000": AUTH}})
    return Home(
        user="ada", uid=4001, home=str(tmp_path / "home"), roots={}, systemd=False,
        registries=str(tmp_path / "state/registries.json"), registries_conf="",
    )  # fmt: skip


def put(path: Path, document: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))


def test_the_login_of_the_host(home: Home) -> None:
    path = logins.find(home, IMAGE)
    assert path.endswith("/state/registry-logins/ada")
    assert json.loads(urlsafe_b64decode(logins.header(path, IMAGE))) == {
        "username": "robot", "password": "pa:ss??>>",
    }  # fmt: skip
    assert logins.find(home, "reg.example/team/base:1") == ""
    assert logins.header("", IMAGE) == ""


@pytest.mark.parametrize(
    ("file", "document"),
    [
        ("run/containers/auth.json", {"auths": {"reg.example:5000": {}}}),
        ("run/containers/auth.json", {"auths": {"reg.example:5000/team": {}}}),
        ("home/.docker/config.json", {"credHelpers": {"reg.example:5000": "pass"}}),
    ],
)
def test_the_users_own_goes_first(home: Home, tmp_path: Path, file: str, document: object) -> None:
    put(tmp_path / file, document)
    assert logins.find(home, IMAGE) == ""


@pytest.mark.parametrize(
    "document",
    ["", "[", "[]", '{"auths": 1}', {"auths": {"reg.example:50": {}}}, {"auths": {"reg.example:50000": {}}}],
)
def test_what_is_no_login_of_the_users(home: Home, tmp_path: Path, document: object) -> None:
    put(tmp_path / "run/containers/auth.json", document)
    assert logins.find(home, IMAGE)
    put(tmp_path / "state/registry-logins/ada", document)
    assert logins.find(home, IMAGE) == ""
