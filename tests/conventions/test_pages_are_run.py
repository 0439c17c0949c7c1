"""Every command line of the pages is typed by a test, word for word, or is listed here with the reason."""

from __future__ import annotations

import re

import pytest
from conventions.inspection import ROOT

from svc.admin.checks import codes

SHELL = {"sh", "bash", "cron", "python", "console"}
# page -> the test that follows it
FOLLOWED = {
    "api.md": "e2e/guides/test_user_guides.py",
    "authentication.md": "e2e/guides/test_admin_guides.py",
    "automation.md": "e2e/guides/test_guides.py",
    "backup.md": "e2e/guides/test_admin_guides.py",
    "browser.md": "stories/test_ways_in.py",
    "disk.md": "e2e/guides/test_admin_guides.py",
    "examples.md": "applications/test_examples.py",
    "files.md": "e2e/guides/test_reference_guides.py",
    "first-day.md": "e2e/guides/test_admin_guides.py",
    "first-workspace.md": "e2e/guides/test_guides.py",
    "gpus.md": "e2e/guides/test_user_guides.py",
    "jupyter.md": "e2e/guides/test_user_guides.py",
    "ports.md": "e2e/guides/test_user_guides.py",
    "recipes.md": "conventions/test_recipes.py",
    "registries.md": "e2e/guides/test_admin_guides.py",
    "templates.md": "e2e/guides/test_reference_guides.py",
    "tls.md": "e2e/guides/test_admin_guides.py",
    "troubleshooting.md": "e2e/guides/test_admin_guides.py",
    "workspaces.md": "e2e/guides/test_reference_guides.py",
}
# page -> why its commands stand in indented lines, which no test of this machine types
NOT_FOLLOWED = {
    "../CONTRIBUTING.md": "the commands that run the tests themselves",
    "../README.md": "the first is run by tests/machine/guest/boot-1.sh, the second runs the tests",
    "backup.md": "a timer (tests/machine), repairs (tests/e2e/custody)",
    "database.md": "repairs of a damaged disk; tests/e2e/processes/test_failing_disk.py",
    "disk.md": "a disk to format; a file server: tests/agent/podman/test_stores.py",
    "gpus.md": "NVIDIA's toolkit, which needs its driver",
    "install.md": "apt and systemd: tests/machine/guest/boot-3.sh runs them as written",
    "licence.md": "a vendor's file; tests/e2e/test_licence.py",
    "update.md": "a vendor's release, ids of sets are examples; tests/machine/guest/update.sh and boot-3.sh",
}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = (
    "sudo|svc|curl|apt-get|systemctl|podman|ssh|openssl|echo|printf|tar|make|git|tests/run|packaging/\\S+"
)
COMMAND = re.compile(rf"^ {{4,}}(?:\$ )?(?:(?:{PROGRAMS}) .*|tests/run|packaging/\S+)$", re.MULTILINE)
PAGES = {
    **{path.name: path for path in sorted((ROOT / "docs").glob("*.md"))},
    "../README.md": ROOT / "README.md",
    "../CONTRIBUTING.md": ROOT / "CONTRIBUTING.md",
}


def shell_blocks(text: str) -> list[str]:
    """The fenced blocks of commands or programs."""
    return [body for kind, body in FENCE.findall(text) if kind in SHELL]


def indented_commands(text: str) -> list[str]:
    """Command lines that no fence marks."""
    return COMMAND.findall(FENCE.sub("", text))


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_the_page_are_run(name: str) -> None:
    text = PAGES[name].read_text()
    if name == "cli.md":  # generated: the examples of each command, which its own tests parse
        return
    assert bool(shell_blocks(text)) == (name in FOLLOWED), "a page with commands has a test that types them"
    assert bool(indented_commands(text)) == (name in NOT_FOLLOWED), (
        "commands are fenced, and followed by a test"
    )


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_test_names_its_page(name: str) -> None:
    assert f'{name}"' in (ROOT / "tests" / FOLLOWED[name]).read_text()


@pytest.mark.parametrize("name", PAGES)
def test_commands_are_in_blocks_of_a_language(name: str) -> None:
    """A block without one is drawn, and followed by nobody."""
    drawn = [body for kind, body in FENCE.findall(PAGES[name].read_text()) if not kind]
    typed = [body for body in drawn if re.search(rf"^(?:{PROGRAMS}) [\w./-]", body, re.MULTILINE)]
    assert name == "cli.md" or not typed


def test_a_block_that_nobody_runs_is_found() -> None:
    assert shell_blocks("Type\n\n```sh\nsvc ws list\n```\n") == ["svc ws list\n"]
    assert indented_commands("Type\n\n    svc ws list\n\nor\n\n```sh\n    svc ws list\n```\n") == [
        "    svc ws list"
    ]
    assert not indented_commands("    {\n      svc\n")


def test_the_troubleshooting_page_has_every_code_of_the_doctor() -> None:
    """Each once, in one of its tables, and no other."""
    text = PAGES["troubleshooting.md"].read_text()
    rows = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    named = [code for row in rows for code in re.findall(r"`([^`]+)`", row)]
    assert sorted(named) == sorted(codes.CODES)
