"""`ws edit` and `ws rename`: what may be changed when."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from e2e.installation import Call, Service
from e2e.surroundings import must, template_of


@pytest.mark.parametrize("patch", ['{"name": "other"}', '{"display_name": "Other"}', "{}"])
def test_ws_edit_patches_a_stopped_workspace_only(
    alice: Call, workspace: str, record: Callable[[str], dict[str, object]], patch: str
) -> None:
    """ "Patches a stopped workspace only": the name too, and nothing at all."""
    before = record(workspace)
    said = alice("ws", "edit", workspace, "--file", "-", stdin=patch)
    assert (said.code, said.out) == (1, "")
    assert "is running; only a stopped workspace is edited" in said.err
    assert record(workspace) == before


def test_ws_rename_works_in_every_state(alice: Call, workspace: str) -> None:
    """ "Renames.": a running one keeps running, and a stopped one is found by its new name too."""
    must(alice("ws", "rename", workspace, "--name", f"{workspace}-2"))
    assert alice("ws", "exec", f"{workspace}-2", "--", "true").code == 0
    must(alice("ws", "stop", f"{workspace}-2"))
    must(alice("ws", "rename", f"{workspace}-2", "--name", workspace))
    assert alice("ws", "get", f"{workspace}-2").code == 1
    body = json.dumps({"name": f"{workspace}-3"})
    must(alice("api", "POST", f"/api/workspaces/{workspace}/rename", "--body", body))
    must(alice("ws", "rename", f"{workspace}-3", "--name", workspace))


def test_an_edit_of_nothing_is_refused(alice: Call, workspace: str) -> None:
    must(alice("ws", "stop", workspace))
    said = alice("ws", "edit", workspace, "--file", "-", stdin="{}")
    assert said.code == 1
    assert "the patch names no key to change" in said.err


def test_null_is_the_templates_default(alice: Call, service: Service, registry: str) -> None:
    """ "Resource settings that default from the template": null gives the default back."""
    template_of("tse-alice", registry, service.env, "sized", defaults={"pids_limit": 300})
    must(
        alice("ws", "create", "--template", "sized", "--name", "sized", "--pids", "200", "--shm-size", "64m")
    )
    for patch, pids in (
        ({"pids_limit": None, "shm_bytes": None, "gpu_count": None, "gpu_mode": None}, 300),
        ({"pids_limit": "unlimited"}, None),
        ({"pids_limit": 100}, 100),
    ):
        body = json.dumps({"resources": patch})
        resources = must(alice("ws", "edit", "sized", "--file", "-", "--json", stdin=body)).json()[
            "resources"
        ]
        assert (resources["pids_limit"], resources["shm_bytes"], resources["gpu_count"]) == (pids, None, 0)
    must(alice("ws", "delete", "sized", "--yes"))
    must(alice("template", "delete", "sized", "--yes"))


def test_a_key_in_the_wrong_place_names_the_right_one(alice: Call, workspace: str) -> None:
    must(alice("ws", "stop", workspace))
    for patch, meant in (
        ({"memory_bytes": 1 << 30}, "memory_bytes: Unknown field; did you mean resources.memory_bytes?"),
        (
            {"resources": {"memory": 1}},
            "resources.memory: Unknown field; did you mean resources.memory_bytes?",
        ),
    ):
        said = alice("ws", "edit", workspace, "--file", "-", stdin=json.dumps(patch))
        assert (said.code, said.err) == (1, f"svc: {meant}\n")
