"""Who is let in, and what everybody else is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from unit.domain.apps.conftest import ID, LAB
from unit.domain.apps.test_links import secret

from svc.db.connect import database
from svc.domain.accounts import account_status, tokens
from svc.domain.accounts.tickets import Holder
from svc.domain.apps import admission, links, visits
from svc.domain.principal import Caller
from svc.errors import AccountDisabled, AppNotFound, AppSignIn, PatNotAllowed, WorkspaceNotRunning
from svc.helper.helper import Helper

COMMAND = f"svc ws open {ID} lab --link"
SignIn = Callable[[Caller], str]


@pytest.fixture
def helper(ada: Caller) -> Helper:
    return ada.helper


def begin(caller: Caller) -> str:
    """A cookie for the app."""
    return visits.begin(Holder("peer", "", caller.user_id), LAB, "192.0.2.7")[1]


def test_the_owner(ada: Caller, workspace: str, helper: Helper) -> None:
    found = admission.by_cookie(begin(ada), LAB, helper, "r")
    assert (found.user, found.owner, found.workspace_id, found.container_port) == ("ada", "ada", ID, 8888)


def test_nobody_else(bob: Caller, boss: Caller, workspace: str, helper: Helper) -> None:
    """Administrators neither; a row that should not be there opens nothing."""
    for caller in (bob, boss):
        with pytest.raises(AppNotFound, match="there is no such app, or it is not yours"):
            admission.by_cookie(begin(caller), LAB, helper, "r")


def test_without_a_right_cookie(workspace: str, helper: Helper) -> None:
    for cookie in ("", "x", "x" * 43):
        with pytest.raises(AppSignIn) as raised:
            admission.by_cookie(cookie, LAB, helper, "r")
        assert raised.value.hint == COMMAND


def test_a_stopped_workspace(ada: Caller, workspace: str, helper: Helper) -> None:
    cookie = begin(ada)
    database.execute_sql("UPDATE workspaces SET status = 'stopped'")
    with pytest.raises(WorkspaceNotRunning) as raised:
        admission.by_cookie(cookie, LAB, helper, "r")
    assert raised.value.hint == "svc ws start notes"


def test_a_port_of_another_kind(ada: Caller, workspace: str, helper: Helper) -> None:
    cookie = begin(ada)
    database.execute_sql("UPDATE ports SET kind = 'tcp' WHERE name = 'lab'")
    with pytest.raises(AppNotFound):
        admission.by_cookie(cookie, LAB, helper, "r")


def test_a_linux_account_that_has_expired(ada: Caller, workspace: str, helper: Helper, far: object) -> None:
    cookie = begin(ada)
    account_status.forget()
    far.answers["account.check"] = "account"  # type: ignore[attr-defined]
    with pytest.raises(AccountDisabled):
        admission.by_cookie(cookie, LAB, helper, "r")


def test_entering(ada: Caller, workspace: str, helper: Helper) -> None:
    ticket = secret(links.issue(ada, "notes", "lab"))
    assert admission.describe(ticket, LAB) == ("ada", "notes")
    cookie = admission.enter(ticket, LAB, LAB.origin, "192.0.2.7", helper, "r")
    assert admission.by_cookie(cookie, LAB, helper, "r").user == "ada"
    with pytest.raises(AppSignIn, match="used before") as raised:
        admission.enter(ticket, LAB, LAB.origin, "192.0.2.7", helper, "r")
    assert raised.value.hint == COMMAND
    with pytest.raises(AppSignIn):
        admission.describe(ticket, LAB)
    rows = database.execute_sql("SELECT outcome, user_name, address FROM audit WHERE action = 'app.open'")
    assert rows.fetchall() == [("begun", "ada", "192.0.2.7"), ("ok", "ada", "192.0.2.7")]


def test_another_page_signs_nobody_in_and_uses_nothing_up(
    ada: Caller, workspace: str, helper: Helper
) -> None:
    ticket = secret(links.issue(ada, "notes", "lab"))
    for poster in ("", "null", f"{LAB.origin}.evil.example", "http://wiki-f7d3k2qa.localhost:24681"):
        with pytest.raises(AppSignIn):
            admission.enter(ticket, LAB, poster, "192.0.2.7", helper, "r")
    assert admission.enter(ticket, LAB, LAB.origin, "192.0.2.7", helper, "r")


def test_a_port_that_has_gone_meanwhile(ada: Caller, workspace: str, helper: Helper) -> None:
    ticket = secret(links.issue(ada, "notes", "lab"))
    database.execute_sql("DELETE FROM ports WHERE name = 'lab'")
    with pytest.raises(AppNotFound):
        admission.enter(ticket, LAB, LAB.origin, "192.0.2.7", helper, "r")


def test_a_program_with_a_token(ada: Caller, bob: Caller, workspace: str, helper: Helper) -> None:
    def by(secret: str) -> str:
        found = admission.by_token(secret, LAB, "192.0.2.7", helper, "r")
        assert found
        return found.user

    assert by(tokens.create(ada, "every", scopes=["apps"])["secret"]) == "ada"
    assert by(tokens.create(ada, "one", app=f"{ID}/lab")["secret"]) == "ada"
    for name, more in (("plain", {}), ("files", {"scopes": ["files"]}), ("other", {"app": f"{ID}/x"})):
        with pytest.raises(PatNotAllowed) as raised:
            by(tokens.create(ada, name, **more)["secret"])
        assert raised.value.hint == "svc token create --name NAME --scope apps"
    with pytest.raises(AppNotFound):
        by(tokens.create(bob, "every", scopes=["apps"])["secret"])
    assert admission.by_token("svc_pat_nothing", LAB, "192.0.2.7", helper, "r") is None


def test_a_revoked_token_ends_its_connections(ada: Caller, workspace: str, helper: Helper) -> None:
    made = tokens.create(ada, "every", scopes=["apps"])
    found = admission.by_token(made["secret"], LAB, "192.0.2.7", helper, "r")
    assert found and found.visit == made["id"]
    assert visits.ended([found.visit]) == []
    tokens.revoke(ada, "every")
    assert visits.ended([found.visit]) == [made["id"]]
