"""What is in force: the trial, a licence, and what neither a clock nor a database nor a copy lengthens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from unit.configuring import configured
from unit.licensing import CODE, Vendor, put

from svc.db import facts
from svc.domain.licence import entitlement, trial
from svc.domain.licence.entitlement import resolve
from svc.errors import LicenseInvalid
from svc.host import clock
from svc.host.clock import Record
from svc.host.ids import after, now

DAY_S = 86400


def days_ago(days: float) -> str:
    return after(now(), -days * DAY_S)


@pytest.mark.parametrize(
    ("days", "state", "days_left"),
    [(0, "active", 90), (75.9, "active", 15), (76.1, "ending", 14), (89.5, "ending", 1), (90.1, "lapsed", 0)],
)
def test_the_trial_has_90_days(
    state: str, days: float, days_left: int, request: pytest.FixtureRequest
) -> None:
    """ "Without an installed signed license the service runs under a built-in trial of 90 days." """
    directory = request.getfixturevalue("tmp_path")
    request.getfixturevalue("db")
    configured(state_dir=str(directory), license_path=str(directory / "license.json"))
    trial.write_file(str(directory), days_ago(days))
    found = resolve()
    assert (found.kind, found.state, found.days_left, found.problem) == ("trial", state, days_left, "")
    assert found.is_valid == (state != "lapsed")


def test_a_deleted_or_restored_database_does_not_lengthen_the_trial(state: str) -> None:
    trial.write_file(state, days_ago(91))
    assert not resolve().is_valid
    facts.put({trial.FACT: now()})  # of a new database, or of a later installation's snapshot
    assert not resolve().is_valid
    os.unlink(trial.file_of(state))
    facts.put({trial.FACT: days_ago(91)})  # root's file was deleted instead
    assert not resolve().is_valid


@pytest.mark.parametrize("place", ["file", "database"])
def test_a_clock_set_back_does_not_lengthen_the_trial(state: str, place: str) -> None:
    """The trial is judged by the latest time that was seen, wherever that is still known."""
    facts.put({trial.FACT: now()})
    assert resolve().is_valid
    seen = Record(after(now(), 100 * DAY_S))
    if place == "file":
        clock.write_file(state, seen)
    else:
        facts.put(clock.facts_of(seen))
    found = resolve()
    assert not found.is_valid
    assert 99 * DAY_S < found.clock_behind_s <= 101 * DAY_S


def test_a_licence_is_in_force_at_once_and_until_it_is_gone(state: str, vendor: Vendor) -> None:
    """The file is resolved anew when it is replaced; no restart."""
    trial.write_file(state, days_ago(91))
    path = Path(state, "license.json")
    assert not resolve().is_valid
    put(vendor, path, users=5)
    found = resolve()
    assert (found.kind, found.is_valid, found.licence and found.licence.users) == ("signed", True, 5)
    put(vendor, path, users=6)
    found = resolve()
    assert found.licence is not None
    assert found.licence.users == 6
    path.unlink()
    assert not resolve().is_valid


def test_the_signature_is_checked_once_for_each_file(state: str, vendor: Vendor) -> None:
    put(vendor, Path(state, "license.json"))
    first = resolve().licence
    assert resolve().licence is first


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"not_before": "2020-01-01", "not_after": "2020-12-31"}, "ended on 2021-01-01"),
        ({"not_before": "2099-01-01"}, "is valid only from 2099-01-01"),
        ({"request": "svc1-pmep-s13s-3fwe-6ehf-egz8-yxhp-a0cb-hga0"}, "is for another host"),
    ],
)
def test_a_licence_that_is_not_in_force_leaves_the_trial(
    state: str, vendor: Vendor, options: dict[str, str], why: str
) -> None:
    put_options = dict(options)
    if "request" in put_options:
        path = Path(state, "license.json")
        path.write_bytes(vendor.sign(CODE))
        configured(license_path=str(path), license_keys=(vendor.public,), request_code=put_options["request"])
    else:
        put(vendor, Path(state, "license.json"), **put_options)
    trial.write_file(state, days_ago(10))
    found = resolve()
    assert (found.kind, found.is_valid) == ("trial", True)
    assert why in found.problem
    trial.write_file(state, days_ago(100))
    found = resolve()
    assert not found.is_valid
    assert found.kind == ("signed" if "ended" in why else "trial")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_no_licence(state: str, vendor: Vendor, make: object) -> None:
    configured(license_keys=(vendor.public,))
    make(f"{state}/license.json")  # type: ignore[operator]
    assert "is not a regular file" in resolve().problem


def test_a_clock_set_back_does_not_lengthen_a_licence(state: str, vendor: Vendor) -> None:
    trial.write_file(state, days_ago(100))
    put(vendor, Path(state, "license.json"), not_after="2030-12-31")
    assert resolve().is_valid
    clock.write_file(state, Record("2031-01-02T00:00:00.000Z"))
    assert not resolve().is_valid


def test_a_new_licence_mends_a_clock_that_was_ahead(state: str, vendor: Vendor) -> None:
    """It can be installed, though a time after its end was seen; one of before cannot."""
    put(vendor, Path(state, "license.json"), not_after="2030-12-31")
    licence = entitlement.installed()
    assert licence is not None
    wrong = Record("2040-01-01T00:00:00.000Z", days_ago(100))
    entitlement.require_in_time(licence, wrong)
    with pytest.raises(LicenseInvalid, match="ended on 2031-01-01"):
        entitlement.require_in_time(licence, wrong._replace(issued=licence.issued))


def test_without_a_database_roots_files_decide(state: str) -> None:
    facts.put({trial.FACT: days_ago(100)})
    assert resolve(with_database=False).is_valid
    trial.write_file(state, days_ago(100))
    assert not resolve(with_database=False).is_valid
