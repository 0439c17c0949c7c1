"""`svc admin` in-process, on a database and a state directory of the test's own."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc.__main__ import main
from svc.admin.admin import COMMAND
from svc.commandline.arguments import Deferred
from svc.db.connect import close_database
from svc.errors import SvcError
from svc.host import owner

for command in COMMAND.commands:  # now, and not where a test has replaced what a command imports
    assert isinstance(command, Deferred)
    command.load()
Svc = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing of this host's own settings reaches a test."""
    for name in [name for name in os.environ if name.startswith(("SVC_", "SUDO_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("svc.settings.read_env_file", dict)
    monkeypatch.setenv("SVC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SVC_RECOVERY_DIR", str(tmp_path / "recovery"))
    monkeypatch.setenv("SVC_SOCKET", str(tmp_path / "run" / "svc.sock"))
    monkeypatch.setattr("svc.domain.accounts.passwords.COST", 4)
    monkeypatch.setattr("svc.host.owner.SERVICE_USER", "no-such-account")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():  # a command changes them for the process that it is
        signal.signal(number, handler)
    close_database()


@pytest.fixture(autouse=True)
def hints_reach_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each hint of an error that the owner's process raises is one that root prints, and not dropped."""

    def watched(run_as_owner: owner.Owner, work: Callable[[], Any], within_s: float = owner.RUN_S) -> Any:
        try:
            return run_as(run_as_owner, work, within_s)
        except SvcError as error:
            assert owner.HARMLESS.fullmatch(error.hint), f"root does not print: {error.hint}"
            raise

    run_as = owner.run_as
    for module in [each for name, each in sys.modules.items() if name.startswith("svc.")]:
        if vars(module).get("run_as") is run_as:
            monkeypatch.setattr(module, "run_as", watched)


@pytest.fixture
def svc(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Svc:
    """Run `svc admin ...` with this on standard input: exit code, output, errors."""

    def run(*argv: str, stdin: bytes | None = b"") -> tuple[int, str, str]:
        source = None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", source)
        monkeypatch.setattr(sys, "argv", ["svc", "admin", *argv])
        code = main(["admin", *argv])
        close_database()
        out, err = capfd.readouterr()
        return code, out, err

    return run


@pytest.fixture
def database(svc: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_root: None) -> str:
    """A migrated database that SVC_DB names."""
    path = str(tmp_path / "data" / "svc.db")
    monkeypatch.setenv("SVC_DB", path)
    assert svc("migrate")[0] == 0
    return path
