"""The record of the licence, and what administrators are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.domain.licence.test_entitlement import days_ago
from unit.licensing import CODE, Vendor, put
from unit.serving import make_user

from svc.domain.licence import entitlement, reports, trial
from svc.host import clock
from svc.host.clock import Record


def codes() -> list[str]:
    return [notice["code"] for notice in reports.current()["notices"]]


def test_nothing_is_said_while_all_is_well(state: str) -> None:
    record = reports.current()
    assert (record["kind"], record["state"], record["notices"]) == ("trial", "active", [])
    assert (record["request_code"], record["limits"]) == (CODE, {"users": None, "gpus": None})
    assert reports.code_of(entitlement.resolve()) == "ok"


@pytest.mark.parametrize(
    ("days", "code", "said"),
    [
        (77, "license_ending", "the trial ends in 13 days, on "),
        (89.5, "license_ending", "the trial ends in 1 day, on "),
        (91, "license_lapsed", "no workspace can be created or started"),
    ],
)
def test_14_days_before_the_end_and_after_it(state: str, days: float, code: str, said: str) -> None:
    trial.write_file(state, days_ago(days))
    (notice,) = reports.current()["notices"]
    assert (notice["code"], notice["hint"]) == (code, "sudo svc admin license request")
    assert said in notice["message"]
    assert reports.code_of(entitlement.resolve()) == code


def test_every_notice_has_its_code(state: str, vendor: Vendor) -> None:
    make_user("ada", 2001)
    make_user("bob", 2002)
    put(vendor, Path(state, "license.json"), users=1)
    assert codes() == ["license_users"]
    clock.write_file(state, Record("2090-01-01T00:00:00.000Z"))
    assert codes() == ["license_clock", "license_users"]
    Path(state, "license.json").write_text("{}")
    assert codes() == ["license_lapsed", "license_not_in_force", "license_clock"]
    assert {*codes(), "license_users", "license_ending", "license_gpus"} == set(reports.HINTS)
