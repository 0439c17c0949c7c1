"""The program of a deleted account: what it asks of a Podman that does not answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from svc_helper.agent import leave


@pytest.mark.parametrize(("status", "output", "done"), [(0, "", True), (1, "", False), (0, "abc def", False)])
def test_a_store_that_cannot_be_read_is_asked_once(
    tmp_path: Path, status: int, output: str, done: bool
) -> None:
    """With a pipe for its configuration Podman hung, and `podman rm` of no container took five minutes."""
    calls = tmp_path / "calls"
    program = tmp_path / "podman"
    program.write_text(f'#!/bin/sh\necho "$1" >>{calls}\n[ "$1" = rm ] || echo {output}\nexit {status}\n')
    program.chmod(0o755)
    home: Any = SimpleNamespace(environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert leave.remove_containers(home) is done
    expected = ["ps", "rm", "rm", "ps"] if output else ["ps"]
    assert calls.read_text().split() == expected
