"""CDI names of the GPUs in the installed specifications, and whether these match the running driver.

"CDI names resolved from the installed spec, drift between driver and spec
detected with its remedy". A container gets a GPU only by such a name; a GPU without
one, or with missing device nodes, is not leased. The files belong to root and are
only read here.
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from svc.domain.gpus.gpus import Gpu, Hardware

DIRECTORIES = ("/etc/cdi", "/var/run/cdi")  # Podman's defaults; later ones take precedence
KIND = "nvidia.com/gpu"
REMEDY = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
DOCTOR = "sudo svc admin doctor"
FILE_MAX = 4 * 1024 * 1024

_NODE = re.compile(r"/dev/nvidia([0-9]{1,3})")
_LIBRARY = re.compile(r"/lib(?:cuda|nvidia-ml|nvidia-ptxjitcompiler)\.so\.([0-9]{1,4}(?:\.[0-9]{1,4}){1,2})$")


class State(NamedTuple):
    """Whether every GPU can be leased; if not, the problem and the command that fixes it.

    `names` has the CDI name (nvidia.com/gpu=0) of each GPU that can, by uuid.
    """

    ready: bool
    problem: str | None
    remedy: str | None
    names: dict[str, str]


class _Node(NamedTuple):
    """A device node: its path in the container and its path on the host."""

    path: str
    host_path: str


class _Device(NamedTuple):
    """A device of a specification: its name, its device nodes and the host paths of its mounts."""

    name: str
    nodes: list[_Node]
    mounts: list[str]


class _NoSpecificationError(Exception):
    """A file cannot be parsed as a CDI specification."""


def state(hardware: Hardware) -> State:
    """Compare the installed specifications with these GPUs."""
    leasable = [gpu for gpu in hardware.gpus if gpu.leasable]
    if hardware.unread:
        return State(False, hardware.unread, DOCTOR, {})
    if not leasable:
        return State(True, None, None, {})
    devices, broken = _installed()
    if not devices:
        why = broken or f"no CDI specification of {KIND} in {' or '.join(DIRECTORIES)}"
        return State(False, why, REMEDY, {})
    other = _other_driver(devices, hardware.driver)
    if other:
        return State(
            False,
            f"the CDI specification is for driver {other}, but {hardware.driver} is running",
            REMEDY,
            {},
        )
    names: dict[str, str] = {}
    problems = []
    for gpu in leasable:
        device = _device_of(gpu, devices)
        nodes = [node.host_path for node in device.nodes] if device else []
        missing = next((path for path in nodes if not _is_device(path)), None)
        if device is None:
            problems.append(f"the CDI specification has no device for {gpu.uuid}")
        elif missing:
            problems.append(f"{missing} of the CDI device {KIND}={device.name} is missing")
        else:
            names[gpu.uuid] = f"{KIND}={device.name}"
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return State(False, problems[0] + more, REMEDY, names)
    return State(True, None, None, names)


def _device_of(gpu: Gpu, devices: dict[str, _Device]) -> _Device | None:
    """The device named by the uuid, else by a number if its device node is this GPU's own."""
    if gpu.uuid in devices:
        return devices[gpu.uuid]
    if gpu.minor is None:
        return None
    form = re.compile(r"[0-9]{1,3}" if gpu.instance is None else rf"[0-9]{{1,3}}:{gpu.instance}")
    for device in devices.values():
        if form.fullmatch(device.name) and _minors(device) == {gpu.minor}:
            return device
    return None


def _minors(device: _Device) -> set[int]:
    found = (_NODE.fullmatch(node.host_path) or _NODE.fullmatch(node.path) for node in device.nodes)
    return {int(match[1]) for match in found if match}


def _other_driver(devices: dict[str, _Device], driver: str | None) -> str | None:
    """The driver version of the specification's libraries, if it differs from the running one."""
    versions = {
        match[1] for device in devices.values() for path in device.mounts if (match := _LIBRARY.search(path))
    }
    return min(versions) if driver and versions and driver not in versions else None


def _is_device(path: str) -> bool:
    try:
        return stat.S_ISCHR(os.stat(path).st_mode)
    except OSError:
        return False


# --- the files --------------------------------------------------------------------------------


_read_files: dict[
    str, tuple[tuple[int, ...], dict[str, _Device]]
] = {}  # by path: the file's identity and its devices


def _installed() -> tuple[dict[str, _Device], str | None]:
    """The devices by name, each with the edits common to its file; and the error of an unreadable file."""
    devices: dict[str, _Device] = {}
    broken = None
    for path in _paths():
        try:
            devices |= _devices_in(path)
        except _NoSpecificationError as error:
            broken = f"{path} is not a valid CDI specification: {error}"
    return devices, broken


def _paths() -> Iterator[str]:
    for directory in DIRECTORIES:
        try:
            names = sorted(os.listdir(directory))
        except OSError:
            continue
        for name in names:
            if name.endswith((".json", ".yaml", ".yml")):
                yield os.path.join(directory, name)


def _devices_in(path: str) -> dict[str, _Device]:
    """The devices in a file; it is parsed again only after a change, since YAML is slow."""
    try:
        status = os.stat(path)
        identity = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if path not in _read_files or _read_files[path][0] != identity:
            _read_files[path] = (identity, dict(_parsed(path)))
        return _read_files[path][1]
    except OSError as error:
        raise _NoSpecificationError(error.strerror) from None


def _parsed(path: str) -> Iterator[tuple[str, _Device]]:
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read(FILE_MAX)
    try:
        document = json.loads(text) if path.endswith(".json") else _yaml(text)
        if document.get("kind") != KIND:
            return
        common = _edits(document)
        for device in document["devices"]:
            own = _edits(device)
            name = str(device["name"])
            yield name, _Device(name, common.nodes + own.nodes, common.mounts + own.mounts)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _NoSpecificationError(f"{type(error).__name__}: {str(error)[:200]}") from None


def _yaml(text: str) -> Any:
    import yaml  # imported late: takes milliseconds, and only hosts with GPUs have such files

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  both are safe
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _edits(part: dict[str, Any]) -> _Device:
    """The device nodes and mounts of a part of the file; its name is empty."""
    edits = part.get("containerEdits") or {}
    return _Device(
        "",
        [
            _Node(str(node["path"]), str(node.get("hostPath") or node["path"]))
            for node in edits.get("deviceNodes") or []
        ],
        [str(mount["hostPath"]) for mount in edits.get("mounts") or []],
    )
