"""The container edits of a leased GPU, from the host's CDI specifications.

Root's files in /etc/cdi and /var/run/cdi (`nvidia-ctk cdi generate` writes them)
list variables, device nodes, mounts and hooks of the runtime. Podman could apply
them only when it creates the container; the GPU is leased at its start.

Device nodes become bind mounts of the host's nodes, as with Podman's `--device`
without root: only root may create nodes.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable

from svc_helper import interpreter
from svc_helper.agent.calls import Failure
from svc_helper.agent.process import start
from svc_helper.wire.quick_typing import Any, NamedTuple

DIRECTORIES = ("/etc/cdi", "/var/run/cdi")  # the later one takes precedence
_REMEDY = (
    "an administrator generates it again with: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
)
_SPEC_MAX = 1024 * 1024
_JSON_MAX = 4 * 1024 * 1024  # of a YAML file with its aliases expanded
_FILES_MAX = 256
_ITEMS_MAX = 4096
_YAML_S = 10
_DEVICE_OPTIONS = ["slave", "nosuid", "noexec", "rw", "rbind"]  # as Podman uses
_STAGES = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
_KINDS = {"": None, "c": stat.S_IFCHR, "u": stat.S_IFCHR, "b": stat.S_IFBLK}


class Node(NamedTuple):
    """A device node as it must be in the container."""

    path: str
    kind: int  # S_IFCHR or S_IFBLK
    rdev: int


class Edits(NamedTuple):
    """The edits of devices, as parts of an OCI configuration; `nodes` by the device's name."""

    env: list[str]
    mounts: list[dict[str, Any]]
    hooks: dict[str, list[dict[str, Any]]]
    gids: list[int]
    nodes: dict[str, list[Node]]

    def as_json(self) -> dict[str, Any]:
        """The parts for hook.py."""
        return {"env": self.env, "mounts": self.mounts, "hooks": self.hooks, "gids": self.gids}


class _Broken(Exception):
    """A specification that cannot be used, with the reason."""


def resolve(devices: list[str]) -> Edits:
    """The edits of these devices (`nvidia.com/gpu=NAME`).

    Raises Failure: `conflict` for a device that no specification describes,
    `failed` for a specification that cannot be used.
    """
    edits = Edits([], [], {}, [], {})
    specs = _Specs()
    common: dict[str, list[Node]] = {}  # by file: the edits of all its devices are added once
    for device in devices:
        path, spec, entry = specs.find(device)
        try:
            if path not in common:
                common[path] = _add(edits, spec.get("containerEdits"))
            edits.nodes[device] = [*common[path], *_add(edits, entry.get("containerEdits"))]
        except _Broken as broken:
            raise Failure("failed", f"{path} does not fit this host: {broken}; {_REMEDY}") from None
    return edits


def missing(pid: int, nodes: dict[str, list[Node]]) -> list[str]:
    """The devices of which a node is missing in the container whose first process is pid."""
    return [device for device, needed in nodes.items() if not all(_is_present(pid, node) for node in needed)]


def _is_present(pid: int, node: Node) -> bool:
    try:
        found = os.lstat(f"/proc/{pid}/root{node.path}")
    except OSError:
        return False
    return stat.S_IFMT(found.st_mode) == node.kind and found.st_rdev == node.rdev


# --- specifications ----------------------------------------------------------------------------


