"""The script that creates the Linux accounts on a new host."""

from __future__ import annotations

import grp
import pwd
import subprocess
from pathlib import Path

import pytest

from svc.admin.backup import linux_accounts
from svc.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(environ={"SVC_STATE_DIR": str(tmp_path)}, file={})


def test_the_same_uids_and_subordinate_ids(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "enrolled").write_text(
        "ada 4001 user\nbob 4002 administrator\neve 4003 user\nroot 0 user\n"
        "first.last@example.org 896053708 user\n"
    )
    people = {
        "ada": ("ada", "x", 4001, 4001, "", "/home/ada's", "/bin/bash"),
        "bob": ("bob", "x", 4002, 100, "", "/home/bob", ""),
        "eve": ("eve", "x", 9999, 4003, "", "/home/eve", "/bin/sh"),  # another person by now
        "root": ("root", "x", 0, 0, "", "/root", "/bin/sh"),
        "first.last@example.org": ("first.last@example.org", "x", 896053708, 100, "", "/home/fl", "/bin/sh"),
    }
    ranges = [
        linux_accounts.Range(100000, 165536, "ada"),
        linux_accounts.Range(165536, 231072, "4002"),
        linux_accounts.Range(300000, 365536, "zoe"),
    ]
    monkeypatch.setattr(pwd, "getpwnam", lambda name: pwd.struct_passwd(people[name]))
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group((f"group{gid}", "x", gid, [])))
    monkeypatch.setattr(linux_accounts, "read_ranges", lambda _path: ranges)
    text = linux_accounts.script(settings)
    assert "groupadd --gid 4001 group4001" in text
    assert (
        "useradd --uid 4001 --gid 4001 --home-dir '/home/ada'\"'\"'s' --create-home --shell /bin/bash"
        " --key SUB_UID_COUNT=0 --key SUB_GID_COUNT=0 ada\n"
    ) in text
    assert "usermod --add-subuids 100000-165535 ada\n  usermod --add-subgids 100000-165535 ada\nfi\n" in text
    assert "usermod --add-subuids 165536-231071 bob" in text
    assert "--shell /bin/sh --key" in text
    assert "zoe" not in text and "useradd --uid 0" not in text and "9999" not in text
    assert "SUB_GID_COUNT=0 --badname first.last@example.org\n" in text
    assert "# eve: no Linux account with uid 4003" in text


@pytest.mark.allow_commands("sh")
def test_it_changes_nothing_where_the_accounts_are(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "enrolled").write_text("nobody 65534 user\n")
    text = linux_accounts.script(settings)
    assert "useradd" in text
    tools = "useradd() { echo called; }; groupadd() { echo called; }; usermod() { echo called; }\n"
    done = subprocess.run(["sh", "-c", tools + text], capture_output=True, text=True, check=True)
    assert done.stdout == ""
