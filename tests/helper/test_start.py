"""A helper is started isolated, with its configuration as an argument and an environment of its own."""

from __future__ import annotations

import json
import os

import pytest

from svc.helper import start
from svc.settings import Settings


def test_it_is_started_isolated_and_for_its_pairs_alone() -> None:
    settings = Settings(environ={"SVC_STATE_DIR": "/srv/state"}, file={})
    line = start.command(settings, "svc_helper.provision.__main__", {"admin": 7}, {"admin": 0})
    config = json.loads(line[-1])
    assert line[1:3] == ["-I", "-S"]
    assert (config["fds"], config["state_dir"]) == ({"admin": 7}, "/srv/state")


def test_its_environment_is_a_fresh_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "must not be inherited")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    assert set(start.environment()) - {"XDG_RUNTIME_DIR"} == {"PATH", "LANG"}
    assert ("XDG_RUNTIME_DIR" in start.environment()) is (os.geteuid() != 0)
