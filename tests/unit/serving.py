"""What tests of domain and web share: a real helper client, its far end answering from a table."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sqlite3
import struct
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from unit import filing

from svc.db import migrate
from svc.db.connect import database, write
from svc.domain.accounts import users
from svc.domain.principal import Caller
from svc.helper.helper import Helper
from svc.host.ids import now
from svc_helper.wire import log_frames, protocol

IMAGE = "registry.example/team/base:1"
CONTAINER = "c" * 64
DIGEST = "sha256:" + "d" * 64
MISSING = {"present": False, "image_id": None, "digest": None, "size_bytes": None}


@cache
def _migrated() -> bytes:
    """A fresh database's bytes, made once: the same for every test."""
    with tempfile.NamedTemporaryFile(suffix=".db") as file:
        connection = sqlite3.connect(file.name, isolation_level=None)
        migrate.apply(connection)
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.close()
        return Path(file.name).read_bytes()


def copy_of_migrated(path: str) -> str:
    """A fresh database at this path, which is returned."""
    Path(path).write_bytes(_migrated())
    return path


TERMINAL = {
    "id": "t-4k2m9x", "title": "", "command": None, "cols": 80, "rows": 24, "viewers": 1, "state": "running",
    "exit_code": None, "opened_at": "2025-01-02T03:04:05Z", "active_at": "2025-01-02T03:04:05Z",
}  # fmt: skip

ROW = b"2025-01-02T03:04:05.123456789+00:00 stdout F "  # the head of a row of output


def _viewer_of(reply: socket.socket) -> socket.socket:
    """The shim's end of a viewer, which came before the call."""
    frame = protocol.receive(reply)
    assert frame.message == {"output": True}
    return socket.socket(fileno=frame.fds[0])


class Given(NamedTuple):
    """An answer that is a descriptor, which is closed here then."""

    fd: int


