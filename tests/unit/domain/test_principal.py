"""Who asks, and as whom calls are made."""

from __future__ import annotations

from dataclasses import replace

import pytest
from unit.serving import FarEnd

from svc.domain.principal import Caller
from svc.errors import EngineFailed


def test_who_administers(ada: Caller, boss: Caller) -> None:
    assert not ada.administers
    assert boss.administers
    assert replace(boss, kind="session").administers
    assert not replace(boss, kind="pat").administers  # "It never performs administrator operations"


def test_calls_are_made_as_the_caller_or_the_owner(ada: Caller, boss: Caller, far: FarEnd) -> None:
    ada.ask("ctr.stop", {"id": "ws-0000000a", "grace_s": 1})
    boss.ask("ctr.stop", {"id": "ws-0000000a", "grace_s": 1}, owner="ada", timeout_s=7)
    assert [(call.user, call.rid) for call in far.calls] == [("ada", "req-test"), ("ada", "req-test")]
    assert far.calls[1].timeout_s == 7


def test_callers_do_not_change(ada: Caller) -> None:
    with pytest.raises(AttributeError):
        ada.superuser = True  # type: ignore[misc]


def test_an_engines_words_are_for_its_owner(far: FarEnd, ada: Caller) -> None:
    """Administrators stop and remove others' workspaces, and get the error alone."""
    far.answers["ctr.stop"] = ("storage_damaged", "stat /home/ada/secret: no such file")
    for owner, words in ((None, True), ("ada", True), ("bob", False)):
        with pytest.raises(EngineFailed, match="said storage_damaged") as caught:
            ada.ask("ctr.stop", {"id": "ws-0000000a", "grace_s": 1}, owner=owner)
        assert ("engine" in caught.value.details) is words
