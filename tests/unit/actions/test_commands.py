"""Commands of the table's rows, and the requests that they know."""

from __future__ import annotations

import pytest

from svc.actions import commands, table
from svc.actions.commands import Command, command


@pytest.mark.parametrize(
    ("made", "line", "label", "method", "path", "body"),
    [
        (
            command(table.IMAGE_PULL, ref="hello"), "svc image pull hello --wait",
            "Pull the image", "POST", "/api/templates/hello/image/pull", {},
        ),
        (
            command(table.IMAGE_BUILD, ref="hello").then(command(table.TEMPLATE_ENABLE, ref="hello")),
            "svc image build hello --wait && svc template enable hello",
            "Build the image", "POST", "/api/templates/hello/image/build", {},
        ),
        (
            command(table.WORKSPACE_START, ref="lab.2"), "svc ws start lab.2",
            "Start lab.2", "POST", "/api/workspaces/lab.2/start", {},
        ),
        (
            command(table.WORKSPACE_RENAME, ref="lab", name="room"), "svc ws rename lab --name room",
            "Rename it to room", "POST", "/api/workspaces/lab/rename", {"name": "room"},
        ),
        (
            commands.edit("lab", {"resources": {"gpu_count": 1}}),
            "svc ws edit lab --file - <<< '{\"resources\": {\"gpu_count\": 1}}'",
            "Change lab", "PATCH", "/api/workspaces/lab", {"resources": {"gpu_count": 1}},
        ),
        (
            command(table.WORKSPACE_SETUP, template="base", name="lab-2"),
            "svc ws setup --template base --name lab-2",
            "Set up lab-2", "POST", "/api/workspaces/setup", {"template": "base", "name": "lab-2"},
        ),
        (
            commands.operation_watch("op-1"), "svc operation watch op-1",
            "Show the progress", "GET", "/api/operations/op-1", None,
        ),
        (
            commands.launcher_log("lab", "web"), "svc ws logs lab --launcher web",
            "Show its output", "GET", "/api/workspaces/lab/launchers/web/logs", None,
        ),
    ],
)  # fmt: skip
def test_a_command_and_its_request(
    made: Command, line: str, label: str, method: str, path: str, body: object
) -> None:
    assert made == line
    assert made.action == {"label": label, "method": method, "path": path, "body": body}


@pytest.mark.parametrize(
    "hint",
    [
        "",
        None,
        "svc ws list",
        "svc ws start lab",  # a text that merely looks like one
        command(table.WORKSPACE_DELETE, ref="lab"),
        command(table.WORKSPACE_UPGRADE, ref="lab"),  # what is installed in the container may be lost
        command(table.IMAGE_PRUNE),
    ],
)
def test_what_no_button_does(hint: str | None) -> None:
    assert commands.action_of(hint) is None


def test_names_are_quoted_for_the_shell_and_for_the_path() -> None:
    made = command(table.WORKSPACE_START, ref="a b/../c")
    assert made == "svc ws start 'a b/../c'"
    assert made.action is not None
    assert made.action["path"] == "/api/workspaces/a%20b%2F..%2Fc/start"
    assert commands.edit("lab", {"display_name": "it's"}) == (
        """svc ws edit lab --file - <<< '{"display_name": "it'"'"'s"}'"""
    )
