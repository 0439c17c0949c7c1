"""Subordinate ids: a whole range for each account, and no id of it anybody else's."""

from __future__ import annotations

import fcntl
import pwd
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helper.stage import Stage, edit, enrolled, ensure, remove_user
from uids import highest_uid

from svc import errors
from svc_helper import atomic_file
from svc_helper.provision import account_ids, subids
from svc_helper.provision.subids import COUNT, Span
from svc_helper.provision.verbs import Refusal
from svc_helper.root.check import resolve

NEW = "tsh-new"


@pytest.fixture
def new_user() -> Iterator[str]:
    """An account of the name, without subordinate ids; what the test writes of it in the files goes again."""
    remove_user(NEW)
    keys = ["--key", "SUB_UID_COUNT=0", "--key", "SUB_GID_COUNT=0"]
    subprocess.run(["useradd", "--create-home", *keys, NEW], check=True)
    number = str(pwd.getpwnam(NEW).pw_uid)
    yield NEW
    remove_user(NEW)
    for kind in ("uid", "gid"):
        edit(f"sub{kind}", lambda line: line.split(":")[0] not in (NEW, number, "tsh-other"))


def give(kind: str, *lines: str) -> None:
    """Add lines to the file."""
    edit(f"sub{kind}", lambda line: True, *lines)


def own(kind: str, name: str) -> list[Span]:
    """The account's own lines."""
    return [span for span in subids.read(kind) if span.owner == name]


def free() -> int:
    """An id far from all that is taken."""
    return 2_000_000 + max([span.end for span in subids.read("uid") if span.end < 10**9], default=0)


def test_both_files_get_a_whole_range(stage: Stage, new_user: str) -> None:
    ensure(stage, new_user)
    for kind in ("uid", "gid"):
        (span,) = own(kind, new_user)
        assert span.end - span.first == COUNT
        others = [other for other in subids.read(kind) if other != span]
        assert not [other for other in [*others, *subids.real_ids(kind)] if span.overlaps(other)]


def test_too_small_a_range_is_not_enough(stage: Stage, new_user: str) -> None:
    give("uid", f"{new_user}:{free()}:{COUNT - 1}")
    ensure(stage, new_user)
    assert sorted(span.end - span.first for span in own("uid", new_user)) == [COUNT - 1, COUNT]


@pytest.mark.parametrize("kind", ["uid", "gid"])
def test_a_line_that_names_the_uid_is_the_accounts_own(stage: Stage, new_user: str, kind: str) -> None:
    number = pwd.getpwnam(new_user).pw_uid
    give(kind, f"{number}:{free()}:{COUNT}")
    ensure(stage, new_user)
    assert own(kind, new_user) == []
    assert len(own({"uid": "gid", "gid": "uid"}[kind], new_user)) == 1


@pytest.mark.parametrize("kind", ["uid", "gid"])
@pytest.mark.parametrize("shift", [0, COUNT - 1, 1 - COUNT])
def test_an_overlap_is_refused_with_the_line_to_remove(
    stage: Stage, new_user: str, kind: str, shift: int
) -> None:
    start = free()
    give(kind, f"tsh-other:{start}:{COUNT}", f"{new_user}:{start + shift}:{COUNT}")
    line = f"{new_user}:{start + shift}:{COUNT}"
    with pytest.raises(
        errors.Conflict, match=f"^subordinate {kind}s: .*{re.escape(line)} from /etc/sub{kind}"
    ):
        ensure(stage, new_user)
    assert len(enrolled(stage)) == 3
    edit(f"sub{kind}", lambda text: text.rstrip() != line)
    ensure(stage, new_user)  # and then it goes


def test_neighbours_do_not_overlap(stage: Stage, new_user: str) -> None:
    start = free()
    give("uid", f"tsh-other:{start}:{COUNT}", f"{new_user}:{start + COUNT}:{COUNT}")
    ensure(stage, new_user)


