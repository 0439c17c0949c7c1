"""The texts of the skill: well-formed, and about commands and options that exist."""

from __future__ import annotations

import re

import yaml
from conventions.command_lines import command_lines, faults
from unit.installed_skill import TEXTS

from svc.__main__ import COMMANDS
from svc.cli.skill import skill


def test_its_commands_and_options_exist() -> None:
    lines = [line for path in TEXTS.rglob("*.md") for line in command_lines(path.read_text())]
    assert len(lines) > 150
    assert not {line: wrong for line in lines if (wrong := faults(line))}


def test_its_front_matter_says_when_to_use_it() -> None:
    _, matter, body = (TEXTS / "SKILL.md").read_text().split("---\n", 2)
    fields = yaml.safe_load(matter)
    assert set(fields) == {"name", "description"}
    assert fields["name"] == "svc"
    assert 200 < len(fields["description"]) <= 1024
    assert "Use this skill when" in fields["description"]
    assert body.count("\n") < 300  # it is read as a whole


def test_it_has_ten_tasks_and_names_its_files() -> None:
    text = (TEXTS / "SKILL.md").read_text()
    assert len(re.findall(r"^### \d+\. ", text, re.MULTILINE)) == 10
    named = set(re.findall(r"\]\((references/\w+\.md)\)", text))
    assert {"SKILL.md", *named} == set(skill.TEXTS)
    assert set(skill.TEXTS) == {str(path.relative_to(TEXTS)) for path in TEXTS.rglob("*") if path.is_file()}


def test_every_client_command_is_in_it() -> None:
    text = (TEXTS / "references/commands.md").read_text()
    clients = [
        name for name, (module, _) in COMMANDS.items() if module.startswith("svc.cli.") and name != "env"
    ]
    assert "skill" in clients
    assert not [name for name in clients if f"\n## svc {name}" not in text]
