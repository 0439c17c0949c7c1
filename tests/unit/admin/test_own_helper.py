"""A helper of `svc admin`'s own, the real program over its pair."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from svc.admin.own_helper import own_helper
from svc.errors import EngineFailed, HostRefused
from svc.settings import Settings

PYTHON = os.path.basename(sys.executable)


@pytest.mark.allow_commands(PYTHON)
def test_it_answers_and_ends_with_the_block() -> None:
    with own_helper(Settings(file={})) as helper:
        assert isinstance(helper.call("helper.ping", None, {}, rid="test"), dict)


@pytest.mark.allow_commands(PYTHON)
def test_what_it_logged_is_shown_when_a_call_failed(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, needs_root: None
) -> None:
    nowhere = Settings(environ={"SVC_STATE_DIR": str(tmp_path / "none")}, file={})
    with pytest.raises(EngineFailed), own_helper(nowhere) as helper:
        helper.call("account.forget", "svt-nobody", {}, rid="test")
    assert '"verb": "account.forget"' in capfd.readouterr().err


@pytest.mark.allow_commands(PYTHON)
def test_a_refusal_needs_no_log(capfd: pytest.CaptureFixture[str], needs_root: None) -> None:
    with pytest.raises(HostRefused, match="system account"), own_helper(Settings(file={})) as helper:
        helper.call("account.ensure", "root", {"administrator": False}, rid="test")
    assert capfd.readouterr().err == ""
