"""Operations over HTTP: the list's bounds, the log's, and nobody else's."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import checked, make_template

from svc.domain import operations
from svc.web.schemas.operations import OPERATIONS, Operation, OperationLog

LIST = "/api/operations"


@pytest.fixture
def pulled(listeners: Any, people: Any) -> str:
    """The id of a pull of ada's."""
    make_template(people["ada"].id)
    reply = listeners.ask("ada", "POST", "/api/templates/base/image/pull").get_json()
    return str(reply["operation"]["id"])


def test_a_list_has_the_shape_of_every_list(listeners: Any, pulled: str) -> None:
    found = listeners.ask("ada", "GET", f"{LIST}?limit=1&kind=pull,build&status=queued").get_json()
    assert set(found) == set(OPERATIONS.fields)
    assert set(found["items"][0]) == set(Operation().fields)
    assert (found["total"], found["next_offset"], found["items"][0]["id"]) == (1, None, pulled)
    assert found["items"][0]["template"]["name"] == "base"
    for who in ("bob", "boss", "root"):
        assert listeners.ask(who, "GET", LIST).get_json()["items"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=201", "limit"),
        ("limit=0", "limit"),
        ("offset=-1", "offset"),
        ("kind=bogus", "kind"),
        ("kind=pull,", "kind"),
        ("status=open", "status"),
        ("sort=request_json", "sort"),
        ("subject=" + "x" * 256, "subject"),
        ("subject=a%00b", "subject"),
        ("owner=ada", "owner"),
        ("q=" + "x" * 129, "q"),
    ],
)
def test_a_list_has_bounds(listeners: Any, pulled: str, query: str, field: str) -> None:
    error = checked(listeners.ask("ada", "GET", f"{LIST}?{query}"), 422, "validation_failed")
    assert [row["field"] for row in error["fields"]] == [field]


@pytest.mark.parametrize("subject", ["'; DROP TABLE operations; --", "%", "_", "\\", "*"])
def test_a_subject_is_compared_whole(listeners: Any, pulled: str, subject: str) -> None:
    reply = listeners.ask("ada", "GET", LIST, query_string={"subject": subject})
    assert reply.get_json()["items"] == []


def test_a_log_is_read_on(listeners: Any, pulled: str) -> None:
    operations.add_log(pulled, "one", "two", "three")
    path = f"{LIST}/{pulled}/log"
    found = listeners.ask("ada", "GET", f"{path}?after=1").get_json()
    assert set(found) == set(OperationLog().fields)
    assert ([line["text"] for line in found["lines"]], found["next"]) == (["two", "three"], 3)
    assert listeners.ask("ada", "GET", f"{path}?after=1000000000").get_json()["lines"] == []
    for after in ("-1", "1000000001", "x", "1e3", "", "9" * 30):
        checked(listeners.ask("ada", "GET", f"{path}?after={after}"), 422, "validation_failed")


@pytest.mark.parametrize("below", ["", "/log", "/log?after=1"])
def test_others_operations_are_not_there(listeners: Any, pulled: str, below: str) -> None:
    """The same answer as for one that does not exist."""
    for who in ("bob", "boss", "root"):
        theirs = checked(listeners.ask(who, "GET", f"{LIST}/{pulled}{below}"), 404, "not_found")
        none = checked(listeners.ask(who, "GET", f"{LIST}/op-00000000{below}"), 404, "not_found")
        assert theirs["message"].replace(pulled, "") == none["message"].replace("op-00000000", "")
