"""What a reader is told is what the code has: every setting, code, verb and command is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conventions.command_lines import command_lines, faults
from conventions.inspection import ROOT, modules
from pages import pictures
from pages.states import every_state

from svc import errors, settings
from svc.web.schemas.templates import TemplateCreate
from svc_helper.wire import protocol


def page(name: str) -> str:
    """A page of the documentation."""
    return (ROOT / "docs" / name).read_text()


def test_the_settings_page_names_every_setting() -> None:
    text = page("settings.md")
    assert not [name for name in settings.NAMES if f"`{name}`" not in text]


def test_the_errors_page_names_every_code() -> None:
    text = page("errors.md")
    assert not [row.code for row in errors.table() if f"`{row.code}`" not in text]


def test_the_protocol_page_names_every_verb_and_code() -> None:
    text = page("helper-protocol.md")
    assert not [name for name in (*protocol.VERBS, *protocol.CODES) if f"`{name}`" not in text]


def test_the_protocol_page_names_no_other_verb() -> None:
    named = set(
        re.findall(r"`((?:ctr|image|account|registries|helper)\.[a-z]+)`", page("helper-protocol.md"))
    )
    assert named <= set(protocol.VERBS)


def test_the_templates_page_names_every_finding() -> None:
    source = "".join(
        (ROOT / f"svc/domain/{name}.py").read_text() for name in ("templates/findings", "registries")
    )
    codes = set(re.findall(r'_finding\(\s*"([a-z_]+)"', source))
    assert len(codes) >= 10
    assert not [code for code in codes if f"`{code}`" not in page("templates.md")]


def test_the_template_on_its_page_is_one() -> None:
    block = re.search(r"^```json\n(.*?)^```$", page("templates.md"), re.MULTILINE | re.DOTALL)
    assert block
    created = TemplateCreate().load(json.loads(block[1]))
    assert set(created) >= {"gpu", "env", "launchers", "ports", "idle"}


@pytest.mark.parametrize(
    "name", ["README.md", "CHANGELOG.md", "docs/architecture.md", "docs/decisions/README.md"]
)
def test_the_page_exists(name: str) -> None:
    assert (ROOT / name).stat().st_size > 100


def test_the_changelog_is_one_page_by_subject() -> None:
    """What a release can do, not how it was repaired on the way, which a merge by union may bring back."""
    releases = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    for release in releases:
        before, *subjects = re.split(r"^### ", release, flags=re.MULTILINE)
        assert "\n- " not in before and subjects, "each line stands under its subject"
        lines = release.splitlines()
        assert len(lines) <= 150
        named = [line for line in lines if line.startswith(("- ", "### "))]
        assert len(named) == len(set(named))


def test_the_readme_names_its_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert "packaging/quickstart" in text
    assert "tests/run" in text
    assert "sudo packaging" not in text  # the scripts ask for root themselves
    assert "sudo tests" not in text


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text()):
            if not (path.parent / target).exists():
                broken.append(f"{path.relative_to(ROOT)} -> {target}")
    assert not broken


def test_each_picture_is_small_and_shown_and_can_be_taken_again() -> None:
    folder = ROOT / "docs/pictures"
    shown: set[str] = set()
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", path.read_text()):
            assert (path.parent / target).parent == folder, f"{path.name} shows {target}"
            shown.add(Path(target).name)
    assert {path.name for path in folder.iterdir()} == shown == {f"{name}.webp" for name in pictures.PICTURES}
    for name in shown:
        content = (folder / name).read_bytes()
        assert len(content) <= pictures.MAX_BYTES and content[8:12] == b"WEBP", name
    assert set(pictures.PICTURES.values()) <= set(every_state())


def test_each_decision_has_one_row_with_its_title_and_state() -> None:
    """A decision that was replaced or changed names a later one that exists."""
    folder = ROOT / "docs/decisions"
    row = re.compile(r"^\| \[(\d+)\]\(([\w.-]+)\) (.+) \| in force(?:, changed by (.+))? \|$")
    replaced = re.compile(r"^\| \[(\d+)\]\(([\w.-]+)\) (.+) \| replaced by (.+) \|$")
    lines = [line for line in (folder / "README.md").read_text().splitlines() if line.startswith("| [")]
    titles, faults = {}, []
    for line in lines:
        found = row.match(line) or replaced.match(line)
        if not found or found[2] in titles or not found[2].startswith(f"{int(found[1]):04}-"):
            faults.append(line)
            continue
        titles[found[2]] = f"# {found[1]}. {found[3]}"
        later = re.fullmatch(r"\[(\d+)\]\((\d{4})-[\w-]+\.md\)", found[4]) if found[4] else None
        if found[4] and not (later and int(later[1]) == int(later[2]) > int(found[1])):
            faults.append(line)
    assert not faults
    assert titles == {path.name: path.read_text().split("\n")[0] for path in folder.glob("[0-9]*.md")}


def test_the_code_map_names_what_is_there() -> None:
    text = page("code-map.md")
    named = set(re.findall(r"`((?:svc|svc_helper|schema|tests|packaging|systemd)/[\w./]*)`", text))
    assert not [name for name in named if not (ROOT / name).exists()]
    folders = {f"{path.parent.relative_to(ROOT)}/" for path in modules() if path.name == "__init__.py"}
    uncovered = [folder for folder in folders if not any(folder.startswith(name) for name in named)]
    assert set(uncovered) <= {"svc/", "svc_helper/"}


NOT_READ = {"cli.md", "recipes.md"}  # made from the parser; patches with a command that they add
NO_COMMANDS = {"svc license 1"}  # the first line of a licence's signed bytes


def test_commands_in_the_pages_exist() -> None:
    """With each option that is named: blocks, indented lines and inline code."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    lines = [
        (path.name, line)
        for path in pages
        if path.name not in NOT_READ
        for line in command_lines(path.read_text())
        if line not in NO_COMMANDS
    ]
    assert len(lines) > 300
    assert not [(name, line, wrong) for name, line in lines if (wrong := faults(line))]


@pytest.mark.parametrize(
    "line",
    [
        "svc ws halt lab",
        "svc ws list --every",
        "svc run x",
        "svc image pull x --yes",
        "svc admin quota drop x",
    ],
)
def test_one_that_does_not_exist_is_found(line: str) -> None:
    assert list(command_lines(f"Type\n\n    $ sudo {line} # so\n\nor `{line}`.\n")) == [line, line]
    assert faults(line)
