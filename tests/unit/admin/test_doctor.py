"""The doctor's table, its JSON and its exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from svc.admin import doctor_gpus, doctor_host, doctor_service
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
        monkeypatch.setattr(doctor_service, "CHECKS", chosen)
        monkeypatch.setattr(doctor_host, "CHECKS", ())
        monkeypatch.setattr(doctor_gpus, "CHECKS", ())

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
        "code": "refused",
        "level": "fail",
        "found": "it cannot be looked at",
        "remedy": "sudo look",
    }
    assert [item["level"] for item in answer["items"]] == ["fail", "fail", "ok"]


def test_a_person_gets_the_remedy_whole(svc: Any, checks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    checks(sound, broken)
    monkeypatch.setattr("svc.cli.output.on_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    lines = svc("doctor")[1].splitlines()
    assert lines[0].split() == ["ok", "sound", "all", "is", "well"]
    assert lines[2].strip() == "sudo mend that"


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
