"""The ways into a port by its kind: the same of one record, made in Python, and of a list, made by SQLite."""

from __future__ import annotations

import pytest
from unit.serving import FarEnd, make_workspace

from svc import limits
from svc.db.connect import database
from svc.domain.principal import Caller
from svc.domain.workspaces import ports, records

WAYS = [
    ("http", None, "http://127.0.0.1:{}", "http://127.0.0.1:{}"),
    ("https", None, "https://127.0.0.1:{}", "https://127.0.0.1:{}"),
    ("tcp", None, None, "127.0.0.1:{}"),
    ("ssh", None, None, "ssh -p {} root@127.0.0.1"),
    ("ssh", "ada.l", None, "ssh -p {} ada.l@127.0.0.1"),
    ("postgres", None, "postgresql://postgres@127.0.0.1:{}/", "psql postgresql://postgres@127.0.0.1:{}/"),
    ("postgres", "me", "postgresql://me@127.0.0.1:{}/", "psql postgresql://me@127.0.0.1:{}/"),
]


@pytest.fixture
def lab(ada: Caller, template: str) -> str:
    """A running one."""
    workspace = make_workspace(ada.user_id, template)
    database.execute_sql("UPDATE workspaces SET status = 'running', container_id = ?", ("c" * 64,))
    return workspace


@pytest.mark.parametrize(("kind", "user", "url", "connect"), WAYS)
def test_each_kind_has_its_way_in(
    ada: Caller, far: FarEnd, lab: str, kind: str, user: str | None, url: str | None, connect: str
) -> None:
    record = ports.add(ada, "lab", "web", 22, kind=kind, user=user)
    number = record["host_port"]
    assert record["url"] == (url and url.format(number))
    assert record["connect"] == connect.format(number)
    (of_list,) = records.one(lab)["ports"]  # put together by SQLite
    assert of_list == {key: record[key] for key in of_list}
    assert {"kind", "user", "url", "connect", "ssh"} < of_list.keys()


def test_every_kind_is_shown() -> None:
    assert {kind for kind, *_ in WAYS} == set(limits.PORT_KINDS)