class FarEnd:
    """The other end of one pair: checks each call as the helper does, records it, answers from a table.

    An entry of `answers` is a dict (the data), a string (a code of the protocol),
    None (the reply path is closed without a word), a list (messages on the way,
    then one of these) or a function of the call.
    """

    def __init__(self, listener: str) -> None:
        self.listener = listener
        self.calls: list[protocol.Call] = []
        self.holding = threading.Event()
        self.fd_counts: list[int] = []
        self.inputs: list[bytes] = []  # the files that calls gave
        self.streams: list[socket.socket] = []  # the far ends of viewers and followers
        self.frames = [log_frames.rows(0, 0, 0, ROW + b"hello\n"), log_frames.END]  # for each follower
        self.answers: dict[str, Any] = {
            "helper.ping": {},
            "account.check": {"good_for_ms": 5000},
            "account.mark": {},
            "image.inspect": {"present": True, "digest": DIGEST, "size_bytes": 1000},
            "image.list": {"images": []},
            "image.pull": {"digest": DIGEST, "size_bytes": 1000},
            "image.preflight": {
                "images": [], "download_bytes": 1000, "needed_bytes": 3000, "free_bytes": 10**9,
                "present_bytes": 500, "store": "/home/ada/.local/share/containers/storage",
            },
            "image.secrets": {},
            "image.build": {"digest": DIGEST, "size_bytes": 1000},
            "image.map": {"copy_bytes": 0, "copied": False},
            "image.usage": {"images": [], "total_bytes": 0, "free_bytes": 10**9},
            "disk.usage": {
                "images_bytes": 7, "mapped_bytes": 6, "cache_bytes": 5, "containers_bytes": 4,
                "volumes_bytes": 3, "files_bytes": 2, "files": 9, "complete": True,
            },
            "image.remove": {"removed": True},
            "image.prune": {"removed": [], "kept": []},
            "ctr.create": {"container_id": CONTAINER, "image_id": "i" * 64},
            "ctr.start": {"container_id": CONTAINER, "pid": 5, "started_at": None},
            "ctr.prepare": {"container_id": "e" * 64},
            "ctr.replace": {"replaced": False},
            "ctr.stop": {"exit_code": 0, "oom_killed": False},
            "ctr.remove": {},
            "ctr.inspect": {"exists": True, "status": "running"},
            "ctr.exec": {
                "exit_code": 0, "stdout": "aGkK", "stderr": "", "truncated": False, "timed_out": False,
                "duration_ms": 7,
            },
            "ctr.follow": {},
            "ctr.stats": {
                "sampled_ms": 100, "cpu_percent": 12.5, "cpu_usec": 1000, "memory_bytes": 4096,
                "cpu_limit": None, "pids_limit": None, "memory_limit_bytes": None, "pids": 2,
                "source": "cgroup", "more_processes": 0,
                "processes": [
                    {"pid": 7, "parent": 1, "command": "sleep 5", "cpu_percent": 12.5, "memory_bytes": 4096}
                ],
            },
            "ctr.pipe": {"exit_code": 3, "timed_out": False, "duration_ms": 7},
            "terminal.open": {"terminal": TERMINAL},
            "terminal.attach": {"terminal": TERMINAL},
            "terminal.list": {"terminals": [TERMINAL]},
            "terminal.close": {},
            "launcher.list": {"launchers": []},
            "launcher.watch": {"launchers": []},
            "launcher.start": {"name": "web", "state": "started", "exit_code": None, "pid": 9,
                               "started_at": "2025-01-02T03:04:05Z", "finished_at": None},
            "launcher.stop": {"name": "web", "state": "stopped", "exit_code": 143, "pid": None,
                              "started_at": "2025-01-02T03:04:05Z", "finished_at": "2025-01-02T03:04:06Z"},
            "port.open": {},
            "port.connect": {},
            "port.close": {},
            "port.list": {"ports": []},
            "registries.write": {},
            **filing.ANSWERS,
        }  # fmt: skip
        self.files = filing.Files()
        ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.helper = Helper(ours, listener)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def hold(self) -> None:
        """As an answer: none until let_go."""
        self.holding.wait(30)

    def let_go(self) -> None:
        """End what is held."""
        self.holding.set()

    def asked(self) -> list[protocol.Call]:
        """The calls, without the account checks that go before everything."""
        return [call for call in self.calls if call.verb.name != "account.check"]

    def verbs(self) -> list[str]:
        """The verbs that were called, in order."""
        return [call.verb.name for call in self.asked()]

    def _serve(self) -> None:
        while True:
            try:
                frame = protocol.receive(self.theirs)
            except (EOFError, OSError):
                return
            threading.Thread(target=self._answer, args=(frame,), daemon=True).start()

    def _answer(self, frame: protocol.Frame) -> None:
        # a caller that goes before its answer is no failure
        with socket.socket(fileno=frame.fds[0]) as reply, contextlib.suppress(BrokenPipeError):
            protocol.close_all(frame.fds[1:])
            call = protocol.check_call(frame.message, self.listener)
            self.calls.append(call)
            self.fd_counts.append(len(frame.fds))
            if call.verb.name in filing.CONVERSATIONS:
                self.answers[call.verb.name] = self.files.converse(call, reply)
            elif call.verb.name in protocol.INPUT or (
                call.verb.name == "ctr.exec" and call.args["command"] is None
            ):
                self._take_file(reply)
            elif call.verb.name == "port.connect":
                self.streams.append(_viewer_of(reply))
            elif (
                call.verb.name == "terminal.attach" or call.args.get("attach") or call.verb.name == "ctr.pipe"
            ):
                self.streams.append(_viewer_of(reply))
                if call.verb.name == "ctr.pipe" and call.args["command"] is None:
                    self._take_file(reply)
            elif call.verb.name == "ctr.follow":
                self.streams.append(_viewer_of(reply))
                for frame_ in self.frames:
                    self.streams[-1].send(frame_)
            answer = self.answers[call.verb.name]
            if callable(answer):
                answer = answer(call)
            if isinstance(answer, list):
                *messages, answer = answer
                for message in messages:
                    protocol.send_reply(reply, {"progress": message})
            if answer is None:
                return
            if isinstance(answer, Given):
                protocol.send_reply(reply, {"ok": True, "data": {}}, [answer.fd])
                os.close(answer.fd)
            elif isinstance(answer, tuple):  # a code and an engine's words
                code, engine = answer
                failed = {"ok": False, "code": code, "message": f"said {code}", "engine": engine}
                protocol.send_reply(reply, failed)
            elif isinstance(answer, str):
                protocol.send_reply(reply, {"ok": False, "code": answer, "message": f"said {answer}"})
            else:
                protocol.send_reply(reply, {"ok": True, "data": answer})

    def _take_file(self, reply: socket.socket) -> None:
        value = protocol.receive(reply)
        assert value.message == {"input": True}
        with open(value.fds[0], "rb") as file:
            file.seek(0)
            self.inputs.append(file.read())

    def close(self) -> None:
        """End the pair; the thread goes with it."""
        self.helper.sock.close()
        self.thread.join(5)
        self.theirs.close()
        for stream in self.streams:
            stream.close()
        for replies in self.helper.unread.values():  # which the next call would see to
            protocol.close_all([reply.detach() for reply in replies])


