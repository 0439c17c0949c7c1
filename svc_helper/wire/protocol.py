"""The wire format of app, helper and agent, and the closed table of verbs.

The root helper, the agents and the app's client (svc.helper) import it. Standard library only; it
packs, unpacks and checks. The argument types are in arguments.py; docs/helper-protocol.md describes
the protocol, and a test compares the verbs.

A call is one SOCK_SEQPACKET message, JSON of at most 64 KiB:

    {"verb": "ctr.start", "user": "demo", "rid": "01J...", "timeout_s": 60, "args": {...}}

with the descriptors [reply, peer?]: `reply` is one end of a new SEQPACKET pair, the call's reply path;
`peer` is the caller's own connection, on the unix pair only. On the reply path the agent (or the helper,
for its own verbs and for refusals) sends:

    {"progress": {...}}                                any number of times
    {"ok": true, "data": {...}}                        once, last; may carry one descriptor
    {"ok": false, "code": "...", "message": "..."}     once, last; code from CODES; perhaps "engine"
    {"memfd": 123456}                                  instead of a last message over 64 KiB: its JSON
                                                       is in the sealed memfd that is passed along

and the app {"cancel": true}. The end of the reply path without a last message means that the process
serving the call exited.

For a verb with a file (INPUT) the app puts {"input": true} with one descriptor on the reply path before
it sends the call, past the root helper; for `fs.entries`, `fs.read`, `fs.archive` and `ctr.logs`
{"output": true} with one end of a data stream (a pair of stream sockets). `fs.write` has its data stream
as input. With a data stream the agent sends one progress message and continues after the app's {"go": ...}
or, for `fs.write`, {"commit": count}. `ctr.follow`, `ctr.pipe`, `terminal.attach` and `terminal.open` with
"attach" have {"output": true} with one end of a pair of message sockets, for the frames of log_frames.py
and terminal_frames.py; `port.connect` with one end of a pair of stream sockets, for the program's bytes.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import socket
import struct
from collections.abc import Callable, Sequence

from svc_helper.wire import limits, strict_json
from svc_helper.wire.arguments import (
    Check,
    argument_name,
    boolean,
    build_secret_id,
    cdi_device,
    container_id,
    container_path,
    env_name,
    file_path,
    image_id,
    image_ref,
    integer,
    listing,
    mapping,
    mount,
    one_of,
    operation_id,
    optional,
    part_name,
    record,
    registry,
    registry_host,
    request_id,
    resources,
    root_name,
    terminal_id,
    text,
    user_name,
    workspace_id,
)
from svc_helper.wire.arguments import ProtocolError as ProtocolError  # the same error for frames
from svc_helper.wire.quick_typing import Any, NamedTuple

MESSAGE_MAX = 64 * 1024
MEMFD_MAX = 4 * 1024 * 1024
FDS_MAX = 4
RIGHTS_MAX = 253  # SCM_MAX_FD: descriptors that the kernel passes with one message
BRACKETS_MAX = 65_536  # of one message: parsing 4 MiB of them holds the GIL for over a second
DEPTH_MAX = 8
SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW

# Replies other than success, with the codes of agent/podman/causes.py, which are told from an engine's words;
# svc/helper/replies.py maps each to an error class.
CODES = (
    "protocol",  # malformed, unknown or not allowed on this pair: a bug or an attack
    "refused",  # the helper does not act for this user or this peer
    "account",  # expired or locked by PAM
    "not_found",
    "conflict",
    "exists",  # the name is taken
    "forbidden",  # outside the user's permissions or outside a file root
    "too_large",
    "not_running",
    "too_many",  # of what a workspace may have
    "outdated",  # the workspace's shim is of an older release
    "image_missing",
    "registry",  # is not on the allowlist
    "storage_full",
    "build",  # an instruction of the Dockerfile failed
    "cancelled",
    "not_listening",  # no program of the workspace takes connections there
    "timeout",
    "unavailable",  # the agent, Podman or the account check does not respond
    "failed",
)


class Verb(NamedTuple):
    """One row: the side that performs it, the pairs that may call it, and its arguments."""

    name: str
    side: str  # "root" (the helper itself) or "agent" (the user's own process)
    pairs: frozenset[str]  # of unix, tls, worker, admin
    caller: str  # on the unix pair: "self", "self_or_admin" or "admin" must prove to be the caller
    args: dict[str, Check]
    max_timeout_s: int

    @property
    def ends(self) -> bool:
        """Whether it ends what runs and begins nothing: also for a user whose Linux account has expired."""
        return self.name in ("ctr.stop", "ctr.remove")


_ALL = frozenset({"unix", "tls", "worker", "admin", "supervisor"})
_APP = frozenset({"unix", "tls", "worker"})
_WORKER = frozenset({"worker"})
_BOTH = frozenset({"unix", "tls"})  # listeners
_ADMIN = frozenset({"admin"})
_WS = {"id": workspace_id}
_VALUE = text(limits.ENV_VALUE_MAX)
_ENV = mapping(env_name, _VALUE, limits.ENV_COUNT_MAX)
_ARGS_BYTES = limits.EXEC_ARGS_BYTES_MAX
_COMMAND = listing(text(_ARGS_BYTES), 1, limits.EXEC_ARGS_MAX, _ARGS_BYTES)
_ID = integer(0, limits.RUN_AS_MAX)
_UID = integer(1, 2**32 - 2)
_RUN_AS = record(uid=_ID, gid=_ID)
_NETWORK = optional(record(name=part_name, alias=part_name))
_CREATE = {
    **_WS, "image": image_ref, "name": text(64), "env": _ENV, "resources": resources,
    "command": optional(listing(_VALUE, 1, limits.EXEC_ARGS_MAX, _ARGS_BYTES)),
    "run_as": optional(_RUN_AS), "mounts": listing(mount, 0, limits.MOUNTS_MAX),
    "network": _NETWORK,
}  # fmt: skip
_LAUNCHER = {**_WS, "name": part_name}
_WATCHED = record(name=part_name, port=optional(integer(1, 65535)))
_LOG = {
    **_WS, "launcher": optional(part_name), "tail": optional(integer(0, limits.LOG_TAIL_MAX)),
    "start": optional(record(number=integer(0, 10**15), offset=integer(0, limits.SIZE_MAX))),
    "skip": integer(0, limits.SIZE_MAX),
}  # fmt: skip
_SIZE = {"cols": integer(1, limits.TERMINAL_SIDE_MAX), "rows": integer(1, limits.TERMINAL_SIDE_MAX)}
_HOST_PORT = integer(1, 65535)
_ACCESS = one_of(limits.ACCESS_OWNER, limits.ACCESS_HOST)
_FILE = {"root": root_name, "path": file_path}
_SECRET = record(id=build_secret_id, size=integer(0, limits.BUILD_SECRETS_BYTES_MAX))
_SECRET_IDS = listing(build_secret_id, 1, limits.BUILD_SECRETS_MAX)
_IMAGES = limits.DOCKERFILE_IMAGES_MAX + 1  # what a Dockerfile may come from, and what it makes

# fmt: off
VERBS = {verb.name: verb for verb in (
    # name                 side     pairs    caller           arguments                                seconds
    Verb("helper.ping",      "root",  _ALL,    "self",          {},                                       5),
    Verb("account.check",    "root",  _BOTH,   "self",          {},                                      15),
    Verb("account.ensure",   "root",  _ADMIN,  "admin",         {"administrator": boolean},              60),
    Verb("account.mark",     "root",  _ADMIN,  "admin",         {"administrator": boolean},              15),
    Verb("account.forget",   "root",  _ADMIN,  "admin",         {},                                      15),
    Verb("account.clear",    "root",  _ADMIN,  "admin",
         {"uid": _UID, "image_refs": listing(image_ref, 0, limits.IMAGES_AT_ONCE)},                      600),
    Verb("account.move",     "root",  _ADMIN,  "admin",         {"uid": _UID},                        86400),
    Verb("registries.write", "root",  _ADMIN,  "admin",         {"registries": listing(registry, 0, 64)}, 15),
    Verb("registries.login", "root",  _ADMIN,  "admin",
         {"host": registry_host, "username": text(255), "password": text(limits.ENV_VALUE_MAX)},         15),
    Verb("registries.logout", "root", _ADMIN,  "admin",         {"host": registry_host},                  15),
    Verb("ctr.create",       "agent", _APP,    "self",          _CREATE,                                 60),
    Verb("ctr.prepare",      "agent", _APP,    "self",          _CREATE,                                 60),
    Verb("ctr.replace",      "agent", _APP,    "self",          {**_WS, "container_id": container_id},   60),
    Verb("ctr.start",        "agent", _APP,    "self",
         {**_WS, "env": optional(_ENV), "resources": optional(resources),
          "devices": optional(listing(cdi_device, 0, limits.GPUS_MAX)), "network": _NETWORK},            60),
    Verb("ctr.stop",         "agent", _APP,    "self_or_admin", {**_WS, "grace_s": integer(0, 60)},     120),
    Verb("ctr.remove",       "agent", _APP,    "self_or_admin", {**_WS},                                 60),
    Verb("ctr.inspect",      "agent", _APP,    "self",          {**_WS},                                 15),
    Verb("ctr.list",         "agent", _WORKER, "self",          {"ends_agent": optional(boolean)},       15),
    Verb("ctr.watch",        "agent", _WORKER, "self",          {**_WS},                                 15),
    Verb("ctr.logs",         "agent", _APP,    "self",
         {**_LOG, "most": optional(integer(1, limits.LOG_BYTES_MAX)), "times": optional(boolean)},    86400),
    Verb("ctr.follow",       "agent", _BOTH,   "self",          _LOG,                                    15),
    Verb("ctr.stats",        "agent", _APP,    "self",          {**_WS, "sample_ms": integer(0, 5000)},  15),
    Verb("ctr.exec",         "agent", _BOTH,   "self",
         {**_WS, "command": optional(_COMMAND), "timeout_s": integer(1, limits.EXEC_TIMEOUT_MAX_S)},    620),
    Verb("ctr.pipe",         "agent", _BOTH,   "self",
         {**_WS, "command": optional(_COMMAND), "timeout_s": integer(1, limits.EXEC_TIMEOUT_MAX_S)},    620),
    Verb("terminal.open",    "agent", _BOTH,   "self",
         {**_WS, **_SIZE, "command": optional(_COMMAND), "attach": boolean},                             45),
    Verb("terminal.attach",  "agent", _BOTH,   "self",
         {**_WS, **_SIZE, "terminal": terminal_id},                                                     15),
    Verb("terminal.list",    "agent", _BOTH,   "self",          {**_WS},                                 15),
    Verb("terminal.close",   "agent", _BOTH,   "self",          {**_WS, "terminal": terminal_id},        15),
    Verb("launcher.list",    "agent", _APP,    "self",          {**_WS},                                 15),
    Verb("launcher.start",   "agent", _APP,    "self",
         {**_LAUNCHER, "command": _COMMAND, "env": mapping(env_name, _VALUE, limits.ENV_COUNT_MAX + 1),
          "watch_ms": integer(0, limits.WATCH_MS_MAX)},                                                  60),
    Verb("launcher.stop",    "agent", _APP,    "self",          {**_LAUNCHER, "grace_s": integer(0, 60)}, 75),
    Verb("launcher.watch",   "agent", _APP,    "self",
         {**_WS, "launchers": listing(_WATCHED, 1, limits.LAUNCHERS_WATCHED_MAX),
          "watch_ms": integer(0, limits.WATCH_MS_MAX)},                                                  15),
    Verb("launcher.watch_end", "agent", _WORKER, "self",        _LAUNCHER,                               15),
    Verb("launcher.token",   "agent", _BOTH,   "self",
         {**_LAUNCHER, "file": optional(container_path), "pattern": optional(text(limits.TOKEN_PATTERN_MAX))},
                                                                                                        15),
    Verb("port.open",        "agent", _APP,    "self",
         {**_WS, "host_port": _HOST_PORT, "container_port": integer(1, 65535), "access": _ACCESS},      30),
    Verb("port.close",       "agent", _APP,    "self",          {**_WS, "host_port": _HOST_PORT},        15),
    Verb("port.list",        "agent", _APP,    "self",          {**_WS},                                 15),
    Verb("port.connect",     "agent", _BOTH,   "self",          {**_WS, "container_port": integer(1, 65535)},
                                                                                      limits.CONNECT_S + 20),
    Verb("fs.roots",         "agent", _BOTH,   "self",          {},                                      15),
    Verb("fs.list",          "agent", _BOTH,   "self",
         {**_FILE, "offset": integer(0, 10**9), "limit": integer(1, limits.FILES_LISTED_MAX)},            60),
    Verb("fs.entries",       "agent", _BOTH,   "self",
         {**_FILE, "offset": integer(0, 10**9)},                                                      3600),
    Verb("fs.read",          "agent", _BOTH,   "self",          {**_FILE},                            86400),
    Verb("fs.write",         "agent", _BOTH,   "self",
         {**_FILE, "size": optional(integer(0, limits.SIZE_MAX)), "replace": boolean},                 86400),
    Verb("fs.archive",       "agent", _BOTH,   "self",
         {**_FILE, "members_max": integer(1, 10**9)},                                                86400),
    Verb("fs.mkdir",         "agent", _BOTH,   "self",          {**_FILE, "parents": boolean},           15),
    Verb("fs.move",          "agent", _BOTH,   "self",
         {**_FILE, "to": file_path, "replace": boolean},                                                15),
    Verb("fs.remove",        "agent", _BOTH,   "self",          {**_FILE, "recursive": boolean},        600),
    Verb("image.inspect",    "agent", _APP,    "self",          {"image": image_ref},                    15),
    Verb("image.list",       "agent", _APP,    "self",          {},                                      15),
    Verb("image.pull",       "agent", _WORKER, "self",          {"image": image_ref},                604800),
    Verb("image.preflight",  "agent", _APP,    "self",
         {"images": listing(image_ref, 1, _IMAGES)},                                   limits.PREFLIGHT_S),
    Verb("image.build",      "agent", _WORKER, "self",
         {"image": image_ref, "bases": listing(image_ref, 0, _IMAGES), "triggers": boolean,
          "build_args": optional(mapping(argument_name, _VALUE, limits.BUILD_ARGS_MAX)),
          "secrets": optional(record(operation=operation_id, ids=_SECRET_IDS))},                     604800),
    Verb("image.secrets",    "agent", _APP,    "self",
         {"operation": operation_id, "sizes": listing(_SECRET, 0, limits.BUILD_SECRETS_MAX)},         15),
    Verb("image.map",        "agent", _APP,    "self",
         {"image": image_ref, "run_as": _RUN_AS, "copy": boolean},                                     7200),
    Verb("image.usage",      "agent", _APP,    "self",          {},                                      60),
    Verb("image.remove",     "agent", _APP,    "self",          {"image": image_ref},                    60),
    Verb("image.prune",      "agent", _APP,    "self",
         {"ids": listing(image_id, 0, limits.IMAGES_AT_ONCE), "volumes": boolean},                     120),
    Verb("disk.usage",       "agent", _WORKER, "self",
         {"seconds": integer(1, limits.DISK_USAGE_S)},                            limits.DISK_USAGE_S + 30),
)}
# fmt: on


# --- calls ---------------------------------------------------------------------------


class Call(NamedTuple):
    """A call that matches the table."""

    verb: Verb
    user: str | None  # None only for the verbs of NO_USER
    rid: str
    timeout_s: int
    args: dict[str, Any]


NO_USER = frozenset(
    {"helper.ping", "registries.write", "registries.login", "registries.logout"}
)  # for the host, not for an account
INPUT = frozenset({"image.build", "image.secrets", "fs.write"})  # these are given a file, or a line to read
# `ctr.exec` and `ctr.pipe` with a command of null are given one too: the words, each with a NUL behind it.
_ENVELOPE = frozenset({"verb", "user", "rid", "timeout_s", "args"})


def check_call(untrusted: dict[str, Any], pair_name: str) -> Call:
    """Check a received message against the table and its pair; raises ProtocolError."""
    if set(untrusted) != _ENVELOPE:
        raise ProtocolError("wrong keys for a call")
    verb = VERBS.get(untrusted["verb"]) if type(untrusted["verb"]) is str else None
    if verb is None or pair_name not in verb.pairs:
        raise ProtocolError("unknown verb, or not allowed on this pair")
    user = optional(user_name)(untrusted["user"])
    if user is None and verb.name not in NO_USER:
        raise ProtocolError("no user")
    return Call(
        verb,
        user,
        request_id(untrusted["rid"]),
        integer(1, verb.max_timeout_s)(untrusted["timeout_s"]),
        record(**verb.args)(untrusted["args"]),
    )


# --- frames --------------------------------------------------------------------------


def decode(untrusted: bytes) -> dict[str, Any]:
    """The JSON object in a frame, held to strict_json's rules; raises ProtocolError for anything else."""
    if not untrusted or len(untrusted) > MEMFD_MAX:
        raise ProtocolError("empty or over-long message")
    try:
        return strict_json.load_object(untrusted, depth_max=DEPTH_MAX, brackets_max=BRACKETS_MAX)
    except strict_json.Malformed as error:
        raise ProtocolError(f"the message {error}") from None


