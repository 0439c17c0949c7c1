"""Overrides: what one start of a container changes of the parameters it was created with.

A container keeps what is installed in it only if it is never created again, and
Podman cannot change the environment, the limits or the devices of an existing
one. So a start with differences writes its overrides to the agent's own
directory of OCI hooks, and Podman runs hook.py, which changes the configuration
before the runtime gets it. A start without differences writes nothing and costs
nothing; a manual `podman start` has no hook: no lease, no GPU.

No container ever starts without its limits unnoticed. Podman refuses to start it
when the hook fails; when Podman does not run the hook at all (it only warns of a
missing directory), the hook's result is missing.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from svc_helper import interpreter
from svc_helper.agent import paths, user_files
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import spec
from svc_helper.agent.containers.cdi import Edits
from svc_helper.agent.containers.hook import SHM
from svc_helper.agent.containers.spec import LABEL
from svc_helper.agent.home import PIDS_DEFAULT, Home
from svc_helper.wire.quick_typing import Any, NamedTuple

_CREATED = "created.json"
_PREPARED = "prepared.json"  # of the container that is to replace the workspace's own
_FILE_MAX = 4 * 1024 * 1024
_HOOK_S = 20
_SHM_DEFAULT = 64 * 1024 * 1024  # Podman's
_PATH_DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # Podman's
_PODMANS = frozenset(("PATH", "TERM", "HOSTNAME", "HOME", "container"))  # variables that Podman adds


class Created(NamedTuple):
    """The parameters that a container was created with; `limits` is None when they are unknown."""

    env: dict[str, str]
    hidden: dict[str, str]  # the image's own values of the variables in env
    resources: dict[str, int | None]
    limits: dict[str, int] | None  # the applied ones


UNKNOWN = Created({}, {}, {}, None)


class Prepared(NamedTuple):
    """A prepared start: its limits, and the token that the hook must return ("" without overrides)."""

    token: str
    limits: dict[str, int]  # the applied ones
    missing: list[str]


# --- what it was created with --------------------------------------------------------------


def created_with(args: dict[str, Any], untrusted_image: dict[str, Any], applied: list[str]) -> Created:
    """The record of a container that is created with these arguments."""
    image_env = variables(untrusted_image)
    hidden = {name: image_env[name] for name in args["env"] if name in image_env}
    limits = {name: args["resources"][name] for name in applied}
    return Created(args["env"], hidden, args["resources"], limits)


def note(home: Home, workspace_id: str, created: Created, *, prepared: bool = False) -> None:
    """Write the record of a container's parameters, or of one that is `prepared` to replace it."""
    directory = paths.workspace(home.home, workspace_id)
    os.makedirs(directory, 0o700, exist_ok=True)
    user_files.replace(f"{directory}/{_PREPARED if prepared else _CREATED}", json.dumps(created._asdict()))


def is_prepared(home: Home, workspace_id: str) -> bool:
    """Whether a container may be prepared to replace the workspace's own."""
    return os.path.lexists(f"{paths.workspace(home.home, workspace_id)}/{_PREPARED}")


def take_over(home: Home, workspace_id: str) -> None:
    """The record of the prepared container becomes that of the workspace's own; may be repeated."""
    directory = paths.workspace(home.home, workspace_id)
    with suppress(FileNotFoundError):
        os.rename(f"{directory}/{_PREPARED}", f"{directory}/{_CREATED}")


def recall(home: Home, workspace_id: str) -> Created | None:
    """The record of a container's parameters; None without a valid one."""
    found = _read(f"{paths.workspace(home.home, workspace_id)}/{_CREATED}")
    env, hidden, resources, limits = (found.get(name) for name in Created._fields)
    texts = [value for part in (env, hidden) for value in _values(part)]
    numbers = [value for part in (resources, limits or {}) for value in _values(part)]
    if not all(isinstance(text, str) for text in texts):
        return None
    if not all(number is None or type(number) is int for number in numbers):
        return None
    return Created(*(found[name] for name in Created._fields))


