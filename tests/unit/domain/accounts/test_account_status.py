"""Whether an account may be used now: its row's word, and the host's, which holds for five seconds."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import FarEnd, make_user

from svc.domain.accounts import account_status, removal, users
from svc.domain.accounts.users import Account
from svc.errors import AccountDisabled, AccountIncomplete, EngineUnavailable


@pytest.fixture(autouse=True)
def asked_anew() -> None:
    """Nobody was asked about yet."""
    account_status.forget()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the module sees; set its one item."""
    time = [1000.0]
    monkeypatch.setattr("svc.domain.accounts.account_status.time.monotonic", lambda: time[0])
    return time


def account(name: str, uid: int, **columns: Any) -> Account:
    user = make_user(name, uid)
    if columns:
        users.update(user, **columns)
    found = users.find_by_id(user.id)
    assert found is not None
    return found


def asked(far: FarEnd) -> list[str]:
    return [call.user for call in far.calls if call.verb.name == "account.check"]


def test_the_hosts_word_holds_for_five_seconds(far: FarEnd, clock: list[float]) -> None:
    """ "an answer older than 5 s is asked again"."""
    ada, bob = account("ada", 2001), account("bob", 2002)
    for _ in range(3):
        account_status.require(ada, far.helper, "req-1")
    assert asked(far) == ["ada"]
    account_status.require(bob, far.helper, "req-1")
    clock[0] += 4.9
    account_status.require(ada, far.helper, "req-1")
    assert asked(far) == ["ada", "bob"]
    clock[0] += 0.1
    account_status.require(ada, far.helper, "req-1")
    assert asked(far) == ["ada", "bob", "ada"]


def test_it_holds_from_when_pam_gave_it(far: FarEnd, clock: list[float]) -> None:
    """The helper's answer may be some seconds old already: the two waits do not add up."""
    ada = account("ada", 2001)
    far.answers["account.check"] = {"good_for_ms": 1500}
    account_status.require(ada, far.helper, "req-1")
    clock[0] += 1.4
    account_status.require(ada, far.helper, "req-1")
    clock[0] += 0.2
    account_status.require(ada, far.helper, "req-1")
    assert asked(far) == ["ada", "ada"]


def test_an_expired_linux_account_is_out_within_five_seconds(far: FarEnd, clock: list[float]) -> None:
    """ "an expired account must not keep working through a token"."""
    ada = account("ada", 2001)
    account_status.require(ada, far.helper, "req-1")
    far.answers["account.check"] = "account"
    clock[0] += 5.0
    for _ in range(2):  # a no is asked again every time
        with pytest.raises(AccountDisabled):
            account_status.require(ada, far.helper, "req-1")
    assert len(asked(far)) == 3
    far.answers["account.check"] = {"good_for_ms": 5000}
    account_status.require(ada, far.helper, "req-1")


def test_a_helper_that_does_not_answer_lets_nobody_in(far: FarEnd) -> None:
    far.answers["account.check"] = None
    with pytest.raises(EngineUnavailable):
        account_status.require(account("ada", 2001), far.helper, "req-1")


def test_the_rows_own_word_comes_first_and_is_never_kept(far: FarEnd) -> None:
    account_status.require(account("ada", 2001), far.helper, "req-1")
    users.update(users.get("ada"), disabled=True)
    disabled = users.find_by_uid(2001)
    assert disabled
    with pytest.raises(AccountDisabled):
        account_status.require(disabled, far.helper, "req-1")
    for number, provisioning in enumerate(("incomplete", "cleanup_required")):
        half = account(f"half{number}", 2100 + number, provisioning=provisioning, disabled=True)
        with pytest.raises(AccountIncomplete) as refused:
            account_status.require(half, far.helper, "req-1")
        assert refused.value.hint == f"sudo svc admin create-user half{number}"
    assert asked(far) == ["ada"]


def test_the_host_is_not_asked_about_root(far: FarEnd) -> None:
    account_status.require(account("root", 0, superuser=True), far.helper, "req-1")
    assert asked(far) == []


def test_a_name_that_was_given_a_new_uid_is_asked_about_anew(far: FarEnd) -> None:
    ada = account("ada", 2001)
    account_status.require(ada, far.helper, "req-1")
    account_status.require(ada._replace(uid=2009), far.helper, "req-1")
    assert asked(far) == ["ada", "ada"]


def test_what_is_kept_is_bounded(far: FarEnd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_status, "CACHED_MAX", 2)
    ada = account("ada", 2001)
    for number in range(3):
        account_status.require(ada._replace(uid=2001 + number), far.helper, "req-1")
    assert len(account_status._good_until) == 1
    account_status.forget()
    assert not account_status._good_until


def test_each_refusal_names_the_command_that_goes_on(far: FarEnd) -> None:
    ada = account("ada", 2001)
    far.answers["account.check"] = "account"
    with pytest.raises(AccountDisabled) as expired:
        account_status.require(ada, far.helper, "req-1")
    assert expired.value.hint == "sudo chage --list ada"
    far.answers["account.check"] = "refused"
    with pytest.raises(AccountIncomplete) as unknown:
        account_status.require(ada, far.helper, "req-1")
    assert unknown.value.hint == "sudo svc admin create-user ada"
    with pytest.raises(AccountDisabled) as disabled:
        account_status.require(ada._replace(disabled=True), far.helper, "req-1")
    assert disabled.value.hint == "sudo svc admin edit-user ada --enable"
    half = ada._replace(disabled=True, provisioning=users.CLEANUP, provisioning_note=removal.BEGUN)
    with pytest.raises(AccountDisabled, match="is being deleted"):  # no set-up would complete it
        account_status.require(half, far.helper, "req-1")
