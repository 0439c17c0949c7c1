"""`svc env`: works without a server, and shows what is wrong."""

from __future__ import annotations

import json

import pytest
from fake_service import Svc

from svc import settings
from svc.cli import env
from svc.settings import NAMES, Setting


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
    told = json.loads(svc("env", "--all", "--json").out)
    assert told["total"] == len(NAMES)
    assert {"name": "SVC_LOG_LEVEL", "value": "info", "source": "default"} in told["items"]


def test_nothing_set(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SVC_SOCKET")
    assert svc("env").out == ""
    assert "svc env --all" in svc("env", terminal=True).out


def test_secrets_are_masked(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Setting("SVC_SECRET", str, "", "A secret.", secret=True)
    monkeypatch.setattr(settings, "TABLE", (secret,))
    monkeypatch.setenv("SVC_SECRET", "hunter2")
    assert svc("env").out == "SVC_SECRET\t********\tenvironment\n"


def test_a_bad_value_is_shown_and_named(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_PORT", "70000")
    done = svc("env")
    assert done.code == 1
    assert "SVC_PORT\t70000\tenvironment" in done.out
    assert "SVC_PORT from environment" in done.err


def test_an_unknown_name_warns(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_PROT", "1")
    done = svc("env")
    assert done.code == 0
    assert "SVC_PROT" in done.err