@pytest.mark.parametrize("owner", ["number", "name"])
def test_a_range_given_twice_to_the_same_account(stage: Stage, new_user: str, owner: str) -> None:
    start, number = free(), pwd.getpwnam(new_user).pw_uid
    give("uid", f"{new_user}:{start}:{COUNT}", f"{number if owner == 'number' else new_user}:{start}:{COUNT}")
    with pytest.raises(errors.Conflict, match="share subordinate uids"):
        ensure(stage, new_user)


@pytest.mark.parametrize("kind", ["uid", "gid"])
def test_a_range_over_real_accounts_or_groups(stage: Stage, new_user: str, kind: str) -> None:
    with highest_uid("tsh-high") as first:  # behind its own
        give(kind, f"{new_user}:{first}:{COUNT}")
        with pytest.raises(errors.Conflict, match=rf"and the (account|group) \S+ share subordinate {kind}s"):
            ensure(stage, new_user)


def test_a_range_over_its_own_uid(stage: Stage, new_user: str) -> None:
    give("uid", f"{new_user}:1000:{COUNT}")
    with pytest.raises(
        errors.Conflict, match=rf"is one of the subordinate uids of {new_user} in /etc/subuid"
    ):
        ensure(stage, new_user)


def test_a_new_range_goes_round_a_real_account(stage: Stage, new_user: str) -> None:
    taken = subids.choose("uid", [*subids.read("uid"), *subids.real_ids("uid")]) + 5
    uids = ["--uid", str(taken), "--key", f"UID_MAX={taken + 1}"]
    subprocess.run(["useradd", "--no-create-home", *uids, "tsh-high"], check=True)
    try:
        ensure(stage, new_user)
        (span,) = own("uid", new_user)
        assert not span.first <= taken < span.end
    finally:
        remove_user("tsh-high")


def test_the_lowest_gap_that_is_wide_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subids, "login_defs", lambda: {"SUB_UID_MIN": 1000, "SUB_UID_MAX": 1000 + 5 * COUNT})
    assert subids.choose("uid", []) == 1000
    low, high = Span(1000, 2000, "a"), Span(2000 + COUNT, 3000 + COUNT, "b")
    assert subids.choose("uid", [high, low]) == 2000
    assert subids.choose("uid", [high, low._replace(end=2001)]) == 3000 + COUNT
    assert subids.choose("uid", [Span(0, 500, "a"), Span(900, 1001, "b")]) == 1001
    with pytest.raises(Refusal, match="raise SUB_UID_MAX"):
        subids.choose("uid", [Span(900, 1002 + 4 * COUNT, "a")])


def test_no_range_is_given_while_another_program_changes_accounts(stage: Stage, new_user: str) -> None:
    """It may be about to give the same ids."""
    with open("/etc/.pwd.lock", "wb") as lock, ThreadPoolExecutor(1) as pool:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        started = pool.submit(ensure, stage, new_user)
        time.sleep(0.5)
        assert own("uid", new_user) == []
        fcntl.lockf(lock, fcntl.LOCK_UN)
        started.result()
    assert len(own("uid", new_user)) == 1


def test_lines_that_are_there_stay(stage: Stage, new_user: str) -> None:
    strange, file = ["# a comment", "tsh-other:5000"], Path("/etc/subuid")
    give("uid", *strange)
    ensure(stage, new_user)
    lines = file.read_text().splitlines()
    assert set(strange) < set(lines)
    assert (file.stat().st_uid, file.stat().st_mode & 0o777) == (0, 0o644)
    edit("subuid", lambda line: line.rstrip() not in strange)


