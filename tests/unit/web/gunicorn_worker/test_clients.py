"""A user counts with the user's subordinate uids; everybody without account counts as one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.web.gunicorn_worker import clients
from svc.web.gunicorn_worker.clients import STRANGERS, Uids

SUBUID = "demo:100000:65536\n1002:300000:65536\nnobodys:500000:65536\ndemo:900000:10\nbroken:line\n:::\n"


@pytest.fixture
def uids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Uids:
    """`demo` (1001) and `other` (1002) have accounts."""
    monkeypatch.setattr(clients, "CHECK_S", 0)
    (tmp_path / "enrolled").write_text("demo 1001 user\nother 1002 administrator\n")
    (tmp_path / "subuid").write_text(SUBUID)
    return Uids(str(tmp_path / "enrolled"), str(tmp_path / "subuid"))


@pytest.mark.parametrize(
    ("uid", "client"),
    [
        (1001, "uid 1001"),
        (100000, "uid 1001"),
        (165535, "uid 1001"),
        (900009, "uid 1001"),
        (1002, "uid 1002"),
        (300000, "uid 1002"),
        (0, "uid 0"),
        (99999, STRANGERS),
        (165536, STRANGERS),
        (500000, STRANGERS),
        (1003, STRANGERS),
        (4294967295, STRANGERS),
    ],
)
def test_whose_client_a_uid_is(uids: Uids, uid: int, client: str) -> None:
    assert uids.client_of(uid) == client


def test_the_files_are_read_again_when_they_change(uids: Uids, tmp_path: Path) -> None:
    assert uids.client_of(1003) == STRANGERS
    (tmp_path / "enrolled").write_text("demo 1001 user\nthird 1003 user\n")
    assert (uids.client_of(1003), uids.client_of(1002)) == ("uid 1003", STRANGERS)
    (tmp_path / "subuid").write_text("third:100000:65536\n")
    assert (uids.client_of(100000), uids.client_of(900000)) == ("uid 1003", STRANGERS)


def test_without_files_the_service_itself_and_root_are_known(tmp_path: Path) -> None:
    uids = Uids(str(tmp_path / "none"), str(tmp_path / "neither"))
    me = os.geteuid()
    assert (uids.client_of(me), uids.client_of(me + 1)) == (f"uid {me}", STRANGERS)