class Peer:
    """A socket as gunicorn would hand it over, with the kernel's word about a peer chosen by the test."""

    def __init__(self, uid: int) -> None:
        self.family = socket.AF_UNIX
        self.uid = uid
        self.left, self.right = socket.socketpair()

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        assert (level, option) == (socket.SOL_SOCKET, socket.SO_PEERCRED)
        return struct.pack("3i", 1, self.uid, self.uid)[:size]

    def fileno(self) -> int:
        return self.left.fileno()

    def close(self) -> None:
        self.left.close()
        self.right.close()


_LINE = socket.socketpair()  # what a long call of a visitor watches; nobody ever hangs up


class Visitor:
    """A connection on the TLS listener."""

    family = socket.AF_INET

    def getsockname(self) -> tuple[str, int]:
        return ("192.0.2.7", 24680)

    def fileno(self) -> int:
        return _LINE[0].fileno()


def make_user(name: str, uid: int, **options: Any) -> Any:
    """A ready account."""
    return users.create(name, uid=uid, **{"provisioning": users.READY} | options)


def make_template(owner_id: int | None, name: str = "base", *, status: str = "enabled", **spec: Any) -> str:
    """A template at revision 1, of a registry's IMAGE or of a `dockerfile`; returns its id."""
    template_id, at = f"tpl-{name:0>8}"[:12], now()
    document = {
        "description": "", "defaults": {}, "limits": {}, "command": None, "run_as": None, "env": [],
    } | spec  # fmt: skip
    dockerfile = document.pop("dockerfile", None)
    built = f"localhost/svc/{template_id}:0123456789abcdef"
    image_ref = document.pop("image_ref", built if dockerfile else IMAGE)
    with write():
        database.execute_sql(
            "INSERT INTO templates (id, owner_id, name, status, revision, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, 1, ?, ?)",
            (template_id, owner_id, name, status, at, at),
        )
        database.execute_sql(
            "INSERT INTO template_revisions"
            " (template_id, revision, source_type, image_ref, dockerfile, spec_json, created_at)"
            " VALUES (?, 1, iif(?2 IS NULL, 'registry', 'dockerfile'), ?3, ?2, ?4, ?5)",
            (template_id, dockerfile, image_ref, json.dumps(document), at),
        )
    return template_id


def make_workspace(owner_id: int, template_id: str, name: str = "lab", **columns: Any) -> str:
    """A workspace's row, stopped and never started unless told otherwise; returns its id."""
    at = now()
    row = {
        "id": f"ws-{name:0>8}"[:11], "owner_id": owner_id, "name": name, "template_id": template_id,
        "template_revision": 1, "image_ref": IMAGE, "status": "stopped", "status_since": at,
        "created_at": at, "updated_at": at,
    } | columns  # fmt: skip
    with write():
        database.execute_sql(
            f"INSERT INTO workspaces ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
            tuple(row.values()),
        )
    return str(row["id"])


def caller_of(user: Any, far: FarEnd, **changes: Any) -> Caller:
    """A caller on the worker's pair, which needs no peer proof, as that user."""
    values = {
        "kind": "peer", "user_id": user.id, "name": user.name, "uid": user.uid,
        "superuser": bool(user.superuser), "rid": "req-test", "address": "", "helper": far.helper,
    } | changes  # fmt: skip
    return Caller(**values)


ERROR_KEYS = {"code", "message", "hint", "action", "fields", "details", "retryable", "request_id"}


def checked(response: Any, status: int, code: str) -> dict[str, Any]:
    """The inner error of an answer that has the one shape."""
    body = response.get_json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == ERROR_KEYS
    assert (response.status_code, error["code"]) == (status, code), error
    assert error["request_id"] == response.headers["X-Request-Id"]
    assert error["message"]
    assert "Traceback" not in response.text
    assert response.headers["Content-Type"] == "application/json"
    for field in error["fields"]:
        assert set(field) == {"field", "code", "message"}
    if error["retryable"]:
        assert int(response.headers["Retry-After"]) >= 1
    return error
