"""The container's specification for Podman, built from checked values only."""

from __future__ import annotations

import os

from svc_helper.agent.calls import Failure
from svc_helper.agent.home import LOG_SIZE_MAX, Home
from svc_helper.agent.runtime import conmon_log, oom
from svc_helper.wire.quick_typing import Any

LABEL = "svc.workspace"
_CPU_PERIOD_US = 100_000
_CONTROLLERS = {"cpu_limit": "cpu", "memory_bytes": "memory", "pids_limit": "pids"}
_OWN_PATHS = ("/work", "/proc", "/sys", "/dev", "/run", "/etc")  # nothing is mounted over these
# Programs that exit at once on an empty standard input without a terminal.
_SHELLS = {"sh", "ash", "bash", "dash", "fish", "ksh", "zsh"}
_READ_STDIN = {*_SHELLS, "python", "python3", "ipython", "node", "irb", "R", "julia"}


def container_name(workspace_id: str) -> str:
    """The name of a workspace's container."""
    return f"svc-{workspace_id}"


def next_name(workspace_id: str) -> str:
    """The name of the container that is to replace a workspace's own."""
    return f"{container_name(workspace_id)}-next"


def network_name(name: str) -> str:
    """Podman's name of a user's network."""
    return f"svc-{name}"


def limits(resources: dict[str, int | None], controllers: frozenset[str]) -> tuple[list[str], list[str]]:
    """Which of the requested limits this host can apply, and which it cannot."""
    requested = [name for name, value in resources.items() if value is not None]
    applied = [name for name in requested if _CONTROLLERS.get(name) in {None, *controllers}]
    return applied, [name for name in requested if name not in applied]


def require_named_devices(devices: list[str]) -> None:
    """Refuse the name of all devices: each is leased separately."""
    if any(device.endswith("=all") for device in devices):
        raise Failure("protocol", "devices must be named one by one")


def require_mounts(home: Home, mounts: list[dict[str, Any]]) -> None:
    """Refuse mounts over system directories or over one another, and unknown file roots."""
    paths = [f"{mount['path']}/" for mount in mounts]
    taken = [f"{path}/" for path in _OWN_PATHS]
    for number, path in enumerate(paths):
        others = [*paths[:number], *paths[number + 1 :], *taken]
        if any(path.startswith(other) for other in others):
            raise Failure("protocol", "a mount covers another one or a system directory")
    for mount in mounts:
        if mount["root"] not in home.roots:
            raise Failure("failed", f"this host has no file root {mount['root']}")


def _mode(home: Home, mount: dict[str, Any]) -> str:
    return "ro" if mount["read_only"] or mount["root"] in home.read_only else "rw"


def _mount(source: str, path: str, mode: str) -> dict[str, Any]:
    return {"type": "bind", "source": source, "destination": path, "options": [mode, "rbind", "rprivate"]}


def specification(
    home: Home, args: dict[str, Any], untrusted_image: dict[str, Any], applied: list[str]
) -> dict[str, Any]:
    """The body of Podman's container create."""
    body: dict[str, Any] = {
        "name": container_name(args["id"]),
        "image": args["image"],
        "labels": {LABEL: args["id"]},
        "annotations": {LABEL: args["id"]},
        "hostname": args["name"],
        "env": args["env"],
        "init": True,  # else a container that ignores TERM delays every stop and reboot
        "mounts": [
            _mount(home.roots["work"], "/work", "rw"),
            *(
                _mount(home.roots[mount["root"]], mount["path"], _mode(home, mount))
                for mount in args["mounts"]
            ),
        ],
        "log_configuration": {
            "driver": "k8s-file",
            "path": conmon_log.path(home, args["id"]),
            "size": LOG_SIZE_MAX,
        },
    }
    covered = [mount["destination"] for mount in body["mounts"]]
    if (volumes := _volumes_beside(covered, untrusted_image)) is not None:
        body |= {"image_volume_mode": "ignore", "volumes": volumes}
    if args["command"] is not None:
        body["command"] = args["command"]
    elif _needs_stdin(untrusted_image):
        body["stdin"] = True
    if (run_as := args["run_as"]) is not None:
        body["userns"] = {"nsmode": "keep-id", "value": f"uid={run_as['uid']},gid={run_as['gid']}"}
    if (network := args["network"]) is not None:
        body["netns"] = {"nsmode": "bridge"}
        body["Networks"] = {network_name(network["name"]): {"aliases": [network["alias"]]}}
    if home.systemd:
        body["cgroup_parent"] = oom.slice_of(args["id"])
    else:  # healthchecks are run by timers of the user's manager
        body["healthconfig"] = {"Test": ["NONE"]}
    chosen = {name: args["resources"][name] for name in applied}
    if limit := oci_limits(chosen):
        body["resource_limits"] = limit
    if "shm_bytes" in chosen:
        body["shm_size"] = chosen["shm_bytes"]
    return body


def oci_limits(resources: dict[str, int]) -> dict[str, dict[str, int]]:
    """The limits as `linux.resources` of an OCI configuration: cpu, memory, pids."""
    limit: dict[str, dict[str, int]] = {}
    if "cpu_limit" in resources:  # thousandths of a core
        quota = resources["cpu_limit"] * _CPU_PERIOD_US // 1000
        limit["cpu"] = {"period": _CPU_PERIOD_US, "quota": max(1000, quota)}
    if "memory_bytes" in resources:
        limit["memory"] = {"limit": resources["memory_bytes"], "swap": resources["memory_bytes"]}
    if "pids_limit" in resources:
        limit["pids"] = {"limit": resources["pids_limit"]}
    return limit


def _volumes_beside(mounted: list[str], untrusted_image: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The image's volumes as anonymous ones, without those below a mount; None if there are none below.

    Podman would put an empty volume there: what is written to it is not among the user's files, and goes with
    the container.
    """
    config = untrusted_image.get("Config")
    found = config.get("Volumes") if isinstance(config, dict) else None
    paths = [os.path.normpath(path) for path in found] if isinstance(found, dict) else []
    beside = [path for path in paths if not any(f"{path}/".startswith(f"{place}/") for place in mounted)]
    if all(path in beside or path in mounted for path in paths):
        return None
    return [{"Name": "", "Dest": path, "Options": []} for path in beside]


def _needs_stdin(untrusted_image: dict[str, Any]) -> bool:
    """Whether the image's own command would exit at once: a shell without input."""
    config = untrusted_image.get("Config")
    if not isinstance(config, dict):
        return False
    lists = [config.get(name) for name in ("Entrypoint", "Cmd")]
    argv = [text for part in lists if isinstance(part, list) for text in part if isinstance(text, str)]
    while argv and argv[-1].startswith("-") and "c" not in argv[-1]:
        argv.pop()  # `bash -l` reads its standard input, `bash -c` does not
    return bool(argv) and argv[-1].rpartition("/")[2] in _READ_STDIN
