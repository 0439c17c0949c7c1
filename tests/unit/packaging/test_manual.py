"""The manual pages: whole, accepted by troff, and the same each time."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc import errors, settings
from svc.__main__ import COMMANDS, build_parser

ROOT = Path(__file__).parents[3]
PYTHON = os.path.basename(sys.executable)
SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "FILES",
            "SEE ALSO")  # fmt: skip
pytestmark = pytest.mark.allow_commands(PYTHON, "groff", "man")


def written(folder: Path, **env: str) -> dict[str, str]:
    """The pages that packaging/manual writes, by their path below the folder."""
    command = [sys.executable, "-I", str(ROOT / "packaging/manual"), str(folder)]
    done = subprocess.run(command, env=os.environ | env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.*"))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the pages are written."""
    return tmp_path_factory.mktemp("man")


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, str]:
    """Every page by its path."""
    return written(folder)


def page_of(pages: dict[str, str], command: str) -> str:
    """The text of a command's page, hyphens as they are typed."""
    (found,) = [text for name, text in pages.items() if re.fullmatch(rf"man\d/svc-{command}\.\d", name)]
    return found.replace("\\-", "-")


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Every command that runs something."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield parser
    for group in groups:
        for child in dict.fromkeys(group.choices.values()):
            yield from leaves(child)


def test_a_page_for_each_command_in_its_section(pages: dict[str, str]) -> None:
    """ "svc(1), svc-admin(8), svc.env(5) and one page per command group"."""
    assert set(pages) == {"man1/svc.1", "man5/svc.env.5", "man8/svc-admin.8", "man8/svc-server.8"} | {
        f"man1/svc-{command}.1" for command in COMMANDS if command not in ("admin", "server")
    }


def test_every_command_and_argument_stands_in_its_page(pages: dict[str, str]) -> None:
    for leaf in leaves(build_parser()):
        text = page_of(pages, leaf.prog.split()[1])
        if len(leaf.prog.split()) > 2:
            text = text.partition(f"\n.SS \\fB{leaf.prog}")[2].partition("\n.SS ")[0]
        assert text, leaf.prog
        for action in leaf._actions:
            for name in action.option_strings or [str(action.metavar)]:
                assert name in ("-h", "--help") or f"\\fB{name}\\fR" in text, (leaf.prog, name)


def test_every_example_stands_in_its_page(pages: dict[str, str]) -> None:
    for leaf in leaves(build_parser()):
        text = page_of(pages, leaf.prog.split()[1]).partition("\n.SH EXAMPLES\n")[2]
        for line in (leaf.epilog or "").splitlines()[1:]:
            assert line.removeprefix("  ").replace("\\", "\\e") in text.replace("\\&", ""), leaf.prog


def test_every_setting_stands_in_its_page(pages: dict[str, str]) -> None:
    text = pages["man5/svc.env.5"].replace("\\-", "-")
    for row in settings.TABLE:
        assert f"\n.TP\n\\fB{row.name}\\fR\n{row.help}" in text
        assert f" Default: {row.default}\n" in text or not row.default


def test_every_page_has_its_sections(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        found = re.findall(r"^\.SH (.+)", text, re.MULTILINE)
        missing = {"OPTIONS", "EXIT STATUS", "ENVIRONMENT"} if name.endswith(".5") else set()
        assert [each for each in found if each in SECTIONS] == [
            each for each in SECTIONS if each not in missing
        ]
        assert set(found) <= {*SECTIONS, "ARGUMENTS", "COMMANDS", "SETTINGS"}, name


def test_every_exit_code_is_explained(pages: dict[str, str]) -> None:
    told = set(map(int, re.findall(r"\\fB(\d+)\\fR", pages["man1/svc.1"].partition(".SH EXIT STATUS")[2])))
    assert {0, *(row.exit_code for row in errors.table())} <= told


def test_references_lead_to_pages(pages: dict[str, str]) -> None:
    known = {Path(name).name for name in pages} | {"podman.1"}
    for text in pages.values():
        for name, section in re.findall(r"\\fB(svc[\w.-]*)\\fR\((\d)\)", text.replace("\\-", "-")):
            assert f"{name}.{section}" in known


def test_the_same_tree_gives_the_same_pages(pages: dict[str, str], tmp_path: Path) -> None:
    assert pages == written(tmp_path / "other", COLUMNS="60", PYTHONHASHSEED="7", LANG="C")
    dated = written(tmp_path / "dated", SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo")
    assert all('"2023-11-14"' in text or '"2023\\-11\\-14"' in text for text in dated.values())
    undated = {name: text.replace("2023-11-14", "") for name, text in dated.items()}
    assert undated == pages


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("groff", ["-man", "-ww", "-Tutf8", "-k", "-rLL=80n", "-z"]),
        ("man", ["--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l"]),
    ],
)
def test_troff_has_nothing_to_say(
    pages: dict[str, str], folder: Path, program: str, arguments: list[str]
) -> None:
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed (apt-get install groff-base man-db)")
    env = os.environ | {"LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "80"}
    for name in pages:
        command = [program, *arguments, str(folder / name)]
        done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (0, ""), name


def test_text_is_no_request_of_troff(pages: dict[str, str]) -> None:
    """Each line that begins with a dot is one of a few requests, and none begins with an apostrophe."""
    allowed = {'.\\"', ".TH", ".SH", ".SS", ".TP", ".PP", ".HP", ".RS", ".RE", ".nf", ".fi", ".nh", ".ad"}
    for text in pages.values():
        assert {line.split(" ")[0] for line in text.splitlines() if line.startswith((".", "'"))} <= allowed


@pytest.mark.parametrize(("arguments", "code"), [([], 2), (["--help"], 0), (["--bogus"], 2), (["a", "b"], 2)])
@pytest.mark.parametrize("program", ["manual", "completion"])
def test_usage(program: str, arguments: list[str], code: int, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "packaging" / program), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code
    assert f"usage: packaging/{program} DIR" in done.stderr
    assert not list(tmp_path.iterdir())
