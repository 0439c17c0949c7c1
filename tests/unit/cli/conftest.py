"""The command line, run in this process against a service that answers from a table."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_service import Outcome, Service, Stream, Svc

from svc import settings
from svc.__main__ import main
from svc.cli import env


@pytest.fixture(autouse=True)
def plain_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the machine that runs the test reaches it."""
    for name in [name for name in os.environ if name.startswith("SVC_")]:
        monkeypatch.delenv(name)
    for module in (settings, env):
        monkeypatch.setattr(module, "read_env_file", dict)
    monkeypatch.setenv("SVC_SOCKET", str(tmp_path / "svc.sock"))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service on the socket that the commands use."""
    service = Service(tmp_path / "svc.sock")
    yield service
    service.close()


@pytest.fixture
def svc(monkeypatch: pytest.MonkeyPatch) -> Svc:
    """Run one command line in this process, in a pipe or (terminal=True) on a terminal."""

    def run(*argv: str, terminal: bool = False, stdin: bytes = b"") -> Outcome:
        streams = Stream(terminal, stdin), Stream(terminal), Stream(terminal)
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            monkeypatch.setattr(sys, name, stream)
        try:
            code = main(argv)
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Outcome(code, streams[1].text(), streams[2].text())

    return run
