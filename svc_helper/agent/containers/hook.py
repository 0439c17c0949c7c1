"""The OCI hook (stage precreate) that applies the overrides of a start.

Podman runs it before it creates the container, as the user, in Podman's
namespaces: the OCI configuration comes on standard input, the changed one goes
to standard output. When the hook fails, Podman does not start the container but
drops the hook's error, so that goes to a file beside the overrides. The agent
has decided and checked the changes: see overrides.py.
"""

from __future__ import annotations

import sys

from svc_helper.agent import user_files
from svc_helper.wire import quick_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # not imported at run time: a start waits for the hook

_CONFIG_MAX = 16 * 1024 * 1024
_WHY_MAX = 500
SHM = "/dev/shm"  # noqa: S108  the container's own
_SHM_OPTIONS = ["nosuid", "noexec", "nodev", "mode=1777"]


def main() -> None:
    """Apply the overrides in the file argv[1]; the exit status tells Podman whether to start."""
    path = sys.argv[1]
    token = ""
    try:
        with open(path, "rb") as file:
            overrides = quick_json.loads(file.read(_CONFIG_MAX).decode())
        token = overrides["token"]
        config = quick_json.loads(sys.stdin.buffer.read(_CONFIG_MAX).decode())
        changed = quick_json.dumps(apply(config, overrides)).encode()
        write_result(path, {"token": token, "done": True})
        sys.stdout.buffer.write(changed)
        sys.stdout.buffer.flush()
    except Exception as error:  # noqa: BLE001  the edge of the program: every error must fail the start
        write_result(path, {"token": token, "done": False, "why": repr(error)[:_WHY_MAX]})
        sys.exit(1)


def write_result(path: str, message: dict[str, Any]) -> None:
    """Write the result for the agent, which compares the token with its own."""
    user_files.replace(f"{path}.said", quick_json.dumps(message))


def apply(config: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """The configuration with the overrides of overrides.py, each of which may be missing."""
    _set_environment(config["process"], overrides.get("without") or [], overrides.get("env") or {})
    _set_limits(config["linux"], overrides.get("limits") or {})
    if overrides.get("shm_bytes"):
        _set_shm(config["mounts"], overrides["shm_bytes"])
    _add_devices(config, overrides.get("cdi") or {})
    return config


def _set_environment(process: dict[str, Any], without: list[str], env: dict[str, str]) -> None:
    """Remove the variables `without`, then set `env`; the others keep their values and order."""
    gone = {*without, *env}
    kept = [pair for pair in process.get("env") or [] if pair.partition("=")[0] not in gone]
    process["env"] = [*kept, *(f"{name}={value}" for name, value in env.items())]


def _set_limits(linux: dict[str, Any], limits: dict[str, dict[str, int] | None]) -> None:
    """Replace whole groups of limits ("cpu", "memory", "pids"); None removes one."""
    resources = linux.get("resources") or {}
    for name, values in limits.items():
        if values is None:
            resources.pop(name, None)
        else:
            resources[name] = values
    linux["resources"] = resources


def _set_shm(mounts: list[dict[str, Any]], size: int) -> None:
    """Replace Podman's mount, which has the created size, by a tmpfs of this size."""
    mount = {"destination": SHM, "type": "tmpfs", "source": "shm", "options": [*_SHM_OPTIONS, f"size={size}"]}
    indexes = [index for index, found in enumerate(mounts) if found["destination"] == SHM]
    if not indexes:  # not the configuration of any known Podman
        raise LookupError(f"the container has no {SHM}")
    mounts[indexes[-1]] = mount


def _add_devices(config: dict[str, Any], cdi: dict[str, Any]) -> None:
    env = dict(pair.partition("=")[::2] for pair in cdi.get("env") or [])
    _set_environment(config["process"], [], env)
    config["mounts"] += cdi.get("mounts") or []
    hooks = config.get("hooks") or {}
    for stage, more in (cdi.get("hooks") or {}).items():
        hooks[stage] = [*(hooks.get(stage) or []), *more]
    if hooks:
        config["hooks"] = hooks
    if gids := cdi.get("gids"):
        user = config["process"]["user"]
        user["additionalGids"] = sorted({*(user.get("additionalGids") or []), *gids})
