"""The doctor's table, its JSON and its exit code."""

from __future__ import annotations

import json
import os
import pwd
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from svc.admin import doctor
from svc.admin.checks import order
from svc.admin.findings import Finding, Host, fail, ok, warn
from svc.errors import HostRefused


def sound(_host: Host) -> Iterator[Finding]:
    yield ok("sound", "all is well")


def odd(_host: Host) -> Iterator[Finding]:
    yield warn("odd", "it\x1b[2J works", "sudo mend it")


def broken(_host: Host) -> Iterator[Finding]:
    yield fail("broken", "it does not work", "sudo mend that")


def refused(_host: Host) -> Iterator[Finding]:
    raise HostRefused("it cannot be looked at", hint="sudo look")
    yield


def blind(_host: Host) -> Iterator[Finding]:
    raise PermissionError(13, "Permission denied")
    yield


@pytest.fixture
def checks(database: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    def choose(*chosen: Any) -> None:
        monkeypatch.setattr(order, "CHECKS", chosen)

    return choose


def test_one_line_for_each_finding(svc: Any, checks: Any) -> None:
    checks(sound, odd)
    assert svc("doctor") == (0, "sound\tok\tall is well\t\nodd\twarn\tit\\x1b[2J works\tsudo mend it\n", "")


@pytest.mark.parametrize(("check", "code"), [(sound, 0), (odd, 0), (broken, 1), (refused, 1), (blind, 1)])
def test_what_fails_is_exit_code_1(svc: Any, checks: Any, check: Any, code: int) -> None:
    checks(sound, check)
    assert svc("doctor")[0] == code


def test_a_check_that_cannot_look_is_a_finding_and_the_others_go_on(svc: Any, checks: Any) -> None:
    checks(refused, blind, sound)
    code, out, _ = svc("doctor", "--json")
    answer = json.loads(out)
    assert (code, answer["total"]) == (1, 3)
    assert answer["items"][0] == {
        "code": "not_checked",
        "level": "fail",
        "found": "refused: it cannot be looked at",
        "remedy": "sudo look",
    }
    assert [item["level"] for item in answer["items"]] == ["fail", "fail", "ok"]


def test_a_person_gets_the_remedy_whole(svc: Any, checks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    checks(sound, broken)
    monkeypatch.setattr("svc.commandline.output.on_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    lines = svc("doctor")[1].splitlines()
    assert lines[0].split() == ["ok", "sound", "all", "is", "well"]
    assert lines[2].strip() == "sudo mend that"


@pytest.mark.allow_commands("podman", "systemctl", "unshare")  # podman --version, systemctl show, a trial
def test_every_check_of_the_program_answers_on_this_machine(svc: Any, database: str) -> None:
    code, out, err = svc("doctor", "--json")
    items = json.loads(out)["items"]
    assert (code, err) == (1 if any(item["level"] == "fail" for item in items) else 0, "")
    assert {item["level"] for item in items} <= {"ok", "warn", "fail"}
    assert all(bool(item["remedy"]) == (item["level"] != "ok") for item in items)
    assert {"database", "podman_way", "podman", "subuid", "sqlite_version"} <= {
        item["code"] for item in items
    }
    assert sys.stdout is not None


def test_without_the_services_account_nothing_is_given_to_root(
    svc: Any, checks: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc.admin.own_files.settings_file", list)
    checks(sound)
    os.chown(database, 65534, 65534)
    os.chown(os.path.dirname(database), 65534, 65534)
    code, out, _ = svc("doctor", "--repair", "--json")
    (first, _) = json.loads(out)["items"]
    assert (code, first["level"], "no system user svc" in first["found"]) == (1, "fail", True)
    assert os.stat(database).st_uid == 65534


def test_of_thousands_of_users_the_first_are_listed(svc: Any, checks: Any) -> None:
    def crowded(_host: Host) -> Iterator[Finding]:
        for number in range(3000):
            yield fail("subuid", f"user{number} has none", f"sudo usermod user{number}")
            yield warn("storage", f"user{number} has vfs", f"sudo svc admin create-user user{number}")

    checks(crowded, sound)
    code, out, _ = svc("doctor", "--json")
    items = json.loads(out)["items"]
    assert (code, len(items)) == (1, 2 * (doctor.LISTED_MAX + 1) + 1)
    assert [item["level"] for item in items if "2980 more" in item["found"]] == ["fail", "warn"]
    assert items[-1]["code"] == "sound"


def test_repairs_come_before_the_checks(
    svc: Any, checks: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc.admin.own_files.settings_file", list)
    monkeypatch.setattr("svc.host.owner.SERVICE_USER", "nobody")
    checks(sound)
    code, out, _ = svc("doctor", "--repair", "--json")
    found = json.loads(out)["items"]
    assert (code, found[-1]["code"], {item["code"] for item in found[:-1]}) == (0, "sound", {"repair"})
    assert os.stat(database).st_uid == pwd.getpwnam("nobody").pw_uid
