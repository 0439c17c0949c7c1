from __future__ import annotations

import os
import sys

import pytest

from svc.admin import command
from svc.commandline.arguments import Arguments
from svc.errors import DatabaseRefused


def arguments(db: str | None) -> Arguments:
    """The arguments of a command, with this `--db`."""
    args = Arguments()
    args.db = db
    return args


def test_the_same_command_with_sudo_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "argv", ["/usr/local/bin/svc", "admin", "create-user", "ada", "--display-name", "A B"]
    )
    assert command.sudo_command() == "sudo svc admin create-user ada --display-name 'A B'"


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (["edit-user", "ada"], "sudo svc admin edit-user ada --db '/srv/a b/svc.db'"),
        (["edit-user", "--", "-x"], "sudo svc admin edit-user --db '/srv/a b/svc.db' -- -x"),
        (["edit-user", "ada", "--db", "/x.db"], "sudo svc admin edit-user ada --db /x.db"),
    ],
)
def test_sudo_passes_no_variable_on(monkeypatch: pytest.MonkeyPatch, typed: list[str], hint: str) -> None:
    monkeypatch.setenv("SVC_DB", "/srv/a b/svc.db")
    monkeypatch.setattr(sys, "argv", ["svc", "admin", *typed])
    assert command.sudo_command() == hint


def test_an_empty_path_is_no_path() -> None:
    assert command.path("x.db") == "x.db"
    with pytest.raises(ValueError, match="empty"):
        command.path("")


def test_unknown_settings_are_warned_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SVC_PROT", "80")
    settings = command.settings_of(arguments(db="/x.db"))
    assert settings.db == "/x.db"
    assert "SVC_PROT" in capsys.readouterr().err


def test_root_and_the_owner_pass(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They "are run on the host as root (via elevation where the account is not root)"."""
    command.require_owner(database)
    monkeypatch.setattr(os, "geteuid", lambda: 4001)
    with pytest.raises(DatabaseRefused, match="belongs to"):
        command.require_owner(database)
