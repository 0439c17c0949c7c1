"""The check of subordinate ids, on made-up hosts."""

from __future__ import annotations

import grp
import pwd

import pytest
from unit.admin.checks import made_up
from unit.admin.checks.made_up import ADA, BEN, put

from svc.admin.checks import subids
from svc.admin.findings import Enrolled, Finding, Host

host = made_up.host


@pytest.fixture
def no_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose only real account is number 1000 (and group 1000)."""
    person = pwd.struct_passwd(("real", "x", 1000, 1000, "", "/", ""))
    group = grp.struct_group(("real", "x", 1000, []))
    monkeypatch.setattr(pwd, "getpwall", lambda: [person])
    monkeypatch.setattr(grp, "getgrall", lambda: [group])


def found_in(host: Host, text: str) -> list[Finding]:
    put(host, "/etc/subuid", text)
    put(host, "/etc/subgid", "ada:100000:65536\nben:165536:65536\n")
    return [finding for finding in subids.subids(host) if finding.code.startswith("subuid")]


def test_a_range_of_65536_is_enough(host: Host, no_accounts: None) -> None:
    host.enrolled = [ADA, BEN]
    for text in (
        "ada:100000:65536\n4002:165536:65536\n",
        "ada:100000:30000\nada:130000:35536\nben:200000:65536\n",
    ):
        assert [finding.level for finding in found_in(host, text)] == ["ok"]


def test_a_missing_range_has_a_remedy_that_takes_nobodys(host: Host, no_accounts: None) -> None:
    host.enrolled = [ADA, BEN]
    found = found_in(host, "carl:100000:65536\nada:165536:1000\nnonsense\n:::\n")
    assert [finding.level for finding in found] == ["fail", "fail"]
    assert found[0].remedy == "sudo usermod --add-subuids 166536-232071 ada"
    assert found[1].remedy == "sudo usermod --add-subuids 232072-297607 ben"


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("ada:100000:65536\nben:150000:65536\n", "ada and ben"),
        ("ben:150000:10\nada:100000:65536\n", "ada and ben"),
        ("ada:100000:65536\nx:100000:65536\n", "ada and x"),
        ("ada:100000:65536\nx:300000:5\nwide:200000:900000\n", "wide and x"),
    ],
)
def test_overlaps_between_any_two_are_found(host: Host, no_accounts: None, text: str, pair: str) -> None:
    (overlap,) = [finding for finding in found_in(host, text) if finding.code == "subuid_overlap"]
    assert overlap.level == "fail"
    assert overlap.found.startswith(pair)


def test_a_range_over_a_real_account_is_found(host: Host, no_accounts: None) -> None:
    found = [finding for finding in found_in(host, "ada:500:65536\n") if finding.code == "subuid_overlap"]
    assert [finding.level for finding in found] == ["fail"]
    assert "uid 1000 of a real account" in found[0].found


def test_a_range_over_an_account_of_a_directory_service_is_found(
    host: Host, no_accounts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not listed; whoever enrolled is known, the others are asked for."""
    far = pwd.struct_passwd(("far", "x", 150_000, 150_000, "", "/", ""))

    def by_id(number: int) -> pwd.struct_passwd:
        if number != 150_000:
            raise KeyError(number)
        return far

    def overlaps() -> list[Finding]:
        return [finding for finding in found_in(host, "ada:100000:65536\n") if "overlap" in finding.code]

    monkeypatch.setattr(pwd, "getpwuid", by_id)
    assert overlaps() == []
    put(host, "/etc/nsswitch.conf", "passwd: files sss\n")
    (found,) = overlaps()
    assert "contains uid 150000 of a real account" in found.found
    put(host, "/etc/nsswitch.conf", "passwd: files\n")
    host.enrolled = [Enrolled("far", 150_000)]
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: far)
    (found,) = overlaps()
    assert "contains uid 150000 of a real account" in found.found


def test_group_ids_alike(host: Host, no_accounts: None) -> None:
    put(host, "/etc/subuid", "ada:100000:65536\n")
    put(host, "/etc/subgid", "ada:900:65000\nben:300000:65536\n")
    found = [(finding.code, finding.level) for finding in subids.subids(host)]
    assert found == [("subuid", "ok"), ("subgid", "fail"), ("subgid_overlap", "fail")]
