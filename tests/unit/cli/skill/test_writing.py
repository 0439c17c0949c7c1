"""The skill is written whole or not at all, and replaces nothing but a skill."""

from __future__ import annotations

import fcntl
import os
import resource
from pathlib import Path

import pytest
from fake_service import Svc
from unit.installed_skill import TEXTS, content, refused

from svc.cli.skill import writing

AGAIN = "svc skill install --agent claude"


def test_an_existing_one_is_replaced_by_force_alone(svc: Svc, home: Path) -> None:
    """ "Existing skill is overwritten only with `--force`"."""
    assert svc("skill", "install", "--agent", "claude").code == 0
    installed = home / ".claude/skills/svc"
    (installed / "SKILL.md").write_text("---\nname: svc\n---\nmine\n")
    (installed / "references/old.md").write_text("of an older release\n")
    before = content(home)
    refused(
        svc("skill", "install", "--agent", "claude"), f"{installed} already exists", f"hint: {AGAIN} --force"
    )
    assert content(home) == before
    assert svc("skill", "install", "--agent", "claude", "--force").code == 0
    assert content(installed) == content(TEXTS)
    assert os.listdir(installed.parent) == ["svc"]
    svc("skill", "install", "--path", "a b")
    assert svc("skill", "install", "--path", "a b").err.endswith(
        "hint: svc skill install --path 'a b' --force\n"
    )


@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
def test_a_file_or_link_in_its_place(svc: Svc, home: Path, kind: str) -> None:
    other = home / "other"
    other.mkdir()
    place = home / "skills/svc"
    place.parent.mkdir()
    if kind == "file":
        place.write_text("x")
    else:
        place.symlink_to(other if kind == "link" else home / "nowhere")
    message = "is not a directory" if kind == "file" else "refusing to replace the link"
    for force in ([], ["--force"]):
        refused(svc("skill", "install", "--path", "skills", *force), message)
    assert os.listdir(other) == []
    assert os.listdir(place.parent) == ["svc"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"SKILL.md": "---\nname: svc\n---\n", "notes.txt": "x"}, "notes.txt in it is not part of the skill"),
        ({"SKILL.md": "---\nname: svc\n---\n", "references/x.sh": "x"}, "references/x.sh in it is not part"),
        ({"SKILL.md": "---\nname: svc\n---\n", "src/main.c": "x"}, "src in it is not part of the skill"),
        ({"SKILL.md": "---\nname: other\n---\n"}, "it has no SKILL.md with `name: svc`"),
        ({"references/x.md": "x"}, "it has no SKILL.md with `name: svc`"),
    ],
)
def test_force_removes_nothing_but_a_skill(svc: Svc, home: Path, files: dict[str, str], message: str) -> None:
    """A directory of that name may be anything, such as a checkout of svc."""
    for name, text in files.items():
        path = home / "skills/svc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    before = content(home)
    refused(svc("skill", "install", "--path", "skills", "--force"), message)
    assert content(home) == before


def test_an_empty_directory_is_replaced_by_force(svc: Svc, home: Path) -> None:
    (home / "skills/svc").mkdir(parents=True)
    assert svc("skill", "install", "--path", "skills").code == 1
    assert svc("skill", "install", "--path", "skills", "--force").code == 0
    assert content(home / "skills/svc") == content(TEXTS)


def test_what_a_killed_run_has_left_is_removed(svc: Svc, home: Path) -> None:
    draft = home / "skills/.svc-skill-0123456789ab"
    (draft / "references").mkdir(parents=True)
    (draft / "references/json.md").write_text("half")
    assert svc("skill", "install", "--path", "skills").code == 0
    assert os.listdir(home / "skills") == ["svc"]


# --- errors meanwhile -------------------------------------------------------------------------


@pytest.mark.parametrize("existing", [False, True])
def test_a_failed_write_leaves_what_was_there(svc: Svc, home: Path, existing: bool) -> None:
    if existing:
        assert svc("skill", "install", "--agent", "claude").code == 0
    before = content(home)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        outcome = svc("skill", "install", "--agent", "claude", *["--force"] * existing)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    refused(outcome, f"cannot write {home}/.claude/skills/svc: File too large")
    assert content(home) == before
    assert existing or os.listdir(home) == []


def test_a_full_disk(svc: Svc, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    outcome = svc("skill", "install", "--agent", "codex")
    refused(
        outcome, f"cannot write {home}/.codex/skills/svc: No space left", f"hint: df -h {home}/.codex/skills"
    )
    assert os.listdir(home) == []


def test_ctrl_c_leaves_nothing(svc: Svc, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, "_give_name", interrupt)
    assert svc("skill", "install", "--agent", "claude").code == 130
    assert os.listdir(home) == []


@pytest.mark.parametrize("number", [22, 38, 95])
def test_a_file_system_that_cannot_exchange(
    svc: Svc, home: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def unsupported(*_arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(writing, "_rename", unsupported)
    assert svc("skill", "install", "--path", "skills").code == 0
    assert svc("skill", "install", "--path", "skills").code == 1
    (home / "skills/svc/references/json.md").write_text("changed")
    assert svc("skill", "install", "--path", "skills", "--force").code == 0
    assert content(home / "skills/svc") == content(TEXTS)
    assert os.listdir(home / "skills") == ["svc"]


def test_another_run_meanwhile_is_not_disturbed(svc: Svc, home: Path) -> None:
    (home / "skills").mkdir()
    other = os.open(home / "skills", os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        outcome = svc("skill", "install", "--path", "skills")
    finally:
        os.close(other)
    assert (outcome.code, "is locked by another process" in outcome.err) == (1, True)
    assert os.listdir(home / "skills") == []
