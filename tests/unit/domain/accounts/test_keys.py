"""One secret, a key for each purpose, and another secret for what --dev signs."""

from __future__ import annotations

import pytest
from unit.configuring import SECRET, configured

from svc.domain.accounts import keys
from svc.errors import HostRefused


def test_each_purpose_has_its_own_key() -> None:
    created = {keys.derived(purpose) for purpose in (b"session cookies", b"login failures", b"x")}
    assert len(created) == 3
    assert all(len(key) == 32 for key in created)
    assert keys.derived(b"x") == keys.derived(b"x")
    assert keys.secret() == SECRET


def test_no_key_without_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    configured(secret=b"")
    for ask in (keys.secret, lambda: keys.derived(b"session cookies"), lambda: keys.derived(b"x")):
        with pytest.raises(HostRefused):
            ask()


def test_dev_signs_sessions_with_a_secret_of_its_own() -> None:
    """ "In `--dev` mode the JWT signing secret is ephemeral"; passwords outlive it all the same."""
    before = keys.derived(b"session cookies"), keys.derived(b"login failures")
    configured(session_secret=b"forgotten when this process ends")
    assert keys.derived(b"session cookies") != before[0]
    assert keys.derived(b"login failures") == before[1]
    assert keys.secret() == SECRET
