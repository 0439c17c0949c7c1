"""Doctor's findings on the licence: each code, by bringing about exactly that."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from unit.admin.checks import test_service

from svc.admin.checks import licence as module
from svc.admin.checks.licence import licence
from svc.admin.findings import Host
from svc.domain.licence import trial
from svc.host import clock
from svc.host.clock import Record
from svc.host.ids import after, now
from svc.settings import Settings

REQUEST = "sudo svc admin license request"


only = test_service.only
host = test_service.host


@pytest.fixture
def sound(host: Host, tmp_path: Path) -> Host:
    """A host with a machine id, and a licence path of its own."""
    (tmp_path / "root/etc/machine-id").write_text("0123456789abcdef" * 2 + "\n")
    environ = {name: resolved.text for name, resolved in host.settings.resolved.items()}
    host.settings = Settings(environ=environ | {"SVC_LICENSE_PATH": f"{tmp_path}/license.json"}, file={})
    return host


def trial_of(days: float) -> Callable[[Host, Path], None]:
    return lambda host, _path: trial.write_file(host.settings.state_dir, after(now(), -days * 86400))


def behind(host: Host, _path: Path) -> None:
    clock.write_file(host.settings.state_dir, Record(after(now(), 3 * 86400)))


def test_a_running_trial_is_one_line(sound: Host) -> None:
    found = only(licence, sound)
    assert (found.code, found.level) == ("license", "ok")
    assert found.found.startswith("the trial, until ")
    assert "(90 days)" in found.found


@pytest.mark.parametrize(
    ("spoil", "code", "level", "remedy"),
    [
        (trial_of(80), "license_ending", "warn", REQUEST),
        (trial_of(91), "license_lapsed", "fail", REQUEST),
        (lambda _host, path: path.write_text("{}"), "license_not_in_force", "fail", REQUEST),
        (behind, "license_clock", "warn", "timedatectl status"),
    ],
)
def test_each_code(
    sound: Host, tmp_path: Path, spoil: Callable[[Host, Path], None], code: str, level: str, remedy: str
) -> None:
    spoil(sound, tmp_path / "license.json")
    found = only(licence, sound)
    assert (found.code, found.level, found.remedy) == (code, level, remedy)


def test_a_host_without_a_code_and_a_file_of_others(sound: Host, tmp_path: Path) -> None:
    (tmp_path / "root/etc/machine-id").unlink()
    (tmp_path / "license.json").write_text("{}")
    os.chmod(tmp_path / "license.json", 0o666)
    codes = [(found.code, found.level) for found in licence(sound)]
    assert codes == [("license_host", "warn"), ("license", "warn"), ("license_not_in_force", "fail")]


@pytest.mark.parametrize(
    ("code", "remedy"),
    [("license_users", "sudo svc admin list-users"), ("license_gpus", "sudo svc admin license show")],
)
def test_more_than_a_licence_allows(
    sound: Host, monkeypatch: pytest.MonkeyPatch, code: str, remedy: str
) -> None:
    notices = [{"code": code, "message": "3 of 2"}, {"code": "not-a-code", "message": "sudo rm -rf /"}]
    monkeypatch.setattr(module, "run_as", lambda *_: {"summary": "L1", "notices": notices})
    found = only(licence, sound)
    assert (found.code, found.level, found.remedy) == (code, "warn", remedy)
