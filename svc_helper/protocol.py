"""The wire between app, helper and agent, and the closed table of verbs.

Imported by the root helper, the user agents and the app's client (`svc.helper`):
standard library only, no behaviour beyond packing, unpacking and checking.
docs/helper-protocol.md describes the same in words; a test compares the verbs.

A call is one SOCK_SEQPACKET message, JSON of at most 64 KiB:

    {"verb": "ctr.start", "user": "demo", "rid": "01J...", "timeout_s": 60, "args": {...}}

with descriptors [reply, peer?]: `reply` is the far end of a fresh SEQPACKET
pair, the call's only reply path; `peer` is the caller's own connection, sent on
the unix pair only. On the reply path travel, from the agent (or from the helper
for its own verbs and for refusals):

    {"progress": {...}}                                any number of times
    {"ok": true, "data": {...}}                        once, last; may carry one descriptor
    {"ok": false, "code": "...", "message": "..."}     once, last; code from CODES
    {"memfd": 123456}                                  instead of a last message over 64 KiB:
                                                       its JSON is in the sealed memfd that comes along
and from the app {"cancel": true}. The end of the reply path without a last
message means that whoever held the call died.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import re
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

MESSAGE_MAX = 64 * 1024
MEMFD_MAX = 4 * 1024 * 1024
FDS_MAX = 4
DEPTH_MAX = 8

# Answers that are no success; svc/helper.py maps each to an error class.
CODES = (
    "protocol",  # malformed, unknown or not open on this pair: a bug or an attack
    "refused",  # the helper does not act for this user or this peer
    "account",  # not enrolled any more, expired or locked by PAM
    "not_found",
    "conflict",
    "not_running",
    "image_missing",
    "registry",  # the registry refused, is not allowed or does not answer
    "storage_full",
    "cancelled",
    "timeout",
    "unavailable",  # Podman does not answer
    "failed",
)


class ProtocolError(Exception):
    """A frame or an argument that no correct peer sends."""


# --- argument types: each takes the untrusted value and returns it checked ---------

Check = Callable[[Any], Any]


def _pattern(name: str, pattern: str, max_length: int) -> Check:
    compiled = re.compile(pattern)

    def check(untrusted: Any) -> str:
        if type(untrusted) is not str or len(untrusted) > max_length or not compiled.fullmatch(untrusted):
            raise ProtocolError(f"not {name}")
        return untrusted

    return check


def integer(low: int, high: int) -> Check:
    """A check for a whole number (a bool is none) from low to high."""

    def check(untrusted: Any) -> int:
        if type(untrusted) is not int or not low <= untrusted <= high:
            raise ProtocolError(f"not a number from {low} to {high}")
        return untrusted

    return check


def optional(inner: Check) -> Check:
    """A check that also lets null through."""
    return lambda untrusted: None if untrusted is None else inner(untrusted)


def boolean(untrusted: Any) -> bool:
    """A check for true or false."""
    if type(untrusted) is not bool:
        raise ProtocolError("not true or false")
    return untrusted


def listing(inner: Check, low: int, high: int, max_bytes: int = MESSAGE_MAX) -> Check:
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
    """A check for an object with exactly these keys (an optional() one may be left out)."""

    def check(untrusted: Any) -> dict[str, Any]:
        if type(untrusted) is not dict or not set(untrusted) <= set(fields):
            raise ProtocolError(f"not an object of {sorted(fields)}")
        return {name: inner(untrusted.get(name)) for name, inner in fields.items()}

    return check


def mapping(key: Check, value: Check, max_items: int) -> Check:
    """A check for an object of at most max_items checked pairs."""

    def check(untrusted: Any) -> dict[str, Any]:
        if type(untrusted) is not dict or len(untrusted) > max_items:
            raise ProtocolError(f"not an object of at most {max_items} items")
        return {key(name): value(item) for name, item in untrusted.items()}

    return check


def text(max_length: int) -> Check:
    """A check for a string without NUL, encodable, of at most max_length characters."""

    def check(untrusted: Any) -> str:
        if type(untrusted) is not str or len(untrusted) > max_length or "\0" in untrusted:
            raise ProtocolError(f"not a text of at most {max_length} characters")
        try:
            untrusted.encode()
        except UnicodeEncodeError:
            raise ProtocolError("not a UTF-8 text") from None
        return untrusted

    return check


user_name = _pattern("a user name", r"[a-z_][a-z0-9_-]{0,31}", 32)
request_id = _pattern("a request id", r"[A-Za-z0-9_-]{1,64}", 64)
workspace_id = _pattern("a workspace id", r"ws-[0-9a-z]{8}", 11)
container_id = _pattern("a container id", r"[0-9a-f]{64}", 64)
env_name = _pattern("a variable name", r"[A-Za-z_][A-Za-z0-9_]{0,63}", 64)
# host[:port]/path[:tag][@sha256:digest]; never a transport ("dir:/"), never an option.
image_ref = _pattern(
    "an image reference",
    r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)+"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    255,
)
registry_host = _pattern("a registry host", r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?", 255)
registry_path = _pattern("a path prefix", r"(?:[a-z0-9._-]+/?)*", 255)
cdi_device = _pattern("a CDI device name", r"nvidia\.com/gpu=[A-Za-z0-9:-]{1,64}", 96)

resources = record(
    cpu_limit=optional(integer(1, 1024 * 1000)),  # thousandths of a core
    memory_bytes=optional(integer(4 * 1024**2, 2**50)),
    shm_bytes=optional(integer(64 * 1024, 2**50)),
    pids_limit=optional(integer(1, 4_000_000)),
)


class Verb(NamedTuple):
    """One row: which side does it, which pairs may ask, whether the peer must be an administrator, its arguments."""

    name: str
    side: str  # "root" (the helper itself) or "agent" (the user's own process)
    doors: frozenset[str]  # of unix, tcp, worker, admin
    who: str  # "self", "self_or_admin" or "admin": whose peer proof is enough on the unix pair
    args: dict[str, Check]
    max_timeout_s: int


_ALL = frozenset({"unix", "tcp", "worker", "admin"})
_APP = frozenset({"unix", "tcp", "worker"})
_WORKER = frozenset({"worker"})
_HOST = frozenset({"unix", "admin"})
_WS = {"id": workspace_id}

# fmt: off
VERBS = {verb.name: verb for verb in (
    # name              side     doors    who              arguments                                    seconds
    Verb("helper.ping",  "root",  _ALL,    "self",          {},                                           5),
    Verb("account.ensure", "root", frozenset({"admin"}), "admin", {"administrator": boolean},            60),
    Verb("account.mark", "root",  _HOST,   "admin",         {"administrator": boolean},                  15),
    Verb("account.forget", "root", frozenset({"admin"}), "admin", {},                                    15),
    Verb("registries.write", "root", _HOST, "admin",
         {"registries": listing(record(host=registry_host, path_prefix=registry_path, insecure=boolean), 0, 64)}, 15),
    Verb("ctr.create",   "agent", _APP,    "self",
         {**_WS, "image": image_ref, "name": text(64), "command": optional(listing(text(4096), 1, 256, 48 * 1024)),
          "env": mapping(env_name, text(4096), 64), "resources": resources,
          "run_as": optional(record(uid=integer(0, 65535), gid=integer(0, 65535))),
          "devices": listing(cdi_device, 0, 64)},                                                        60),
    Verb("ctr.start",    "agent", _APP,    "self",          {**_WS},                                     60),
    Verb("ctr.stop",     "agent", _APP,    "self_or_admin", {**_WS, "grace_s": integer(0, 60)},          120),
    Verb("ctr.remove",   "agent", _APP,    "self_or_admin", {**_WS},                                     60),
    Verb("ctr.inspect",  "agent", _APP,    "self",          {**_WS},                                     15),
    Verb("ctr.list",     "agent", _WORKER, "self",          {},                                          15),
    Verb("ctr.watch",    "agent", _WORKER, "self",          {**_WS},                                     15),
    Verb("ctr.logs",     "agent", _APP,    "self",          {**_WS, "tail": integer(1, 10_000)},         15),
    Verb("ctr.exec",     "agent", frozenset({"unix", "tcp"}), "self",
         {**_WS, "command": listing(text(48 * 1024), 1, 256, 48 * 1024), "timeout_s": integer(1, 600)},  620),
    Verb("image.inspect", "agent", _APP,   "self",          {"image": image_ref},                        15),
    Verb("image.list",   "agent", _APP,    "self",          {},                                          15),
    Verb("image.pull",   "agent", _WORKER, "self",          {"image": image_ref},                        7 * 86400),
)}
# fmt: on


# --- frames --------------------------------------------------------------------------


def _no_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ProtocolError("a key twice")
    return made


def _no_constant(name: str) -> Any:
    raise ProtocolError(f"{name} is no number")


def decode(untrusted: bytes) -> dict[str, Any]:
    """One JSON object out of a frame; raises ProtocolError for anything else (depth over 8, NaN, a key twice)."""
    if not untrusted or len(untrusted) > MEMFD_MAX:
        raise ProtocolError("empty or over-long message")
    depth = deepest = 0
    for byte in untrusted:  # brackets in strings count too: a stricter bound, and no recursion
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    if deepest > 64:
        raise ProtocolError("too deep")
    try:
        value = json.loads(untrusted, object_pairs_hook=_no_twice, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ProtocolError("not JSON") from None
    if type(value) is not dict:
        raise ProtocolError("not an object")
    return value


def encode(message: dict[str, Any]) -> bytes:
    """The frame of one message; raises ProtocolError when it is over MESSAGE_MAX."""
    frame = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    if len(frame) > MESSAGE_MAX:
        raise ProtocolError("message over 64 KiB")
    return frame
