"""`svc skill install`: for which agent, into which directory, and what it prints."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fake_service import Service, Svc
from unit.installed_skill import TEXTS, content, refused


@pytest.mark.parametrize(
    ("agent", "variable", "hidden"),
    [("claude", "CLAUDE_CONFIG_DIR", ".claude"), ("codex", "CODEX_HOME", ".codex")],
)
def test_the_place_of_each_agent(
    svc: Svc,
    service: Service,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    agent: str,
    variable: str,
    hidden: str,
) -> None:
    """ "that directory comes from an environment variable for the agent, else a hidden directory in the
    user's home"; "Local only, does not contact the server".
    """
    assert svc("skill", "install", "--agent", agent).code == 0
    assert content(home) == {f"{hidden}/skills/svc/{name}": text for name, text in content(TEXTS).items()}
    monkeypatch.setenv(variable, str(home / "own"))
    assert svc("skill", "install", "--agent", agent).code == 0
    assert content(home / "own/skills/svc") == content(TEXTS)
    monkeypatch.setenv(variable, "")  # as unset
    assert svc("skill", "install", "--agent", agent).code == 1
    assert service.sent == []


def test_a_path_is_the_skills_directory(svc: Svc, home: Path) -> None:
    """ "Installs the embedded CLI-usage skill into an agent's skills directory"."""
    assert svc("skill", "install", "--path", "tools").code == 0
    assert svc("skill", "install", "--path", f"{home}/other/").code == 0
    assert content(home / "tools/svc") == content(home / "other/svc") == content(TEXTS)
    refused(svc("skill", "install", "--path", "no/where"), f"{home}/no does not exist")
    assert sorted(os.listdir(home)) == ["other", "tools"]


@pytest.mark.parametrize(
    "options", [[], ["--agent", "claude", "--path", "x"], ["--force"], ["--agent", "vi"], ["--path", ""]]
)
def test_exactly_one_of_both_options(svc: Svc, home: Path, options: list[str]) -> None:
    """ "Exactly one of `--agent` or `--path` is required"; "`skill install` with both or neither
    of `--agent`, `--path`": "Usage error".
    """
    outcome = svc("skill", "install", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.endswith("hint: svc skill install --help\n")
    assert os.listdir(home) == []


def test_what_is_printed(svc: Svc, home: Path) -> None:
    place = f"{home}/.claude/skills/svc"
    printed = svc("skill", "install", "--agent", "claude").out.rstrip("\n").split("\t")
    assert (printed[0], printed[2]) == (place, "false")
    user = printed[1]
    answer = svc("skill", "install", "--agent", "claude", "--force", "--json").out
    assert answer.endswith("}\n")
    assert json.loads(answer) == {"path": place, "user": user, "replaced": True}
    on_terminal = svc("skill", "install", "--agent", "claude", "--force", terminal=True).out
    assert on_terminal == f"The skill is replaced for {user}: {place}\n"


@pytest.mark.parametrize("home_is", [None, "", "relative/home", "/nonexistent/home"])
def test_a_home_that_is_none(svc: Svc, monkeypatch: pytest.MonkeyPatch, home_is: str | None) -> None:
    if home_is is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", home_is)
    message = {
        "relative/home": "HOME is not an absolute path: relative/home",
        "/nonexistent/home": "/nonexistent does not exist",
    }.get(home_is or "", "neither CODEX_HOME nor HOME is set, so the place is not known")
    refused(svc("skill", "install", "--agent", "codex"), message)


def test_a_variable_that_is_no_absolute_path(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "config")
    refused(svc("skill", "install", "--agent", "claude"), "CLAUDE_CONFIG_DIR is not an absolute path: config")


def test_a_current_directory_that_is_gone(svc: Svc, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "gone").mkdir()
    monkeypatch.chdir(home / "gone")
    (home / "gone").rmdir()
    refused(svc("skill", "install", "--path", "x"), "cannot write x: No such file or directory")
    monkeypatch.chdir(home)


def test_roots_own_is_said(svc: Svc, monkeypatch: pytest.MonkeyPatch, needs_root: None) -> None:
    monkeypatch.setenv("SUDO_USER", "alice")
    outcome = svc("skill", "install", "--agent", "claude")
    assert outcome.out.split("\t")[1] == "root"
    assert outcome.err == "svc: it is for root's agent; for that of alice run the command without sudo\n"