@pytest.mark.parametrize("text", [b"", b"a:1:2", b"a:1:2\n", b"t\xe4st:1:2\r\n# \x0b\n"])
def test_a_line_is_added_to_whatever_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: bytes
) -> None:
    file, real = tmp_path / "subuid", open
    file.write_bytes(text)
    monkeypatch.setattr(
        "builtins.open",
        lambda path, *way, **how: real(file if "/etc/sub" in str(path) else path, *way, **how),
    )
    replace = atomic_file.replace
    monkeypatch.setattr(atomic_file, "replace", lambda _path, *content: replace(str(file), *content))
    subids.add("tsh-other", "uid")
    lines = file.read_bytes().split(b"\n")
    assert lines[:-2] == [line for line in text.split(b"\n") if line]
    assert (lines[-2].split(b":")[0], lines[-1]) == (b"tsh-other", b"")


def test_lines_that_say_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "subuid"
    file.write_text("a:1:2\n\n# b:1:2\nc:1\nd:x:2\ne:-1:2\nf:1:2:3\ng:1:99999999999\n")
    real = open
    monkeypatch.setattr("builtins.open", lambda _path, **options: real(file, **options))
    assert [span for span in subids.read("uid") if span.owner in "acdefg"] == [Span(1, 3, "a")]
    file.unlink()
    assert subids.read("uid") == []


def test_a_host_without_the_files(new_user: str, tmp_path: Path) -> None:
    """They are made; here in a copy of /etc that only the test sees."""
    code = (
        "import os, sys; sys.path.insert(0, os.getcwd())\n"
        "from svc_helper.provision import subids; from svc_helper.root import check\n"
        f"account = check.resolve({new_user!r})\n"
        "subids.ensure(account, 'uid'); subids.ensure(account, 'gid')\n"
        "first = check.login_defs().get('SUB_UID_MIN', 100000)\n"
        f"line = f'{new_user}:{{first}}:65536\\n'\n"
        "assert open('/etc/subuid').read() == open('/etc/subgid').read() == line\n"
    )
    steps = ["mount -t tmpfs none $1", "cp -a /etc/. $1", "rm -f $1/subuid $1/subgid", "mount --bind $1 /etc"]
    script = " && ".join([*steps, 'exec /usr/bin/python3 -c "$0"'])
    command = ["unshare", "--mount", "sh", "-c", script, code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def in_a_directory(monkeypatch: pytest.MonkeyPatch, *blocks: tuple[int, int]) -> None:
    """A directory service whose accounts have the ids of these blocks, and are not listed."""
    local = pwd.getpwuid

    def account(number: int) -> pwd.struct_passwd:
        if any(first <= number < end for first, end in blocks):
            return pwd.struct_passwd(("far", "x", number, number, "", "/", ""))
        return local(number)

    monkeypatch.setattr(account_ids, "has_directory", lambda _kind: True)
    monkeypatch.setattr(pwd, "getpwuid", account)
    monkeypatch.setattr(subids, "SEARCH_S", 0.1)


def test_a_new_range_goes_round_the_accounts_of_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subids, "login_defs", dict)
    in_a_directory(monkeypatch, (100_500, 100_600), (200_000, 400_000))
    assert subids.choose_unused("uid", []) == 100_000 + 7 * COUNT  # ranges are passed over in growing steps
    in_a_directory(monkeypatch, (100_000, 2_000_000_000))
    with pytest.raises(Refusal, match="set SUB_UID_MIN in"):
        subids.choose_unused("uid", [])


def test_a_range_over_an_account_of_a_directory(new_user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start = free()
    give("uid", f"{new_user}:{start}:{COUNT}")
    account = resolve(new_user)
    assert account is not None
    subids.ensure(account, "uid")
    in_a_directory(monkeypatch, (start + 1000, start + 1100))
    with pytest.raises(Refusal, match="and the account far share subordinate uids"):
        subids.ensure(account, "uid")
    in_a_directory(monkeypatch)
    other = account._replace(name="tsh-far", uid=start + 7)
    with pytest.raises(Refusal, match="and the account tsh-far share subordinate uids"):
        subids.ensure(account, "uid", [other])
