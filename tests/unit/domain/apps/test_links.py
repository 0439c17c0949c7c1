"""One-time links: what they open, once, for five minutes."""

from __future__ import annotations

import pytest
from unit.domain.apps.conftest import ID, ORIGIN

from svc.apps.addresses import App
from svc.db.connect import database
from svc.domain.apps import links
from svc.domain.principal import Caller
from svc.errors import NotFound
from svc.host.ids import after, now
from svc.limits import APP_LINK_S

LAB = App("lab", ID)


def secret(record: dict[str, str]) -> str:
    """The ticket in a link."""
    return record["link"].partition("#")[2].partition("/")[0]


def test_a_link(ada: Caller, workspace: str) -> None:
    record = links.issue(ada, "notes", "lab", "/lab?a=1")
    assert record["url"] == f"{ORIGIN}/lab?a=1"
    assert record["link"] == f"{ORIGIN}/.svc/enter#{secret(record)}/lab?a=1"
    assert now() < record["expires_at"] <= after(now(), APP_LINK_S)
    assert links.describe(secret(record), LAB) == ("ada", "notes")
    assert links.redeem(secret(record), LAB) == ("peer", "", ada.user_id)
    assert links.redeem(secret(record), LAB) is None
    assert links.describe(secret(record), LAB) is None


def test_it_opens_one_app(ada: Caller, workspace: str) -> None:
    for other in (App("login", ID), App("lab", "ws-aaaaaaaa")):
        taken = secret(links.issue(ada, "notes", "lab"))
        assert links.describe(taken, other) is None
        assert links.redeem(taken, other) is None
        assert links.redeem(taken, LAB) is None, "whoever tried it elsewhere has used it up"


def test_it_ends_with_its_time_and_its_account(ada: Caller, workspace: str) -> None:
    taken = secret(links.issue(ada, "notes", "lab"))
    database.execute_sql("UPDATE tickets SET expires_at = ?", (after(now(), -1),))
    assert links.describe(taken, LAB) is None
    taken = secret(links.issue(ada, "notes", "lab"))
    database.execute_sql("UPDATE users SET disabled = 1 WHERE id = ?", (ada.user_id,))
    assert links.redeem(taken, LAB) is None


def test_others_get_none(bob: Caller, boss: Caller, workspace: str) -> None:
    with pytest.raises(NotFound):
        links.issue(bob, ID, "lab")
    with pytest.raises(Exception, match="another user's workspace"):
        links.issue(boss, ID, "lab")