def _values(untrusted: Any) -> list[Any]:
    return list(untrusted.values()) if isinstance(untrusted, dict) else [Ellipsis]


def guess(untrusted_container: dict[str, Any], untrusted_image: dict[str, Any]) -> Created:
    """The parameters from Podman's description, for a container without a record; limits are unknown.

    Podman returns the environment of the last start, so this must be recorded
    before another start changes it.
    """
    image_env, own = variables(untrusted_image), variables(untrusted_container)
    env = {name: own[name] for name in own if name not in _PODMANS and own[name] != image_env.get(name)}
    return Created(env, {name: image_env[name] for name in env if name in image_env}, {}, None)


def variables(untrusted: dict[str, Any]) -> dict[str, str]:
    """The environment in Podman's description of an image or a container."""
    config = untrusted.get("Config")
    pairs = config.get("Env") if isinstance(config, dict) else None
    return dict(pair.partition("=")[::2] for pair in pairs if isinstance(pair, str)) if pairs else {}


def forget(home: Home, workspace_id: str) -> None:
    """Remove everything that the agent keeps of a workspace."""
    withdraw(home, workspace_id)
    import shutil  # imported only by an agent that removes a workspace

    directory = paths.workspace(home.home, workspace_id)
    for _ in range(3):  # a process that is still ending may write to it
        shutil.rmtree(directory, ignore_errors=True)
        if not os.path.lexists(directory):
            return


# --- what a start has different --------------------------------------------------------------


def prepare(home: Home, created: Created, args: dict[str, Any], edits: Edits) -> Prepared:
    """Write the hook and its overrides for the next start, if it differs from the created container.

    A parameter that is None keeps its created value. The limits of
    `args["resources"]` are complete: a created limit missing there is removed for
    this start.
    """
    wish = created.resources if args["resources"] is None else args["resources"]
    applied, missing = spec.limits(wish, home.controllers)
    limits = {name: int(wish[name] or 0) for name in applied}
    changes: dict[str, Any] = {}
    if args["env"] is not None:
        changes |= _environment(created, args["env"])
    if args["resources"] is not None or created.limits is not None:
        changes |= _limits(home, created.limits, limits)
    if args["devices"]:
        changes["cdi"] = edits.as_json()
    withdraw(home, args["id"])
    token = ""
    if changes:
        token = os.urandom(16).hex()
        _write_hook(home, args["id"], changes | {"token": token})
    return Prepared(token, limits, missing)


def _environment(created: Created, env: dict[str, str]) -> dict[str, Any]:
    """{"without", "env"} that turn the created environment into `env`; empty when they are equal."""
    without = [name for name in created.env if name not in env]
    if not without and env.items() == created.env.items():
        return {}
    restored = {name: created.hidden[name] for name in without if name in created.hidden}
    if "PATH" in without:
        restored.setdefault("PATH", _PATH_DEFAULT)
    return {"without": without, "env": restored | env}


def _limits(home: Home, before: dict[str, int] | None, now: dict[str, int]) -> dict[str, Any]:
    """{"limits", "shm_bytes"} that differ; all of them when the created ones are unknown."""
    groups = spec.oci_limits(now)
    known = spec.oci_limits(before or {})
    if "pids" in home.controllers:  # as Podman's own configuration has it
        groups.setdefault("pids", {"limit": PIDS_DEFAULT})
        known.setdefault("pids", {"limit": PIDS_DEFAULT})
    limits = {
        name: groups.get(name)
        for name in ("cpu", "memory", "pids")
        if before is None or groups.get(name) != known.get(name)
    }
    changes: dict[str, Any] = {"limits": limits} if limits else {}
    shm = now.get("shm_bytes", _SHM_DEFAULT)
    if before is None or shm != before.get("shm_bytes", _SHM_DEFAULT):
        changes["shm_bytes"] = shm
    return changes


# --- what one that runs has ------------------------------------------------------------------


