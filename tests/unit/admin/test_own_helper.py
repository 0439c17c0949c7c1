"""A helper of `svc admin`'s own, the real program over its pair."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from svc.admin.own_helper import final_reason, own_helper
from svc.errors import EngineFailed, EngineUnavailable, HostRefused
from svc.settings import Settings

PYTHON = os.path.basename(sys.executable)


@pytest.mark.allow_commands(PYTHON)
def test_it_answers_and_ends_with_the_block() -> None:
    with own_helper(Settings(file={})) as helper:
        assert isinstance(helper.call("helper.ping", None, {}, rid="test"), dict)


@pytest.mark.allow_commands(PYTHON)
def test_a_failure_is_told_by_its_message_alone(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, needs_root: None
) -> None:
    nowhere = Settings(environ={"SVC_STATE_DIR": str(tmp_path / "none")}, file={})
    with pytest.raises(EngineFailed, match=r"enrolled.lock: No such file"), own_helper(nowhere) as helper:
        helper.call("account.forget", "svt-nobody", {}, rid="test")
    assert capfd.readouterr().err == ""


@pytest.mark.allow_commands(PYTHON)
def test_a_helper_that_does_not_start_is_told_by_the_end_of_its_log(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc.admin.own_helper.PROGRAM", "svc_helper.no_such_program")
    with (
        pytest.raises(EngineUnavailable, match=r": ModuleNotFoundError: No module named 'svc_helper.no_such"),
        own_helper(Settings(file={})) as helper,
    ):
        helper.call("helper.ping", None, {}, rid="test")
    assert capfd.readouterr().err == ""


def test_the_final_reason_of_a_log() -> None:
    assert final_reason('{"message": "call", "why": "it is full"}\n') == "it is full"
    assert final_reason('{"message": "no child process"}') == "no child process"
    assert final_reason("Traceback:\n  a line\nValueError: bad\n") == "ValueError: bad"
    assert final_reason("[1]") == "[1]"
    assert final_reason("") == ""


@pytest.mark.allow_commands(PYTHON)
def test_a_refusal_needs_no_log(capfd: pytest.CaptureFixture[str], needs_root: None) -> None:
    with pytest.raises(HostRefused, match="system account"), own_helper(Settings(file={})) as helper:
        helper.call("account.ensure", "root", {"administrator": False}, rid="test")
    assert capfd.readouterr().err == ""
