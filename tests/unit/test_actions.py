"""The table of actions: hints as requests, and nothing else."""

from __future__ import annotations

import pytest

from svc import actions


@pytest.mark.parametrize(
    ("hint", "label", "method", "path", "body"),
    [
        ("svc image pull hello --wait", "Pull the image", "POST", "/api/templates/hello/image/pull", {}),
        (
            "svc image build hello --wait && svc template enable hello", "Build the image", "POST",
            "/api/templates/hello/image/build", {},
        ),
        ("svc ws start lab.2", "Start lab.2", "POST", "/api/workspaces/lab.2/start", {}),
        (
            "svc ws rename lab --name room", "Rename it to room", "POST", "/api/workspaces/lab/rename",
            {"name": "room"},
        ),
        (
            "svc ws edit lab --file - <<< '{\"resources\": {\"gpu_count\": 1}}'", "Change lab", "PATCH",
            "/api/workspaces/lab", {"resources": {"gpu_count": 1}},
        ),
        (
            "echo '{\"resources\": {\"memory_bytes\": 1}}' | svc ws edit lab --file -", "Change lab", "PATCH",
            "/api/workspaces/lab", {"resources": {"memory_bytes": 1}},
        ),
        (
            "svc ws setup --template base --name lab-2", "Set up lab-2", "POST", "/api/workspaces/setup",
            {"template": "base", "name": "lab-2"},
        ),
        ("svc operation watch op-1", "Show the progress", "GET", "/api/operations/op-1", None),
        (
            "svc ws logs lab --launcher web", "Show its output", "GET",
            "/api/workspaces/lab/launchers/web/logs", None,
        ),
    ],
)  # fmt: skip
def test_hints(hint: str, label: str, method: str, path: str, body: object) -> None:
    assert actions.of_hint(hint) == {"label": label, "method": method, "path": path, "body": body}


@pytest.mark.parametrize(
    "hint",
    [
        "",
        "svc ws list",
        "sudo svc admin doctor",
        "svc ws delete lab",
        "svc ws upgrade lab",  # what is installed in the container may be lost
        "svc image prune",
        "svc ws start lab extra",
        "svc ws start ../tokens",
        "svc ws start lab/exec",
        "svc ws start lab\n",
        "svc ws start 'la b'",
        "svc ws start lab --owner ada",
        "svc ws edit lab --file - <<< '{not json}'",
        "xsvc ws start lab",
    ],
)
def test_what_no_button_does(hint: str) -> None:
    assert actions.of_hint(hint) is None


def test_nothing_that_deletes_is_a_button() -> None:
    assert {row.method for row in actions.TABLE} == {"GET", "POST", "PATCH"}
    assert not [row.form for row in actions.TABLE if "delete" in row.form or "prune" in row.form]