def _pack(message: dict[str, Any]) -> bytes:
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        raise ProtocolError("not UTF-8, or not a number") from None


def encode(message: dict[str, Any]) -> bytes:
    """The frame of one message; raises ProtocolError when it is over MESSAGE_MAX."""
    frame = _pack(message)
    if len(frame) > MESSAGE_MAX:
        raise ProtocolError("message over 64 KiB")
    return frame


class Frame(NamedTuple):
    """A received message; the receiver closes its descriptors."""

    message: dict[str, Any]
    fds: list[int]
    uid: int | None  # the sender's, if the receiving end has SO_PASSCRED


def close_all(fds: Sequence[int]) -> None:
    """Close unwanted descriptors."""
    for fd in fds:
        os.close(fd)


def send(sock: socket.socket, message: dict[str, Any], fds: Sequence[int] = (), *, wait: bool = True) -> None:
    """Send one message with copies of `fds`; with wait=False a full queue raises BlockingIOError.

    The socket must have no timeout set, since Python would wait itself.
    """
    _send_frame(sock, encode(message), fds, wait)


def _send_frame(sock: socket.socket, frame: bytes, fds: Sequence[int], wait: bool) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([frame], rights, socket.MSG_NOSIGNAL | (0 if wait else socket.MSG_DONTWAIT))


