"""What Podman is told to make, without Podman."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from agent.priv_ns import NO_LIMITS

from svc_helper.agent.calls import Failure
from svc_helper.agent.containers import spec

ARGS: dict[str, Any] = {
    "id": "ws-aaaaaaaa",
    "image": "reg.example/base:1",
    "name": "demo",
    "command": None,
    "env": {"A": "b c"},
    "resources": NO_LIMITS,
    "run_as": None,
    "mounts": [],
    "network": None,
}
REQUESTED = {"cpu_limit": 1500, "memory_bytes": 1 << 30, "shm_bytes": 1 << 20, "pids_limit": 50}


def created(
    *, systemd: bool = False, config: Any = None, applied: tuple[str, ...] = (), **changes: Any
) -> dict[str, Any]:
    """The body of the create for a workspace."""
    home: Any = SimpleNamespace(home="/home/demo", roots={"work": "/home/demo/work"}, systemd=systemd)
    return spec.specification(home, ARGS | changes, {"Config": config}, list(applied))


def test_the_usual_one() -> None:
    body = created()
    assert (body["name"], body["labels"]) == ("svc-ws-aaaaaaaa", {"svc.workspace": "ws-aaaaaaaa"})
    assert (body["hostname"], body["init"], body["env"]) == ("demo", True, {"A": "b c"})
    (mount,) = body["mounts"]
    assert (mount["source"], mount["destination"], mount["options"][0]) == ("/home/demo/work", "/work", "rw")
    path = "/home/demo/.local/state/svc/workspaces/ws-aaaaaaaa/output/output.log"
    assert body["log_configuration"] == {"driver": "k8s-file", "path": path, "size": 64 * 1024 * 1024}
    assert body["healthconfig"] == {"Test": ["NONE"]}, "nobody would run it"
    assert "healthconfig" not in created(systemd=True)
    for never in ("privileged", "cap_add", "netns", "pidns", "volumes", "userns", "resource_limits"):
        assert never not in body


@pytest.mark.parametrize(
    ("volumes", "anonymous"),
    [
        ({"/work/data": {}, "/var/lib/x": {}, "/work": {}}, ["/var/lib/x"]),
        ({"/work/../work//data/": {}}, []),
        ({"/var/lib/x": {}, "/work": {}, "/workshop": {}}, None),
        (None, None),
        (7, None),
    ],
)
def test_no_volume_of_an_image_hides_what_is_in_a_mount(volumes: Any, anonymous: list[str] | None) -> None:
    body = created(config={"Volumes": volumes})
    if anonymous is None:
        assert "image_volume_mode" not in body and "volumes" not in body, "Podman's own way"
    else:
        assert body["image_volume_mode"] == "ignore"
        assert body["volumes"] == [{"Name": "", "Dest": path, "Options": []} for path in anonymous]


def test_limits_go_where_they_are_applied() -> None:
    controllers = frozenset({"cpu", "memory", "pids"})
    assert spec.limits(REQUESTED, controllers) == (list(REQUESTED), [])
    assert spec.limits(REQUESTED, frozenset({"memory"})) == (
        ["memory_bytes", "shm_bytes"],
        ["cpu_limit", "pids_limit"],
    )
    assert spec.limits(NO_LIMITS, frozenset()) == ([], [])
    body = created(resources=REQUESTED, applied=tuple(REQUESTED))
    assert body["resource_limits"] == {
        "cpu": {"period": 100_000, "quota": 150_000},
        "memory": {"limit": 1 << 30, "swap": 1 << 30},
        "pids": {"limit": 50},
    }
    assert body["shm_size"] == 1 << 20
    assert (
        created(resources=REQUESTED | {"cpu_limit": 1}, applied=("cpu_limit",))["resource_limits"]["cpu"][
            "quota"
        ]
        == 1000
    )


def test_run_as_and_devices() -> None:
    body = created(run_as={"uid": 1000, "gid": 100}, command=["sleep", "9"])
    assert body["userns"] == {"nsmode": "keep-id", "value": "uid=1000,gid=100"}
    assert "devices" not in body and body["command"] == ["sleep", "9"]
    spec.require_named_devices(["nvidia.com/gpu=0", "nvidia.com/gpu=GPU-12"])
    with pytest.raises(Failure):
        spec.require_named_devices(["nvidia.com/gpu=0", "nvidia.com/gpu=all"])


def test_a_network_is_podmans_own_and_has_the_workspaces_name() -> None:
    assert not {"netns", "Networks"} & set(created())
    body = created(network={"name": "lab", "alias": "tools"})
    assert body["netns"] == {"nsmode": "bridge"}
    assert body["Networks"] == {"svc-lab": {"aliases": ["tools"]}}


@pytest.mark.parametrize(
    ("config", "waits"),
    [
        ({"Cmd": ["/bin/bash"]}, True),
        ({"Cmd": ["bash", "-l"]}, True),
        ({"Cmd": ["/bin/sh", "-i"]}, True),
        ({"Entrypoint": ["docker-entrypoint.sh"], "Cmd": ["node"]}, True),
        ({"Entrypoint": ["/bin/zsh"]}, True),
        ({"Cmd": ["python3"]}, True),
        ({"Cmd": ["/bin/sh", "-c", "exec server"]}, False),
        ({"Cmd": ["bash", "-c"]}, False),
        ({"Cmd": ["python3", "app.py"]}, False),
        ({"Cmd": ["/usr/sbin/nginx", "-g", "daemon off;"]}, False),
        ({"Cmd": None, "Entrypoint": None}, False),
        ({"Cmd": "bash"}, False),
        ({"Cmd": [7]}, False),
        (None, False),
        ("rubbish", False),
    ],
)
def test_a_shell_with_nothing_to_do_keeps_its_standard_input(config: Any, waits: bool) -> None:
    assert created(config=config).get("stdin", False) is waits
    assert "stdin" not in created(config=config, command=["bash"]), "a command of one's own is taken as it is"


def mount(path: str, root: str = "data", *, read_only: bool = True) -> dict[str, Any]:
    """One mount of a template."""
    return {"root": root, "path": path, "read_only": read_only}


def test_mounts_of_file_roots() -> None:
    roots = {"work": "/home/demo/work", "data": "/srv/data/demo"}
    home: Any = SimpleNamespace(home="/home/demo", roots=roots, read_only=frozenset(), systemd=False)
    mounts = [mount("/data"), mount("/srv/own", read_only=False)]
    spec.require_mounts(home, mounts)
    body = spec.specification(home, ARGS | {"mounts": mounts}, {}, [])
    assert [(one["source"], one["destination"], one["options"]) for one in body["mounts"]] == [
        ("/home/demo/work", "/work", ["rw", "rbind", "rprivate"]),
        ("/srv/data/demo", "/data", ["ro", "rbind", "rprivate"]),
        ("/srv/data/demo", "/srv/own", ["rw", "rbind", "rprivate"]),
    ]


def test_a_read_only_root_is_mounted_so_whatever_the_template_says() -> None:
    roots = {"work": "/home/demo/work", "data": "/srv/data"}
    home: Any = SimpleNamespace(home="/home/demo", roots=roots, read_only=frozenset({"data"}), systemd=False)
    body = spec.specification(home, ARGS | {"mounts": [mount("/srv/own", read_only=False)]}, {}, [])
    assert body["mounts"][1]["options"] == ["ro", "rbind", "rprivate"]


@pytest.mark.parametrize(
    ("paths", "root", "code"),
    [
        (["/work"], "data", "protocol"),
        (["/work/inner"], "data", "protocol"),
        (["/proc"], "data", "protocol"),
        (["/sys/fs"], "data", "protocol"),
        (["/dev/shm"], "data", "protocol"),
        (["/run/x"], "data", "protocol"),
        (["/etc/passwd"], "data", "protocol"),
        (["/a", "/a"], "data", "protocol"),
        (["/a", "/a/b"], "data", "protocol"),
        (["/a/b", "/a"], "data", "protocol"),
        (["/a"], "nothing", "failed"),
    ],
)
def test_mounts_that_no_container_has(paths: list[str], root: str, code: str) -> None:
    home: Any = SimpleNamespace(
        home="/home/demo", roots={"work": "/home/demo/work", "data": "/srv/data/demo"}
    )
    with pytest.raises(Failure) as caught:
        spec.require_mounts(home, [mount(path, root) for path in paths])
    assert caught.value.code == code
    spec.require_mounts(home, [mount("/a"), mount("/ab"), mount("/workshop"), mount("/etcetera")])
