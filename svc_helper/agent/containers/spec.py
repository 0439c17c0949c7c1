"""What Podman is told to make: the container's specification, built from checked values only."""

from __future__ import annotations

from typing import Any

from svc_helper.agent.calls import Failure
from svc_helper.agent.containers import oom
from svc_helper.agent.home import LOG_SIZE_MAX, Home

LABEL = "svc.workspace"
_CPU_PERIOD_US = 100_000
_CONTROLLERS = {"cpu_limit": "cpu", "memory_bytes": "memory", "pids_limit": "pids"}
_OWN_PATHS = ("/work", "/proc", "/sys", "/dev", "/run", "/etc")  # nothing is mounted over these
# Programs that end at once when their standard input is at its end and nobody is at a terminal.
_READ_STDIN = frozenset(
    (
        "sh",
        "ash",
        "bash",
        "dash",
        "fish",
        "ksh",
        "zsh",
        "python",
        "python3",
        "ipython",
        "node",
        "irb",
        "R",
        "julia",
    )
)


def container_name(workspace_id: str) -> str:
    """The container of a workspace."""
    return f"svc-{workspace_id}"


def limits(resources: dict[str, int | None], controllers: frozenset[str]) -> tuple[list[str], list[str]]:
    """Which of the wanted limits this host can apply, and which it cannot."""
    wanted = [name for name, value in resources.items() if value is not None]
    applied = [name for name in wanted if _CONTROLLERS.get(name) in {None, *controllers}]
    return applied, [name for name in wanted if name not in applied]


def require_named_devices(devices: list[str]) -> None:
    """Refuse the name that stands for every device: each is leased by itself."""
    if any(device.endswith("=all") for device in devices):
        raise Failure("protocol", "devices are named one by one")


def require_mounts(home: Home, mounts: list[dict[str, Any]]) -> None:
    """Refuse a mount over what a container needs itself, one in another, and a root that the host lacks."""
    paths = [f"{mount['path']}/" for mount in mounts]
    taken = [f"{path}/" for path in _OWN_PATHS]
    for number, path in enumerate(paths):
        others = [*paths[:number], *paths[number + 1 :], *taken]
        if any(path.startswith(other) for other in others):
            raise Failure("protocol", "a mount over another, or over a part of the system")
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
    made: dict[str, Any] = {
        "name": container_name(args["id"]),
        "image": args["image"],
        "labels": {LABEL: args["id"]},
        "annotations": {LABEL: args["id"]},
        "hostname": args["name"],
        "env": args["env"],
        "init": True,  # or a container that ignores TERM delays every stop and every reboot
        "mounts": [
            _mount(home.roots["work"], "/work", "rw"),
            *(
                _mount(home.roots[mount["root"]], mount["path"], _mode(home, mount))
                for mount in args["mounts"]
            ),
        ],
        "log_configuration": {"driver": "k8s-file", "size": LOG_SIZE_MAX},
    }
    if args["command"] is not None:
        made["command"] = args["command"]
    elif _needs_stdin(untrusted_image):
        made["stdin"] = True
    if args["run_as"] is not None:
        run_as = args["run_as"]
        made["userns"] = {"nsmode": "keep-id", "value": f"uid={run_as['uid']},gid={run_as['gid']}"}
    if home.systemd:
        made["cgroup_parent"] = oom.slice_of(args["id"])
    else:  # timers of the user's manager would run the image's healthcheck
        made["healthconfig"] = {"Test": ["NONE"]}
    chosen = {name: args["resources"][name] for name in applied}
    if limit := limited(chosen):
        made["resource_limits"] = limit
    if "shm_bytes" in chosen:
        made["shm_size"] = chosen["shm_bytes"]
    return made


def limited(resources: dict[str, int]) -> dict[str, dict[str, int]]:
    """The limits as an OCI configuration has them in `linux.resources`: cpu, memory, pids."""
    limit: dict[str, dict[str, int]] = {}
    if "cpu_limit" in resources:  # thousandths of a core
        quota = resources["cpu_limit"] * _CPU_PERIOD_US // 1000
        limit["cpu"] = {"period": _CPU_PERIOD_US, "quota": max(1000, quota)}
    if "memory_bytes" in resources:
        limit["memory"] = {"limit": resources["memory_bytes"], "swap": resources["memory_bytes"]}
    if "pids_limit" in resources:
        limit["pids"] = {"limit": resources["pids_limit"]}
    return limit


def _needs_stdin(untrusted_image: dict[str, Any]) -> bool:
    """Whether the image's own command would end at once: a shell without anything to do."""
    config = untrusted_image.get("Config")
    if not isinstance(config, dict):
        return False
    words = [*_words(config.get("Entrypoint")), *_words(config.get("Cmd"))]
    while words and words[-1].startswith("-") and "c" not in words[-1]:
        words.pop()  # `bash -l` waits for its standard input, `bash -c` does not
    return bool(words) and words[-1].rpartition("/")[2] in _READ_STDIN


def _words(untrusted: Any) -> list[str]:
    return [word for word in untrusted if isinstance(word, str)] if isinstance(untrusted, list) else []