# Room for every descriptor: the kernel closes the rest at once, which blocks for a lingering connection.
_ANCILLARY = socket.CMSG_SPACE(RIGHTS_MAX * 4) + socket.CMSG_SPACE(12)


Discard = Callable[[Sequence[int]], None]


def receive(sock: socket.socket, *, wait: bool = True, discard: Discard = close_all) -> Frame:
    """Receive one message; raises EOFError at the end, ProtocolError for a malformed frame.

    Descriptors are close-on-exec; those of a malformed frame go to `discard`. Only SO_PASSCRED
    distinguishes an empty message from the end.
    """
    flags = socket.MSG_CMSG_CLOEXEC | (0 if wait else socket.MSG_DONTWAIT)
    data, ancillary, got, _ = sock.recvmsg(MESSAGE_MAX, _ANCILLARY, flags)
    fds = array.array("i")
    uid = None
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
        elif (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
            uid = struct.unpack("i2I", content)[1]
    try:
        if not data and not ancillary:
            raise EOFError
        if got & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or len(fds) > FDS_MAX:
            raise ProtocolError("over-long message or too many descriptors")
        return Frame(decode(data), list(fds), uid)
    except (EOFError, ProtocolError):
        discard(fds)
        raise


def send_reply(
    sock: socket.socket, message: dict[str, Any], fds: Sequence[int] = (), *, wait: bool = True
) -> None:
    """Send a last message; over 64 KiB as a sealed memfd (first of the descriptors), at most MEMFD_MAX."""
    frame = _pack(message)
    if len(frame) <= MESSAGE_MAX:
        _send_frame(sock, frame, fds, wait)
        return
    if len(frame) > MEMFD_MAX:
        raise ProtocolError("answer over 4 MiB")
    memfd = os.memfd_create("svc-answer", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(memfd, "wb", buffering=0) as file:
        file.write(frame)
        fcntl.fcntl(memfd, fcntl.F_ADD_SEALS, SEALS | fcntl.F_SEAL_SEAL)
        _send_frame(sock, encode({"memfd": len(frame)}), [memfd, *fds], wait)


def receive_reply(sock: socket.socket, *, wait: bool = True, discard: Discard = close_all) -> Frame:
    """As receive(); for a last message in a memfd, its content in place of the message that announces it.

    The sender is a user's process, so the descriptor is hostile. The seals show that it is a memfd
    (reading never waits for a FUSE server) whose content cannot change; its size must be the announced one.
    """
    frame = receive(sock, wait=wait, discard=discard)
    if set(frame.message) != {"memfd"}:
        return frame
    try:
        untrusted_size = integer(1, MEMFD_MAX)(frame.message["memfd"])
        if not frame.fds:
            raise ProtocolError("the memfd is missing")
        message = decode(_read_sealed(frame.fds[0], untrusted_size))
        if set(message) == {"progress"}:  # unlimited in number, and each may take seconds to parse
            raise ProtocolError("a memfd for a progress message")
        return Frame(message, frame.fds[1:], frame.uid)
    except ProtocolError:
        discard(frame.fds[1:])
        raise
    finally:
        discard(frame.fds[:1])


def _read_sealed(untrusted_fd: int, size: int) -> bytes:
    try:
        seals = fcntl.fcntl(untrusted_fd, fcntl.F_GET_SEALS)
        if seals & SEALS != SEALS or os.fstat(untrusted_fd).st_size != size:
            raise ProtocolError("not a sealed memfd of the announced size")
        content = b""
        while len(content) < size:
            part = os.pread(untrusted_fd, size - len(content), len(content))
            if not part:
                break
            content += part
    except OSError:
        raise ProtocolError("not a memfd") from None
    return content
