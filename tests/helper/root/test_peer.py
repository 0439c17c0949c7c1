"""Peer proof: only a living connection that our own listener accepted proves anybody's uid."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from helper.stage import WS, Stage, call

from svc import errors

# Run by the app in a user and mount namespace of its own: puts another file under our path's
# name, binds the client's end there, and connects it to the real listener. {directory} is ours.
FORGE = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
outside_uid, outside_gid = os.getuid(), os.getgid()
real = os.open({directory!r}, os.O_PATH)
assert libc.unshare(0x10000000 | 0x00020000) == 0, ctypes.get_errno()
open("/proc/self/setgroups", "w").write("deny")
open("/proc/self/uid_map", "w").write(f"0 {{outside_uid}} 1")
open("/proc/self/gid_map", "w").write(f"0 {{outside_gid}} 1")
assert libc.mount(b"none", {directory!r}.encode(), b"tmpfs", 0, None) == 0, ctypes.get_errno()
sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
sock.bind({path!r})
sock.connect(f"/proc/self/fd/{{real}}/svc.sock")
socket.send_fds(socket.socket(fileno={far}), [b"x"], [sock.fileno()])
sys.stdin.read()
"""


def refused(stage: Stage, fd: int, user: str = "tsh-ada", verb: str = "ctr.inspect") -> bool:
    """Whether the helper refuses a call with this as the proof."""
    answer = stage.ask("unix", call(verb, user, WS), fd)
    return answer is not None and answer["ok"] is False and answer["code"] == "refused"


