"""The next command after an engine's failure."""

from __future__ import annotations

import pytest

from svc import engine_errors, errors
from svc.domain import engine_hints

NAMES = {
    "workspace": "lab", "workspace_id": "ws-00000lab", "template": "tpl-0000base", "user": "ada",
    "registry": "reg.example:5000", "verb": "pull",
}  # fmt: skip


STARTS = ("svc ", "sudo svc ", "sudo apt-get install ", "podman ")


def test_every_cause_has_a_hint_or_the_doctor() -> None:
    hinted = {code: kind for code, kind in engine_errors.CAUSES.items() if kind.next_commands}
    assert set(engine_errors.CAUSES) - set(hinted) == {"cgroup_refused", "podman_moved"}
    for code, kind in hinted.items():
        error = kind("x")
        engine_hints.complete(error, **NAMES)
        assert error.hint.startswith(STARTS), code
        assert "{w" not in error.hint


def test_a_hint_names_what_is_known() -> None:
    def hint(error: errors.SvcError, **names: str) -> str:
        engine_hints.complete(error, **names)
        return error.hint

    login = engine_errors.RegistryLoginRequired
    assert hint(login("x"), registry="reg.example") == "podman login reg.example"
    assert hint(login("x")) == "svc image allowlist"
    assert hint(engine_errors.RegistryTimeout("x"), verb="build") == "sudo svc admin doctor"
    assert hint(engine_errors.RegistryTimeout("x"), verb="build", template="tpl-1") == (
        "svc image build tpl-1 --wait"
    )
    assert hint(errors.NameTaken("x")) == ""
    assert hint(errors.StorageFull("x", hint="svc image overview"), **NAMES) == "svc image overview"
    assert hint(engine_errors.MemoryTooSmall("x"), **NAMES) == (
        'svc ws edit lab --file - <<< \'{"resources": {"memory_bytes": 1073741824}}\''
    )


def test_errors_of_a_block() -> None:
    with pytest.raises(errors.SvcError) as caught, engine_hints.completing(template="tpl-1"):
        raise engine_errors.CommandNotFound("x")
    assert caught.value.hint == "svc template get tpl-1"
