"""What Podman runs before it creates a container whose start has overrides: the hook of the stage precreate.

It reads the container's OCI configuration on its standard input and writes it
changed on its standard output. Podman runs it as the user, in its own
namespaces, and does not start the container when it fails; of its complaint
Podman keeps nothing, so that goes to a file beside the overrides. Which changes
these are was decided and checked by the agent: see overrides.py.
"""

from __future__ import annotations

import sys

from svc_helper import atomic_file
from svc_helper.wire import quick_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # not imported when it runs: somebody waits for the start

_CONFIG_MAX = 16 * 1024 * 1024
_WORDS_MAX = 500
SHM = "/dev/shm"  # noqa: S108  the container's own
_SHM_OPTIONS = ["nosuid", "noexec", "nodev", "mode=1777"]


def main() -> None:
    """Change the configuration as the overrides in the file argv[1] say; its end is the exit status."""
    path = sys.argv[1]
    token = ""
    try:
        with open(path, "rb") as file:
            overrides = quick_json.loads(file.read(_CONFIG_MAX).decode())
        token = overrides["token"]
        config = quick_json.loads(sys.stdin.buffer.read(_CONFIG_MAX).decode())
        changed = quick_json.dumps(apply(config, overrides)).encode()
        tell(path, {"token": token, "done": True})
        sys.stdout.buffer.write(changed)
        sys.stdout.buffer.flush()
    except Exception as error:  # noqa: BLE001  the program's edge: whatever it is, the start must fail
        tell(path, {"token": token, "done": False, "words": repr(error)[:_WORDS_MAX]})
        sys.exit(1)


def tell(path: str, message: dict[str, Any]) -> None:
    """Leave word for the agent, which compares the token with its own."""
    atomic_file.replace(f"{path}.said", quick_json.dumps(message).encode(), durable=False)


def apply(config: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """The configuration with the overrides: those of overrides.py, each of which may be left out."""
    _set_environment(config["process"], overrides.get("without") or [], overrides.get("env") or {})
    _set_limits(config["linux"], overrides.get("limits") or {})
    if overrides.get("shm_bytes"):
        _set_shm(config["mounts"], overrides["shm_bytes"])
    _add_devices(config, overrides.get("cdi") or {})
    return config


def _set_environment(process: dict[str, Any], without: list[str], env: dict[str, str]) -> None:
    """Take the variables `without` out, then set `env`; every other one stays as and where it is."""
    gone = {*without, *env}
    kept = [pair for pair in process.get("env") or [] if pair.partition("=")[0] not in gone]
    process["env"] = [*kept, *(f"{name}={value}" for name, value in env.items())]


def _set_limits(linux: dict[str, Any], limits: dict[str, dict[str, int] | None]) -> None:
    """Replace whole groups of limits ("cpu", "memory", "pids"); None takes one away."""
    resources = linux.get("resources") or {}
    for name, values in limits.items():
        if values is None:
            resources.pop(name, None)
        else:
            resources[name] = values
    linux["resources"] = resources


def _set_shm(mounts: list[dict[str, Any]], size: int) -> None:
    """Put a tmpfs of this size in the place of Podman's, which has the size it was created with."""
    mount = {"destination": SHM, "type": "tmpfs", "source": "shm", "options": [*_SHM_OPTIONS, f"size={size}"]}
    places = [number for number, found in enumerate(mounts) if found["destination"] == SHM]
    if not places:  # the configuration is not what we know
        raise LookupError(f"the container has no {SHM}")
    mounts[places[-1]] = mount


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
