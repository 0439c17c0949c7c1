"""The types of a call's arguments: each takes an untrusted value and returns it checked.

For the table of verbs in protocol.py. Any other value raises ProtocolError, whose text never
repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from svc_helper.wire import limits
from svc_helper.wire.quick_typing import Any


class ProtocolError(Exception):
    """A malformed frame or argument."""


Check = Callable[[Any], Any]


def _pattern(name: str, pattern: str, max_length: int) -> Check:
    """A check for a string that matches; compiled at its first use, since few of them are used at all."""

    def check(untrusted: Any) -> str:
        if type(untrusted) is not str or len(untrusted) > max_length or not re.fullmatch(pattern, untrusted):
            raise ProtocolError(f"not {name}")
        return untrusted

    return check


def integer(low: int, high: int) -> Check:
    """A check for a whole number, not a bool, from low to high."""

    def check(untrusted: Any) -> int:
        if type(untrusted) is not int or not low <= untrusted <= high:
            raise ProtocolError(f"not a number from {low} to {high}")
        return untrusted

    return check


def optional(inner: Check) -> Check:
    """A check that also accepts null."""
    return lambda untrusted: None if untrusted is None else inner(untrusted)


def boolean(untrusted: Any) -> bool:
    """A check for true or false."""
    if type(untrusted) is not bool:
        raise ProtocolError("not true or false")
    return untrusted


def one_of(*values: str) -> Check:
    """A check for one of these strings."""

    def check(untrusted: Any) -> str:
        if type(untrusted) is not str or untrusted not in values:
            raise ProtocolError(f"not one of {', '.join(values)}")
        return untrusted

    return check


def listing(inner: Check, low: int, high: int, max_bytes: int = 64 * 1024) -> Check:
    """A check for a list of low to high items, strings together at most max_bytes."""

    def check(untrusted: Any) -> list[Any]:
        if type(untrusted) is not list or not low <= len(untrusted) <= high:
            raise ProtocolError(f"not a list of {low} to {high} items")
        items = [inner(item) for item in untrusted]
        if sum(len(item.encode()) for item in items if isinstance(item, str)) > max_bytes:
            raise ProtocolError("list too long")
        return items

    return check


def record(**fields: Check) -> Check:
    """A check for an object with exactly these keys; an optional() one may be missing."""

    def check(untrusted: Any) -> dict[str, Any]:
        if type(untrusted) is not dict or not set(untrusted) <= set(fields):
            raise ProtocolError(f"not an object of {sorted(fields)}")
        return {name: inner(untrusted.get(name)) for name, inner in fields.items()}

    return check


def mapping(key: Check, value: Check, max_items: int) -> Check:
    """A check for an object of at most max_items pairs."""

    def check(untrusted: Any) -> dict[str, Any]:
        if type(untrusted) is not dict or len(untrusted) > max_items:
            raise ProtocolError(f"not an object of at most {max_items} items")
        return {key(name): value(item) for name, item in untrusted.items()}

    return check


def text(max_length: int) -> Check:
    """A check for a string without NUL, encodable, of at most max_length characters."""

    def check(untrusted: Any) -> str:
        if type(untrusted) is not str or len(untrusted) > max_length or "\0" in untrusted:
            raise ProtocolError(f"not a string of at most {max_length} characters")
        try:
            untrusted.encode()
        except UnicodeEncodeError:
            raise ProtocolError("not a UTF-8 string") from None
        return untrusted

    return check


user_name = _pattern("a user name", limits.USER_NAME, limits.USER_NAME_MAX)
request_id = _pattern("a request id", r"[A-Za-z0-9_-]{1,64}", 64)
workspace_id = _pattern("a workspace id", r"ws-[0-9a-z]{8}", 11)
operation_id = _pattern("an operation id", r"op-[0-9a-z]{8}", 11)
build_secret_id = _pattern("the id of a build's secret", limits.BUILD_SECRET_ID, 63)
terminal_id = _pattern("a terminal id", limits.TERMINAL_ID, 8)
part_name = _pattern("a name", limits.SLUG, 63)
container_id = _pattern("a container id", r"[0-9a-f]{64}", 64)
env_name = _pattern("a variable name", limits.ENV_NAME, 128)
argument_name = _pattern("the name of a build argument", limits.ARGUMENT_NAME, 64)
image_ref = _pattern("an image reference", limits.IMAGE_REF, limits.IMAGE_REF_MAX)
registry_host = _pattern("a registry host", limits.REGISTRY_HOST, 255)
registry_path = _pattern("a path prefix", limits.REGISTRY_PATH, 255)
image_id = _pattern("an image id", r"[0-9a-f]{64}", 64)
container_id = _pattern("a container id", r"[0-9a-f]{64}", 64)
root_name = _pattern("a file root's name", r"[^\W\d]\w{0,63}", 64)
# Inside a container, never on the host: absolute, without empty parts, "." and "..".
container_path = _pattern(
    "a path in a container", r"(?:/(?!\.{1,2}(?:/|\Z))[^/\x00-\x1f\x7f\ud800-\udfff]+)+", 255
)
_ENCODED = re.compile(r"(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})*")
_ESCAPE = re.compile(r"%(..)")


def path_bytes(encoded: str) -> bytes:
    """The bytes of a path that file_path() accepts."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), encoded).encode("latin-1")


def path_text(path: bytes) -> str:
    """A path in the form of file_path(): every byte but letters, digits and -._~/ as %XX."""
    if not path.translate(None, _PLAIN_BYTES):
        return path.decode("ascii")
    return "".join(_PLAIN.get(byte) or f"%{byte:02X}" for byte in path)


_PLAIN = {ord(c): c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/"}
_PLAIN_BYTES = bytes(_PLAIN)


def file_path(untrusted: Any) -> str:
    """A check for a path below a file root, its bytes percent-encoded in the canonical way.

    "" is the root itself. No part may be empty, "." or "..", contain a NUL or exceed 255 bytes.
    """
    if (
        type(untrusted) is not str
        or len(untrusted) > 3 * limits.FILE_PATH_MAX
        or not _ENCODED.fullmatch(untrusted)
    ):
        raise ProtocolError("not a path below a file root")
    path = path_bytes(untrusted)
    parts = path.split(b"/") if path else []
    if len(path) > limits.FILE_PATH_MAX or b"\0" in path or path_text(path) != untrusted:
        raise ProtocolError("not a path below a file root")
    if any(part in (b"", b".", b"..") or len(part) > limits.FILE_NAME_MAX for part in parts):
        raise ProtocolError("not a path below a file root")
    return untrusted


cdi_device = _pattern("a CDI device name", r"nvidia\.com/gpu=[A-Za-z0-9:-]{1,64}", 96)

resources = record(
    cpu_limit=optional(integer(1, limits.CPU_MAX * 1000)),  # thousandths of a core
    memory_bytes=optional(integer(limits.MEMORY_MIN, limits.SIZE_MAX)),
    shm_bytes=optional(integer(limits.SHM_MIN, limits.SIZE_MAX)),
    pids_limit=optional(integer(1, limits.PIDS_MAX)),
)
mount = record(root=root_name, path=container_path, read_only=boolean)
registry = record(host=registry_host, path_prefix=registry_path, insecure=boolean)