def found_running(prepared: Prepared, created: Created, untrusted_config: dict[str, Any]) -> Prepared:
    """The same for a container that ran already: limits that it does not run with are missing."""
    holding = {
        name: value
        for name, value in prepared.limits.items()
        if _holds(created, untrusted_config, name, value)
    }
    lost = [name for name in prepared.limits if name not in holding]
    return prepared._replace(limits=holding, missing=prepared.missing + lost)


def _holds(created: Created, untrusted_config: dict[str, Any], name: str, value: int) -> bool:
    if name == "shm_bytes":
        return _shm_bytes(created, untrusted_config) == value
    [(group, requested)] = spec.oci_limits({name: value}).items()
    found: Any = untrusted_config
    for key in ("linux", "resources", group):
        found = found.get(key) if isinstance(found, dict) else None
    return isinstance(found, dict) and requested.items() <= found.items()


def _shm_bytes(created: Created, untrusted_config: dict[str, Any]) -> int | None:
    """The size of its /dev/shm: in a mount of our hook's; Podman's own mount has the created size."""
    mounts = untrusted_config.get("mounts")
    for mount in mounts if isinstance(mounts, list) else []:
        if isinstance(mount, dict) and mount.get("destination") == SHM:
            if mount.get("type") != "tmpfs":
                return None if created.limits is None else created.limits.get("shm_bytes", _SHM_DEFAULT)
            sizes = [text[5:] for text in mount.get("options") or [] if str(text).startswith("size=")]
            return int(sizes[0]) if len(sizes) == 1 and sizes[0].isdecimal() else None
    return None


# --- the hook --------------------------------------------------------------------------------


def require_applied(home: Home, call: Call, workspace_id: str, token: str) -> None:
    """Raise Failure unless the hook of this start, if it had one, succeeded; its error goes to the log."""
    result = _result(home, workspace_id, token)
    if token and result.get("done") is not True:
        call.log("the overrides of a start were not applied", "error", why=str(result.get("why"))[:500])
        raise Failure("failed", "the environment, limits and GPUs of this start could not be set")


def failed(home: Home, workspace_id: str, token: str) -> bool:
    """Whether the hook kept the container from starting."""
    return bool(token) and _result(home, workspace_id, token).get("done") is False


def _result(home: Home, workspace_id: str, token: str) -> dict[str, Any]:
    result = _read(f"{_overrides(home, workspace_id)}.said")
    return result if result.get("token") == token else {}


def _overrides(home: Home, workspace_id: str) -> str:
    return f"{home.own}/hooks/{workspace_id}.overrides"  # Podman reads what ends in .json only


def _write_hook(home: Home, workspace_id: str, overrides: dict[str, Any]) -> None:
    os.makedirs(f"{home.own}/hooks", 0o700, exist_ok=True)
    path = _overrides(home, workspace_id)
    user_files.replace(path, json.dumps(overrides))
    argv = interpreter.command("svc_helper.agent.containers.hook", path)
    hook = {
        "version": "1.0.0",
        "hook": {"path": argv[0], "args": argv, "timeout": _HOOK_S},
        "when": {"annotations": {f"^{LABEL.replace('.', '[.]')}$": f"^{workspace_id}$"}},
        "stages": ["precreate"],
    }
    # Last: an incomplete file here would make every start of this user fail.
    user_files.replace(f"{home.own}/hooks/{workspace_id}.json", json.dumps(hook))


def revoke(home: Home, workspace_id: str) -> None:
    """Remove the overrides but not the hook: a start that has not read them yet fails."""
    with suppress(FileNotFoundError):
        os.unlink(_overrides(home, workspace_id))


def withdraw(home: Home, workspace_id: str) -> None:
    """Remove the hook, so that it does not affect the next start."""
    for name in (".json", ".overrides", ".overrides.said"):
        with suppress(FileNotFoundError):
            os.unlink(f"{home.own}/hooks/{workspace_id}{name}")


# --- files -----------------------------------------------------------------------------------


def _read(path: str) -> dict[str, Any]:
    """The object in a JSON file; empty for anything else."""
    found = user_files.read_json(path, _FILE_MAX)
    return found if isinstance(found, dict) else {}
