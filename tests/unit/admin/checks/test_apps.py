"""Doctor says whether the host has apps in the browser."""

from __future__ import annotations

import os

import pytest
from unit.admin.checks.test_confinement import process

from svc.admin.checks import apps as module
from svc.admin.checks.apps import apps
from svc.admin.findings import Finding, Host
from svc.host.owner import Owner
from svc.settings import Settings


@pytest.mark.parametrize(
    ("names", "port", "server", "level"),
    [
        (["svc-unix", "svc-apps"], "24681", 5, "ok"),
        (["svc-unix"], "24681", 5, "fail"),
        (["svc-unix"], "0", 5, None),
        ([], "24681", None, None),
    ],
)
def test_apps(
    monkeypatch: pytest.MonkeyPatch, names: list[str], port: str, server: int | None, level: str | None
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(module, "app_processes", lambda _pid: [process(name, 991) for name in names])
    settings = Settings(environ={"SVC_APPS_LOCAL_PORT": port}, file={})
    found: list[Finding] = list(apps(Host(settings, "", Owner(0, 0), server=server)))
    assert [(one.code, one.level) for one in found] == ([("apps", level)] if level else [])
    if level == "fail":
        assert found[0].remedy == "ss -ltnp 'sport = :24681'"
