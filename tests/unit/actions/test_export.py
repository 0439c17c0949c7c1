"""What is made from the table for the browser and the skill."""

from __future__ import annotations

import json
import re

from svc.actions import export, table


def test_the_program_of_a_command() -> None:
    assert export.program_of(table.WORKSPACE_LAUNCHER_START) == "svc ws launcher start"
    assert export.program_of(table.IMAGE_PRUNE) == "svc image prune"
    assert export.program_of(table.AUTH_LOGIN) == ""


def test_answers_by_command() -> None:
    found = export.answers()
    assert found["svc ws stop"] == "POST /api/workspaces/{ref}/stop"
    assert found["svc ws delete"] == '{"deleted": NAME}'
    assert "svc admin edit-user" not in found


def test_a_row_of_the_pages() -> None:
    """Its label is the first word of what is to be done, unless the row has another."""
    text = export.rows()
    assert (
        "export const WORKSPACE_STOP = {\n  command: 'svc ws stop {ref}',\n  label: 'Stop',\n"
        "  done: 'Stopped',\n};\n"
    ) in text
    assert "AUTH_LOGIN" not in text
    assert table.IMAGE_PULL.label == "Pull"


def test_every_action_has_its_sentence() -> None:
    text = export.sentences()
    rows = dict(re.findall(r"^  '([^']+)': (\[.*\]),$", text, re.MULTILINE))
    assert json.loads(rows["workspace.stop"].replace("'", '"')) == ["Stopped", "stop"]
    assert list(rows) == [str(row) for row in table.TABLE]
