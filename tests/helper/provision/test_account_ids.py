"""Asking for ids that nobody lists: of every id once, spread over the range, for a bounded time."""

from __future__ import annotations

import grp
import itertools
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_helper.provision import account_ids

RANGE = (100_000, 165_536)


@pytest.mark.parametrize(
    ("text", "uid", "gid"),
    [
        ("passwd: files systemd\ngroup: files\n", False, False),
        ("passwd:\tfiles [NOTFOUND=continue] systemd # sss\ngroup: compat\n", False, False),
        ("passwd: files sss\ngroup: files[SUCCESS=merge]ldap\n", True, True),
        ("passwd: files\n group : winbind files\n", False, True),
        ("hosts: files dns\n", False, False),
        ("", False, False),
    ],
)
def test_services_that_do_not_list_their_accounts(tmp_path: Path, text: str, uid: bool, gid: bool) -> None:
    path = tmp_path / "nsswitch.conf"
    path.write_text(text)
    assert account_ids.has_directory("uid", str(path)) is uid
    assert account_ids.has_directory("gid", str(path)) is gid
    assert not account_ids.has_directory("uid", str(tmp_path / "none"))


@pytest.mark.parametrize(("first", "end"), [(0, 0), (5, 6), (5, 7), (7, 10), (100, 228), (100, 229)])
def test_every_id_is_asked_for_once(first: int, end: int) -> None:
    assert sorted(account_ids.spread(first, end)) == list(range(first, end))


def test_a_block_is_found_early() -> None:
    """After 2048 of 65536 ids no gap is wider than 32."""
    asked = sorted(itertools.islice(account_ids.spread(*RANGE), 2049))
    assert (asked[0], asked[-1]) == (RANGE[0], RANGE[1] - 1)
    assert max(after - before for before, after in itertools.pairwise(asked)) == 32


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """directory(first, end): a directory service with accounts and groups of these ids."""

    def has(first: int, end: int) -> None:
        def account(number: int) -> pwd.struct_passwd:
            if first <= number < end:
                return pwd.struct_passwd(("far", "x", number, number, "", "/", ""))
            raise KeyError(number)

        def group(number: int) -> grp.struct_group:
            return grp.struct_group((account(number).pw_name, "x", number, []))

        monkeypatch.setattr(pwd, "getpwuid", account)
        monkeypatch.setattr(grp, "getgrgid", group)

    return has


@pytest.mark.parametrize("kind", ["uid", "gid"])
@pytest.mark.parametrize("number", [100_000, 100_001, 131_071, 165_535])
def test_one_account_in_the_range_is_found(
    directory: Callable[[int, int], None], kind: str, number: int
) -> None:
    directory(number, number + 1)
    found = account_ids.search(kind, *RANGE, 60)
    assert (found.name, found.id) == ("far", number)
    directory(99_999, 100_000)
    assert account_ids.search(kind, *RANGE, 60) == ("", 0, 65_536)


def test_the_time_is_bounded(directory: Callable[[int, int], None]) -> None:
    directory(0, 0)
    found = account_ids.search("uid", *RANGE, 0)
    assert (found.name, found.asked) == ("", 1)
