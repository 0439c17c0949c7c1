"""A template's parts, looked at together."""

from __future__ import annotations

from typing import Any

import pytest
from unit.configuring import configured

from svc.domain.templates import parts as template_parts
from svc.errors import ValidationFailed
from svc.limits import DOCUMENT_MAX, ENV_BYTES_MAX
from svc_helper.wire.limits import ENV_VALUE_MAX

EMPTY: dict[str, Any] = {
    "defaults": {}, "limits": {}, "gpu": {}, "env": [], "launchers": [], "ports": [], "mounts": [],
}  # fmt: skip
LAUNCHER = {"name": "lab", "title": "", "command": ["x"], "env": [], "port": None, "autostart": False}


@pytest.fixture(autouse=True)
def roots(monkeypatch: pytest.MonkeyPatch) -> None:
    configured(file_roots=dict.fromkeys(("work", "data", "scratch"), False))


def refused(**spec: Any) -> list[str]:
    with pytest.raises(ValidationFailed) as caught:
        template_parts.check(EMPTY | spec)
    error = caught.value
    assert error.message.startswith(error.fields[0]["field"])
    return [field["field"] for field in error.fields]


def test_a_document_has_a_limit_as_a_whole() -> None:
    """A list may have 200 of them: of the largest that each field alone let through it was 400 MiB."""
    template_parts.check_size(EMPTY | {"command": ["x" * (DOCUMENT_MAX - 500)]}, {})
    for spec, sealed, field in (
        ({"command": ["x" * DOCUMENT_MAX]}, {}, "command"),
        ({"launchers": [LAUNCHER | {"command": ["x" * 30_000]}] * 3}, {}, "launchers"),
        ({"env": []}, {f"S{number}": "x" * 4096 for number in range(17)}, "env"),
    ):
        with pytest.raises(ValidationFailed) as caught:
            template_parts.check_size(EMPTY | spec, sealed)
        assert [one["field"] for one in caught.value.fields] == [field]


def test_parts_that_fit() -> None:
    template_parts.check(EMPTY)
    template_parts.check(
        EMPTY
        | {
            "defaults": {"gpu_mode": "shared"},
            "gpu": {"allow_shared": True},
            "ports": [{"name": "web", "container_port": 8888}],
            "launchers": [LAUNCHER, LAUNCHER | {"port": "web"}],
            "mounts": [{"root": "data", "path": "/data", "read_only": True}],
            "env": [{"name": "KEY", "secret": True}],
        }
    )


def test_a_launchers_port_is_one_of_the_ports() -> None:
    assert refused(launchers=[LAUNCHER, LAUNCHER | {"port": "web"}]) == ["launchers.1.port"]


def test_gpus_are_shared_only_where_the_template_says_so() -> None:
    assert refused(defaults={"gpu_mode": "shared"}) == ["defaults.gpu_mode"]
    assert refused(defaults={"gpu_mode": "shared"}, gpu={"allow_shared": False}) == ["defaults.gpu_mode"]


def test_a_mount_is_of_a_root_of_this_host() -> None:
    mounts = [{"root": root, "path": f"/m/{root}", "read_only": False} for root in ("data", "work", "other")]
    assert refused(mounts=mounts) == ["mounts.1.root", "mounts.2.root"]


def test_the_words_name_the_roots_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EMPTY | {"mounts": [{"root": "other", "path": "/m", "read_only": False}]}
    with pytest.raises(ValidationFailed, match="SVC_FILE_ROOTS has data, scratch"):
        template_parts.check(spec)
    configured(file_roots={"work": False})
    with pytest.raises(ValidationFailed, match="has none but work"):
        template_parts.check(spec)


def test_a_default_over_the_own_limit_is_the_templates_fault_too() -> None:
    with pytest.raises(ValidationFailed, match="exceeds the template's own limit"):
        template_parts.check(EMPTY | {"defaults": {"cpu_limit": 3}, "limits": {"cpu_limit": 2}})


def test_variables_fit_one_message() -> None:
    full = [
        {"name": f"V{n}", "value": "é" * (ENV_VALUE_MAX // 2)} for n in range(ENV_BYTES_MAX // ENV_VALUE_MAX)
    ]
    assert refused(env=full) == ["env"]
    assert refused(env=full[1:], launchers=[LAUNCHER, LAUNCHER | {"env": full[:1]}]) == ["launchers.1.env"]