@contextlib.contextmanager
def forged(stage: Stage) -> Iterator[int]:
    """The client's end of a connection to our listener, bound under our path's name elsewhere."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    code = FORGE.format(directory=str(stage.directory), path=stage.socket_path, far=far.fileno())
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code],
        stdin=subprocess.PIPE,
        pass_fds=[far.fileno()],
        user="nobody",
        group="nogroup",
        extra_groups=[],
    )
    far.close()
    with near, process:
        _, fds, _, _ = socket.recv_fds(near, 1, 1)
        accepted, _ = stage.listener.accept()
        with accepted, socket.socket(fileno=fds[0]) as client:
            yield client.fileno()


def test_the_callers_own_connection_is_proof(stage: Stage, uid: dict[str, int]) -> None:
    with stage.connection(uid["tsh-ada"]) as (_, accepted):
        data = stage.client("unix").call("ctr.inspect", "tsh-ada", WS, rid="r", peer=accepted)
    assert data["message"]["args"] == WS
    assert data["fds"] == 1  # the proof is never passed on


def test_a_forged_name_in_another_mount_namespace_is_no_proof(stage: Stage) -> None:
    with forged(stage) as fd:
        client = socket.socket(fileno=os.dup(fd))
        with client:  # it looks right in every way that the socket itself can tell
            assert client.getsockname() == stage.socket_path
            credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            assert struct.unpack("3i", credentials)[1] == 0
            assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 0
        answer = stage.ask("unix", call("ctr.stop", "tsh-ada", {**WS, "grace_s": 1}), fd)
    assert answer is not None
    assert (answer["code"], answer["message"]) == (
        "refused",
        "no peer proof: bound to our path, but on another file",
    )


def test_the_apps_own_end_is_no_proof(stage: Stage, uid: dict[str, int]) -> None:
    with stage.connection(uid["tsh-ada"]) as (client, _):
        assert refused(stage, client.fileno())


def test_the_listener_is_no_proof(stage: Stage) -> None:
    assert refused(stage, stage.listener.fileno())


def test_a_hung_up_connection_is_no_proof(stage: Stage, uid: dict[str, int]) -> None:
    with stage.connection(uid["tsh-ada"]) as (client, accepted):
        client.close()
        assert refused(stage, accepted.fileno())


def test_a_half_closed_connection_is_no_proof(stage: Stage, uid: dict[str, int]) -> None:
    with stage.connection(uid["tsh-ada"]) as (client, accepted):
        client.shutdown(socket.SHUT_WR)
        assert refused(stage, accepted.fileno())


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM])
def test_the_end_of_a_pair_is_no_proof(stage: Stage, kind: socket.SocketKind) -> None:
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    with one, other:
        assert refused(stage, one.fileno())


def test_another_process_pair_is_no_proof(stage: Stage, uid: dict[str, int]) -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    code = (
        "import socket\n"
        "one, two = socket.socketpair()\n"
        f"socket.send_fds(socket.socket(fileno={far.fileno()}), [b'x'], [one.fileno()])\n"
        "input()"
    )
    command = [sys.executable, "-I", "-S", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[far.fileno()], user="tsh-ada") as process:
        far.close()
        with near:
            _, fds, _, _ = socket.recv_fds(near, 1, 1)
        assert refused(stage, fds[0])
        os.close(fds[0])
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()


def test_a_connection_of_another_listener_is_no_proof(stage: Stage, uid: dict[str, int]) -> None:
    path = str(stage.directory / "other.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        os.chmod(path, 0o666)
        listener.listen()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(path)
            accepted, _ = listener.accept()
            with accepted:
                assert refused(stage, accepted.fileno())


def test_an_abstract_name_is_no_proof(stage: Stage) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind("\0" + stage.socket_path)
        listener.listen()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect("\0" + stage.socket_path)
            accepted, _ = listener.accept()
            with accepted:
                assert refused(stage, accepted.fileno())


def test_what_is_no_socket_is_no_proof(stage: Stage) -> None:
    read, write = os.pipe()
    epoll = os.eventfd(0)
    with open("/etc/passwd") as file, socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
        for fd in (read, write, epoll, file.fileno(), tcp.fileno()):
            assert refused(stage, fd)
    for fd in (read, write, epoll):
        os.close(fd)


def test_a_replaced_socket_file_is_not_ours(stage: Stage, uid: dict[str, int]) -> None:
    os.rename(stage.socket_path, stage.socket_path + ".old")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(stage.socket_path)
        os.chmod(stage.socket_path, 0o666)
        listener.listen()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(stage.socket_path)
            accepted, _ = listener.accept()
            with accepted:
                assert refused(stage, accepted.fileno())


def test_a_client_in_another_network_namespace_is_heard(stage: Stage, uid: dict[str, int]) -> None:
    code = (
        "import socket\n"
        f"s = socket.socket(socket.AF_UNIX); s.connect({stage.socket_path!r}); print(flush=True); input()"
    )
    command = ["unshare", "--net", "setpriv", "--reuid=tsh-ada", "--clear-groups", sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        accepted, _ = stage.listener.accept()
        with accepted:
            stage.client("unix").call("ctr.inspect", "tsh-ada", WS, rid="r", peer=accepted)
        process.communicate(b"\n")


STOP = ("ctr.stop", {**WS, "grace_s": 1})
INSPECT = ("ctr.inspect", WS)
CHECK: tuple[str, Any] = ("account.check", {})
# fmt: off
ROLES = [
    ("tsh-ada", INSPECT, "tsh-ada", True),
    ("tsh-ada", STOP,    "tsh-ada", True),
    ("tsh-ada", INSPECT, "tsh-ben", False),
    ("tsh-ada", STOP,    "tsh-ben", False),
    ("tsh-ben", STOP,    "tsh-ada", True),   # an administrator stops and deletes
    ("tsh-ben", INSPECT, "tsh-ada", False),  # ... and nothing else
    ("root",    STOP,    "tsh-ada", True),
    ("root",    INSPECT, "tsh-ada", False),
    ("root",    INSPECT, "root",    False),
    ("tsh-ada", CHECK,   "tsh-ada", True),
    ("tsh-ada", CHECK,   "tsh-ben", False),
    ("tsh-ben", CHECK,   "tsh-ada", False),  # not for an administrator either: only the peer itself
    ("root",    CHECK,   "tsh-ada", False),
    ("root",    CHECK,   "root",    False),
    ("nobody",  CHECK,   "tsh-ada", False),
    ("nobody",  CHECK,   "nobody",  False),
    ("nobody",  INSPECT, "tsh-ada", False),
    ("nobody",  STOP,    "tsh-ada", False),
]
# fmt: on


@pytest.mark.parametrize(("peer", "asked", "target", "allowed"), ROLES)
def test_who_may_act_for_whom(
    shared: Stage, uid: dict[str, int], peer: str, asked: tuple[str, Any], target: str, allowed: bool
) -> None:
    verb, args = asked
    with shared.connection({**uid, "root": 0, "nobody": 65534}[peer]) as (_, accepted):
        answer = shared.ask("unix", call(verb, target, args), accepted.fileno())
    assert answer is not None
    assert answer["ok"] is allowed
    assert allowed or answer["code"] == "refused"


def test_an_administrator_must_be_sound_too(stage: Stage, uid: dict[str, int]) -> None:
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user", f"tsh-old {uid['tsh-old']} administrator")
    with stage.connection(uid["tsh-old"]) as (_, accepted):
        answer = stage.ask("unix", call("ctr.stop", "tsh-ada", STOP[1]), accepted.fileno())
    assert answer is not None
    assert answer["code"] == "account"  # its Linux account has expired


def test_refusals_read_like_missing_things(stage: Stage, uid: dict[str, int]) -> None:
    with stage.connection(uid["tsh-ada"]) as (_, accepted):
        helper = stage.client("unix")
        with pytest.raises(errors.NotFound):
            helper.call("ctr.inspect", "tsh-ben", WS, rid="r", peer=accepted)
        with pytest.raises(errors.NotFound):
            helper.call("ctr.inspect", "no-such-user", WS, rid="r", peer=accepted)


@pytest.mark.parametrize("pair", ["unix", "tls", "worker"])
def test_nothing_changes_a_file_of_roots_for_the_app(stage: Stage, uid: dict[str, int], pair: str) -> None:
    """Not for an administrator, and not for root at the other end: only `svc admin` has these verbs."""
    for peer in (uid["tsh-ben"], 0):
        for verb, user, args in (
            ("account.mark", "tsh-ada", {"administrator": True}),
            ("registries.write", None, {"registries": []}),
        ):
            with stage.connection(peer) as (_, accepted):
                answer = stage.ask(pair, call(verb, user, args), accepted.fileno())
            assert answer is not None and answer["code"] == "protocol"
    assert not (stage.directory / "registries.json").exists()
    assert "tsh-ada" in (stage.directory / "enrolled").read_text()
    assert f"tsh-ada {uid['tsh-ada']} administrator" not in (stage.directory / "enrolled").read_text()


def test_a_call_without_proof_is_malformed(stage: Stage) -> None:
    answer = stage.ask("unix", call("ctr.inspect", "tsh-ada", WS))
    assert answer is not None
    assert answer["code"] == "protocol"
