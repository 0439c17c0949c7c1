"""Owners as people know them: users of the host, and the ids that subordinate ids have inside containers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from svc_helper.agent import subid_ranges
from svc_helper.agent.files.owners import Owners
from svc_helper.agent.home import Home

HOME = cast("Home", SimpleNamespace(user="ada", uid=61234))


@pytest.fixture
def subuid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The host's list of subordinate ids."""
    path = tmp_path / "subuid"
    monkeypatch.setattr(subid_ranges, "FILES", (str(path), str(path)))
    return path


def test_by_the_ranges_of_the_user(subuid: Path) -> None:
    subuid.write_text("bob:100000:65536\nada:300000:1000\n61234:500000:65536\nada:x:y\nada:1\n")
    owners = Owners(HOME)
    for uid, text in (
        (61234, "ada"), (0, "root"), (300000, "container:1"), (300998, "container:999"),
        (500000, "container:1001"), (100005, "100005"), (4_000_000_000, "4000000000"),
    ):  # fmt: skip
        assert (owners.text(uid), owners.text(uid)) == (text, text)
    assert [owners.is_subordinate(uid) for uid in (300000, 300999, 301000, 61234, 0, 100000)] == [
        True, True, False, False, False, False,
    ]  # fmt: skip


def test_without_ranges(subuid: Path) -> None:
    owners = Owners(HOME)
    assert (owners.text(61234), owners.text(300000)) == ("ada", "300000")
    assert not owners.is_subordinate(300000)


def test_a_name_that_is_not_utf_8(subuid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a directory service; a lone surrogate in a reply would refuse the whole list."""
    named = SimpleNamespace(pw_name=b"bg\xfcn".decode(errors="surrogateescape"))
    monkeypatch.setattr("pwd.getpwuid", lambda uid: named)
    assert Owners(HOME).text(7000) == "bg\ufffdn"
