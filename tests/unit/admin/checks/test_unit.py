"""The checks of the unit, with a program in place of systemctl."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from unit.admin.checks import made_up
from unit.admin.checks.made_up import levels, put

from svc.admin.checks import unit
from svc.admin.findings import Host

host = made_up.host
SOUND = {"LoadState": "loaded", "UnitFileState": "enabled", "NeedDaemonReload": "no", "ActiveState": "active"}


def say(host: Host, **properties: str) -> None:
    os.makedirs(host.at("/run/systemd/system"), exist_ok=True)
    lines = "".join(f"echo {name}={value}\n" for name, value in (SOUND | properties).items())
    put(host, unit.SYSTEMCTL, f"#!/bin/sh\n[ $1 = show ] && [ $3 = svc.service ] || exit 1\n{lines}")
    Path(host.at(unit.SYSTEMCTL)).chmod(0o755)


@pytest.mark.allow_commands("systemctl")
@pytest.mark.parametrize(
    ("properties", "code", "level", "remedy"),
    [
        ({}, "unit", "ok", ""),
        ({"LoadState": "not-found"}, "unit", "warn", "packaging/install"),
        ({"NeedDaemonReload": "yes"}, "unit_changed", "warn", "sudo systemctl daemon-reload"),
        ({"UnitFileState": "disabled"}, "unit_disabled", "warn", "sudo systemctl enable svc"),
        ({"ActiveState": "failed"}, "unit_failed", "fail", "sudo systemctl restart svc"),
    ],
)
def test_each_state(host: Host, properties: dict[str, str], code: str, level: str, remedy: str) -> None:
    say(host, **properties)
    (found,) = unit.unit(host)
    assert (found.code, found.level, remedy in found.remedy) == (code, level, True)


def test_without_systemd_there_is_no_unit(host: Host) -> None:
    assert levels(unit.unit, host) == []


@pytest.mark.allow_commands(os.path.basename(sys.executable))
def test_what_a_drop_in_takes_from_the_helper(host: Host, needs_root: None) -> None:
    host.server = os.getpid()
    assert levels(unit.helper_limits, host) == [("helper_limits", "ok")]
    set_flag = "import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", set_flag], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        host.server = process.pid
        (found,) = unit.helper_limits(host)
        process.communicate(b"\n")
    assert (found.level, "NoNewPrivileges=" in found.found) == ("fail", True)
    assert found.remedy == "sudo systemctl revert svc && sudo systemctl restart svc"


def test_a_mount_namespace_of_the_units_own(
    host: Host, monkeypatch: pytest.MonkeyPatch, needs_root: None
) -> None:
    os.makedirs(host.at("/run/systemd/system"))
    host.server = os.getpid()
    monkeypatch.setattr(unit, "namespace_of", lambda pid: f"mnt:[{pid}]")
    (found,) = unit.helper_limits(host)
    assert (found.level, "PrivateTmp=" in found.found) == ("fail", True)