class _Specs:
    """The specifications, each read at most once."""

    def __init__(self) -> None:
        self.read: dict[str, dict[str, Any]] = {}
        self.broken: dict[str, str] = {}

    def find(self, device: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """The path, the content and the entry of the specification that describes a device."""
        kind, _, name = device.partition("=")
        for directory in reversed(DIRECTORIES):
            found = [
                (path, spec, entry)
                for path in _files(directory)
                if (spec := self._load(path)).get("kind") == kind
                for entry in spec["devices"]
                if entry.get("name") == name
            ]
            if len(found) > 1:
                raise Failure("failed", f"{device} is described more than once in {directory}; {_REMEDY}")
            if found:
                return found[0]
        for path, why in self.broken.items():
            raise Failure("failed", f"{path} cannot be read as a CDI specification: {why}; {_REMEDY}")
        raise Failure("conflict", f"this host has no CDI device {device}")

    def _load(self, path: str) -> dict[str, Any]:
        if path not in self.read:
            try:
                self.read[path] = _load(path)
            except _Broken as broken:
                self.broken[path] = str(broken)
                self.read[path] = {"devices": []}
        return self.read[path]


def _files(directory: str) -> list[str]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [f"{directory}/{name}" for name in names if name.endswith((".json", ".yaml", ".yml"))][:_FILES_MAX]


def _load(path: str) -> dict[str, Any]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise _Broken(str(error.strerror)) from None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _SPEC_MAX:
            raise _Broken(f"it is not a regular file of at most {_SPEC_MAX >> 20} MiB")
        content = file.read(_SPEC_MAX) if path.endswith(".json") else _from_yaml(fd)
    try:
        spec = json.loads(content)
    except (ValueError, RecursionError):
        raise _Broken("it is not valid JSON") from None
    if not isinstance(spec, dict) or not isinstance(spec.get("kind"), str):
        raise _Broken("it lacks the kind of its devices")
    spec["devices"] = _objects(spec, "devices")
    return spec


def _from_yaml(fd: int) -> bytes:
    """A YAML file as JSON, by a child process: parsing YAML takes memory that the agent would keep."""
    result = os.memfd_create("svc-cdi")
    try:
        argv = interpreter.command("svc_helper.agent.containers.cdi_yaml")
        if start(argv, {}, {0: fd, 1: result}).finish(_YAML_S) != 0:
            raise _Broken("it is not valid YAML, or PyYAML is not installed")
        return os.pread(result, _JSON_MAX, 0)
    finally:
        os.close(result)


# --- container edits ----------------------------------------------------------------------------


def _add(edits: Edits, untrusted: Any) -> list[Node]:
    """Add one `containerEdits`, if there is one; returns its device nodes."""
    untrusted = {} if untrusted is None else untrusted
    if not isinstance(untrusted, dict):
        raise _Broken("containerEdits is not an object")
    edits.env.extend(_texts(untrusted, "env", lambda text: text.find("=") > 0))
    nodes = []
    for untrusted_node in _objects(untrusted, "deviceNodes"):
        node, mount = _node(untrusted_node)
        nodes.append(node)
        edits.mounts.append(mount)
    for untrusted_mount in _objects(untrusted, "mounts"):
        mount = _mount(untrusted_mount)
        edits.mounts.append(mount)
        nodes += _nodes_at(mount)
    for untrusted_hook in _objects(untrusted, "hooks"):
        stage = _text(untrusted_hook, "hookName", _STAGES.__contains__)
        edits.hooks.setdefault(stage, []).append(_hook(untrusted_hook))
    for gid in _items(untrusted, "additionalGids"):
        if type(gid) is not int or not 0 < gid < 2**31:
            raise _Broken("additionalGids contains an invalid group id")
        edits.gids.append(gid)
    return nodes


def _node(untrusted: dict[str, Any]) -> tuple[Node, dict[str, Any]]:
    path = _text(untrusted, "path", _is_path)
    host = _text(untrusted, "hostPath", _is_path) if untrusted.get("hostPath") else path
    kind = untrusted.get("type", "")
    if kind not in _KINDS:
        raise _Broken(f"{path} has an unknown type")
    try:
        found = os.stat(host)
    except OSError:
        raise _Broken(f"the device node {host} does not exist") from None
    if stat.S_IFMT(found.st_mode) not in (stat.S_IFCHR, stat.S_IFBLK):
        raise _Broken(f"{host} is not a device node")
    node = Node(path, stat.S_IFMT(found.st_mode), found.st_rdev)
    # Missing values are taken from the host; given ones must match: the driver may have changed.
    if (
        _KINDS[kind] not in (None, node.kind)
        or untrusted.get("major") not in (None, os.major(node.rdev))
        or untrusted.get("minor") not in (None, os.minor(node.rdev))
    ):
        raise _Broken(f"the device node {host} has another type or number now")
    mount = {"destination": path, "type": "bind", "source": host, "options": _DEVICE_OPTIONS}
    return node, mount


def _mount(untrusted: dict[str, Any]) -> dict[str, Any]:
    options = _texts(untrusted, "options", bool)
    kind = _text(untrusted, "type", bool) if untrusted.get("type") else "bind"
    if kind == "bind" and not {"bind", "rbind"} & set(options):
        options.append("rbind")
    return {
        "destination": _text(untrusted, "containerPath", _is_path),
        "type": kind,
        "source": _text(untrusted, "hostPath", bool),
        "options": options,
    }


def _nodes_at(mount: dict[str, Any]) -> list[Node]:
    """The device node that a mount provides, if any: some specifications list their nodes as mounts."""
    if mount["type"] != "bind":
        return []
    try:
        found = os.stat(mount["source"])
    except OSError:
        raise _Broken(f"{mount['source']} does not exist") from None
    if not stat.S_ISCHR(found.st_mode):
        return []
    return [Node(mount["destination"], stat.S_IFCHR, found.st_rdev)]


def _hook(untrusted: dict[str, Any]) -> dict[str, Any]:
    hook: dict[str, Any] = {"path": _text(untrusted, "path", _is_path)}
    for name in ("args", "env"):
        if texts := _texts(untrusted, name, bool):
            hook[name] = texts
    timeout = untrusted.get("timeout")
    if timeout is not None:
        if type(timeout) is not int or not 0 < timeout <= 3600:
            raise _Broken("the timeout of a hook is not a number of seconds")
        hook["timeout"] = timeout
    return hook


# --- types ---------------------------------------------------------------------------------------


def _is_path(text: str) -> bool:
    return text.startswith("/") and ".." not in text.split("/")


def _text(untrusted: dict[str, Any], name: str, fits: Callable[[str], bool]) -> str:
    value = untrusted.get(name)
    if not isinstance(value, str) or len(value) > 4096 or "\0" in value or not fits(value):
        raise _Broken(f"{name} is missing or invalid")
    return value


def _items(untrusted: dict[str, Any], name: str) -> list[Any]:
    value = untrusted.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > _ITEMS_MAX:
        raise _Broken(f"{name} is not a list of at most {_ITEMS_MAX} items")
    return value


def _objects(untrusted: dict[str, Any], name: str) -> list[dict[str, Any]]:
    items = _items(untrusted, name)
    if not all(isinstance(item, dict) for item in items):
        raise _Broken(f"{name} is not a list of objects")
    return items


def _texts(untrusted: dict[str, Any], name: str, fits: Callable[[str], bool]) -> list[str]:
    return [_text({name: item}, name, fits) for item in _items(untrusted, name)]
