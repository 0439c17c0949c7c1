"""The host's own programs: what their failure is answered with."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from svc_helper.provision import programs
from svc_helper.provision.programs import require
from svc_helper.provision.verbs import Refusal, failure


def test_a_program_that_succeeds_says_nothing() -> None:
    require(["true"], "nothing to do")


@pytest.mark.parametrize(("command", "code"), [("false", 1), ("kill -9 $$", -9), ("exit 9", 9)])
def test_a_program_that_fails_says_what_is_left_to_do(command: str, code: int) -> None:
    with pytest.raises(Refusal) as caught:
        require(["sh", "-c", command], "do it by hand")
    assert (caught.value.code, caught.value.message) == (
        "failed",
        f"sh failed with exit status {code}; do it by hand",
    )


def test_what_a_program_printed_is_in_the_message() -> None:
    with pytest.raises(Refusal) as caught:
        require(["sh", "-c", "echo why.; echo; echo >&2 and what; echo >&2 $(seq 999); exit 3"])
    assert caught.value.message.startswith("sh failed with exit status 3 (why, and what, 1 2 3 ")
    assert len(caught.value.message) < 600


def test_a_lock_that_stayed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a host leaves behind that crashed under useradd, when the number is another process's now."""
    exists = {"/etc/passwd.lock", "/etc/subuid.lock"}
    monkeypatch.setattr(programs.os.path, "exists", exists.__contains__)
    monkeypatch.setattr(programs, "LOCK_WAIT_S", 0)
    with pytest.raises(Refusal, match=r"remove /etc/passwd\.lock /etc/subuid\.lock$"):
        require(["false"], "do it by hand")


def test_a_lock_that_goes_in_time_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As that of a useradd that was killed, until somebody has reaped it."""
    monkeypatch.setattr(programs.os.path, "exists", "/etc/passwd.lock".__eq__)
    require(["sh", "-c", f"echo >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) = 3 ]"], "do it by hand")
    assert (tmp_path / "tries").read_text() == "\n" * 3


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        require(["no-such-program"], "do it by hand")


def test_programs_see_nothing_of_roots_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSH_CANARY", "1")
    require(["sh", "-c", '[ -z "$TSH_CANARY" ] && [ -n "$PATH" ]'], "")


@pytest.mark.parametrize(("number", "code"), [
    (errno.ENOSPC, "storage_full"),
    (errno.EDQUOT, "storage_full"),
    (errno.EROFS,  "failed"),
])  # fmt: skip
def test_what_an_error_of_the_system_means(number: int, code: str) -> None:
    refusal = failure(OSError(number, "why"), "enrolment list")
    assert (refusal.code, refusal.message) == (code, "enrolment list: why")
