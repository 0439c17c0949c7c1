"""GPU needs, launchers, ports and mounts: what is taken, and which field a refusal names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import ValidationFailed
from svc.limits import IDLE_MINUTES_MAX, IDLE_MINUTES_MIN, LAUNCHERS_MAX, PORTS_MAX
from svc.web.schemas.loading import load
from svc.web.schemas.template_parts import SYSTEM, WithParts
from svc_helper.wire import arguments
from svc_helper.wire.limits import MOUNTS_MAX

PARTS = WithParts()


def refused(document: dict[str, Any]) -> dict[str, str]:
    """The fields that are refused, each with its words."""
    with pytest.raises(ValidationFailed) as caught:
        load(PARTS, document)
    return {field["field"]: field["message"] for field in caught.value.fields}


WRONG_TOKENS: list[tuple[Any, str]] = [
    (None, ""),
    ("x", ""),
    ({}, ".pattern"),
    ({"link": "/?t={token}"}, ".pattern"),
    ({"pattern": "token="}, ".pattern"),
    ({"pattern": "{token}{token}"}, ".pattern"),
    ({"pattern": "a\n{token}"}, ".pattern"),
    ({"pattern": "{token}" + "x" * 200}, ".pattern"),
    ({"file": "relative"}, ".file"),
    ({"file": "/a/../b"}, ".file"),
    ({"file": "/a", "link": "//evil.example/ {token}"}, ".link"),
    ({"file": "/a", "link": "lab?t={token}"}, ".link"),
    ({"file": "/a", "link": "/lab"}, ".link"),
    ({"file": "/a", "regex": "x"}, ".regex"),
]


def test_the_token_of_a_launcher() -> None:
    for token in (
        {"pattern": "token={token}"},
        {"file": "/work/.config/code-server/config.yaml", "pattern": "password: {token}"},
        {"file": "/run/password", "link": "/?tkn={token}"},
    ):
        assert load(PARTS, launcher(token=token))["launchers"][0]["token"] == token
    assert "token" not in load(PARTS, launcher())["launchers"][0]


def launcher(**changes: Any) -> dict[str, Any]:
    return {"launchers": [{"name": "lab", "command": ["jupyter", "lab"]} | changes]}


def mounted(*paths: str) -> dict[str, Any]:
    return {"mounts": [{"root": "data", "path": path} for path in paths]}


def test_what_is_left_out_has_a_value() -> None:
    assert load(PARTS, {}) == {}
    assert load(PARTS, launcher())["launchers"] == [
        {
            "name": "lab", "title": "", "command": ["jupyter", "lab"], "env": [], "port": None,
            "autostart": False,
        }
    ]  # fmt: skip
    ports = [{"name": "a", "container_port": 1}, {"name": "b", "container_port": 2, "access": "host"}]
    assert load(PARTS, {"ports": ports})["ports"] == ports
    assert load(PARTS, {"ports": [ports[0] | {"access": "owner"}]})["ports"] == ports[:1]
    assert load(PARTS, mounted("/data"))["mounts"] == [{"root": "data", "path": "/data", "read_only": False}]


def test_an_idle_policy_is_off_unless_it_has_a_time() -> None:
    assert load(PARTS, {"idle": {"after_minutes": 60}})["idle"] == {"action": "notify", "after_minutes": 60}
    stop = {"action": "stop", "after_minutes": IDLE_MINUTES_MIN}
    assert load(PARTS, {"idle": stop})["idle"] == stop
    assert load(PARTS, {"idle": {"action": "none"}})["idle"] == {}
    assert load(PARTS, {"idle": {"action": "none", "after_minutes": None}})["idle"] == {}


@pytest.mark.parametrize(
    ("idle", "field"),
    [
        ({}, "idle.after_minutes"),
        ({"action": "stop"}, "idle.after_minutes"),
        ({"action": "stop", "after_minutes": IDLE_MINUTES_MIN - 1}, "idle.after_minutes"),
        ({"action": "stop", "after_minutes": IDLE_MINUTES_MAX + 1}, "idle.after_minutes"),
        ({"action": "stop", "after_minutes": 60.5}, "idle.after_minutes"),
        ({"action": "stop", "after_minutes": True}, "idle.after_minutes"),
        ({"action": "kill", "after_minutes": 60}, "idle.action"),
        ({"after_minutes": 60, "what": 1}, "idle.what"),
        ([], "idle"),
    ],
)
def test_an_idle_policy_that_is_none(idle: Any, field: str) -> None:
    assert list(refused({"idle": idle})) == [field]


def test_the_needs_of_gpus() -> None:
    needs = {
        "min_cuda": "12.4", "min_vram_bytes": 2**34, "min_compute_capability": "8.0", "allow_shared": True,
    }  # fmt: skip
    assert load(PARTS, {"gpu": needs})["gpu"] == needs
    assert load(PARTS, {"gpu": {"min_cuda": None}})["gpu"] == {"min_cuda": None}


@pytest.mark.parametrize(
    ("gpu", "field"),
    [
        ({"min_cuda": 12.4}, "gpu.min_cuda"),
        ({"min_cuda": "12"}, "gpu.min_cuda"),
        ({"min_cuda": "12.4\n"}, "gpu.min_cuda"),
        ({"min_vram_bytes": "16G"}, "gpu.min_vram_bytes"),
        ({"min_vram_bytes": 0}, "gpu.min_vram_bytes"),
        ({"min_compute_capability": "sm_80"}, "gpu.min_compute_capability"),
        ({"allow_shared": 1}, "gpu.allow_shared"),
        ({"model": "H100"}, "gpu.model"),
        (None, "gpu"),
        ([], "gpu"),
    ],
)
def test_needs_that_nobody_can_compare(gpu: Any, field: str) -> None:
    assert list(refused({"gpu": gpu})) == [field]


def test_a_version_that_is_a_number_is_told_what_it_should_be() -> None:
    gpu = {"min_cuda": 12.4, "min_compute_capability": 8}
    assert refused({"gpu": gpu}) == {
        "gpu.min_cuda": 'Use a string like "12.4".',
        "gpu.min_compute_capability": 'Use a string like "8.0".',
    }


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "Lab"}, "launchers.0.name"),
        ({"command": []}, "launchers.0.command"),
        ({"command": [""]}, "launchers.0.command"),
        ({"command": "jupyter lab"}, "launchers.0.command"),
        ({"command": ["a\0b"]}, "launchers.0.command.0"),
        ({"command": ["x" * 30_000] * 2}, "launchers.0.command"),
        ({"env": [{"name": "A B", "value": ""}]}, "launchers.0.env.0.name"),
        ({"env": [{"name": "A", "value": ""}] * 2}, "launchers.0.env.1.name"),
        ({"env": [{"name": "A", "value": "", "secret": True}]}, "launchers.0.env.0.secret"),
        ({"port": 8888}, "launchers.0.port"),
        ({"autostart": "yes"}, "launchers.0.autostart"),
        ({"user": "root"}, "launchers.0.user"),
        *(({"token": token}, f"launchers.0.token{key}") for token, key in WRONG_TOKENS),
    ],
)
def test_a_launcher_that_is_none(changes: dict[str, Any], field: str) -> None:
    assert list(refused(launcher(**changes))) == [field]


@pytest.mark.parametrize("port", [0, 65536, -1, 80.0, "80", True])
def test_a_port_is_a_number_from_1_to_65535(port: Any) -> None:
    assert list(refused({"ports": [{"name": "web", "container_port": port}]})) == ["ports.0.container_port"]


def test_a_port_is_stored_without_its_defaults() -> None:
    """As documents of before there were any, so that no revision differs for them."""
    whole = {"name": "web", "container_port": None, "access": "owner", "kind": "http", "user": None}
    assert load(PARTS, {"ports": [whole]})["ports"] == load(PARTS, {"ports": [{"name": "web"}]})["ports"]
    assert load(PARTS, {"ports": [whole]})["ports"] == [{"name": "web"}]
    other = {"name": "db", "container_port": 5432, "access": "host", "kind": "postgres", "user": "me"}
    assert load(PARTS, {"ports": [other]})["ports"] == [other]


def test_every_name_is_there_once() -> None:
    ports = [{"name": "web", "container_port": number} for number in (80, 81)]
    both = launcher()["launchers"] * 2
    assert refused({"ports": ports, "launchers": both}) == {
        "ports.1.name": "web is listed twice.",
        "launchers.1.name": "lab is listed twice.",
    }


@pytest.mark.parametrize(
    "path",
    ["", "data", "/", "//data", "/data/", "/data//x", "/data/./x", "/data/../etc", "/..", "/a\0b", "/a\nb"],
)
def test_a_mount_goes_to_a_plain_absolute_path(path: str) -> None:
    assert list(refused(mounted(path))) == ["mounts.0.path"]


@pytest.mark.parametrize("taken", ["/work", *SYSTEM])
def test_a_mount_leaves_alone_what_a_container_needs(taken: str) -> None:
    for path in (taken, f"{taken}/data"):
        message = refused(mounted(path))["mounts.0.path"]
        assert message == f"{taken} belongs to the container; use another path, such as /data."
    if taken != "/var/run":
        assert load(PARTS, mounted(f"{taken}shop"))


@pytest.mark.parametrize("paths", [("/data", "/data"), ("/data", "/data/x"), ("/data/x", "/data")])
def test_no_mount_is_inside_another(paths: tuple[str, str]) -> None:
    assert refused(mounted(*paths)) == {"mounts.1.path": f"A mount cannot be inside another ({paths[0]})."}
    assert load(PARTS, mounted("/data", "/data2", "/data-x"))


def test_there_are_only_so_many() -> None:
    many = {
        "launchers": [{"name": f"l{n}", "command": ["x"]} for n in range(LAUNCHERS_MAX + 1)],
        "ports": [{"name": f"p{n}", "container_port": 80} for n in range(PORTS_MAX + 1)],
        "mounts": [{"root": "data", "path": f"/m{n}"} for n in range(MOUNTS_MAX + 1)],
    }
    assert set(refused(many)) == {"launchers", "ports", "mounts"}
    assert load(PARTS, {part: items[1:] for part, items in many.items()})


@given(path=st.text(max_size=300))
def test_what_is_taken_the_helper_takes_too(path: str) -> None:
    try:
        [mount] = load(PARTS, mounted(f"/{path}"))["mounts"]
    except ValidationFailed:
        return
    assert arguments.mount(mount) == mount
