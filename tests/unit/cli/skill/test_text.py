"""The texts of the skill: well-formed, and about commands and options that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml
from unit.installed_skill import TEXTS

from svc.__main__ import COMMANDS, declaration
from svc.cli.arguments import Command, CommandGroup, Deferred
from svc.cli.skill import skill

END = re.compile(r" -- | --$|[|&>)`\n]")  # of a command line in a text
WORD = re.compile(r"[a-z]+")


def command_lines() -> Iterator[tuple[str, str]]:
    """Each `svc ...` in code, inline or in a block, with its file."""
    for path in sorted(TEXTS.rglob("*.md")):
        text = path.read_text()
        blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
        for code in (*blocks, *inline):
            for found in re.finditer(r"(?<![\w./])svc (?=[a-z-])", code):
                yield path.name, END.split(code[found.start() :], maxsplit=1)[0].strip()


def faults(line: str) -> list[str]:
    """What of a command line is unknown: its command, or its options."""
    words = line.split()[1:]
    if words[0] in ("help", "admin", "--version"):
        return []
    if words[0] not in COMMANDS:
        return [words[0]]
    declared: Command | CommandGroup | Deferred | None = declaration(words.pop(0))
    while isinstance(declared, CommandGroup) and words and WORD.fullmatch(words[0]):
        declared = declared.find(words[0])
        declared = declared.load() if isinstance(declared, Deferred) else declared
        if declared is None:
            return [words[0]]
        words.pop(0)
    arguments = declared.arguments if isinstance(declared, Command) else ()
    known = {argument.name for argument in arguments}
    used = [word.partition("=")[0] for word in words if word.startswith("--")]
    return [option for option in used if option not in known]


def test_its_commands_and_options_exist() -> None:
    lines = list(command_lines())
    assert len(lines) > 150
    assert not [(name, line, wrong) for name, line in lines if (wrong := faults(line))]


@pytest.mark.parametrize(
    "line", ["svc ws halt lab", "svc ws list --all", "svc run x", "svc image pull x --yes"]
)
def test_an_unknown_one_is_found(line: str) -> None:
    assert faults(line)


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
