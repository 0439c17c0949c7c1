"""The real helper process on real socketpairs, with directories, a listener and users of its own."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import json
import os
import pwd
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from svc.helper.helper import Helper
from svc_helper import interpreter
from svc_helper.wire.protocol import receive_reply, send

PAIRS = ("unix", "tls", "worker", "admin")
RESIDENT = "svc_helper.root.__main__"  # the server's helper
PROVISIONING = "svc_helper.provision.__main__"  # that of `svc admin`: the same loop with all root verbs
PAM_SERVICE = "tsh-svc"
WS = {"id": "ws-echo0000"}


def user_exists(name: str) -> bool:
    """Whether there is such a Linux account now."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def remove_user(name: str) -> None:
    """Take an account of a test away, with its runtime directory and its cgroup."""
    for home in (f"/home/{name}", f"/home/.svc-{name}"):
        shutil.rmtree(home, ignore_errors=True)
    if not user_exists(name):
        return
    uid = pwd.getpwnam(name).pw_uid
    subprocess.run(["userdel", "--force", "--remove", name], check=False, capture_output=True)
    subprocess.run(["rm", "-rf", f"/run/user/{uid}", *glob.glob(f"/run/user/.svc-{uid}*")], check=True)
    for leaf in (*Path(f"/sys/fs/cgroup/user-{uid}").glob("svc-agent-*"), f"/sys/fs/cgroup/user-{uid}"):
        with contextlib.suppress(OSError):
            os.rmdir(leaf)


class Stage:
    """One helper and both sides of its pairs."""

    def __init__(
        self,
        *,
        pair_names: tuple[str, ...] = PAIRS,
        inside: tuple[str, ...] = (),
        program: str = PROVISIONING,
        **config: Any,
    ) -> None:
        self.program = program
        self.inside = inside  # a command that runs the helper's, in surroundings of its making
        self.directory = Path(tempfile.mkdtemp(prefix="tsh-", dir="/run"))
        self.directory.chmod(0o755)
        self.socket_path = str(self.directory / "svc.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.socket_path)
        os.chmod(self.socket_path, 0o666)
        self.listener.listen()
        self.pairs: dict[str, socket.socket] = {}
        self.far_ends: dict[str, socket.socket] = {}
        for pair in pair_names:
            self.pairs[pair], self.far_ends[pair] = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.far_ends[pair].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.config = {
            "socket": self.socket_path,
            "state_dir": str(self.directory),
            "file_roots": {"work": "%h/work"},
            "fds": {pair: far_end.fileno() for pair, far_end in self.far_ends.items()},
            "uids": dict.fromkeys(self.far_ends, 0),
            "systemd": False,
            "single_user": False,
            "agent_command": [sys.executable, "-I", "-S", str(Path(__file__).parent / "fake_agent.py")],
            "pam_service": PAM_SERVICE,
        } | config
        self.log_file = (self.directory / "helper.log").open("ab")
        self.start()

    def start(self) -> None:
        """Start a helper on the pairs that are there."""
        self.process = subprocess.Popen(
            [*self.inside, *interpreter.command(self.program, "--config", json.dumps(self.config))],
            pass_fds=list(self.config["fds"].values()),
            stdin=subprocess.DEVNULL,
            stderr=self.log_file,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"},
        )

    def close(self) -> None:
        """End the pairs; the helper must then end by itself."""
        for sock in (*self.pairs.values(), *self.far_ends.values(), self.listener):
            sock.close()
        try:
            assert self.process.wait(20) == 0
        finally:
            self.process.kill()
            self.process.wait()
            self.log_file.close()
            self._wait_for_agents()
            shutil.rmtree(self.directory)

    def _wait_for_agents(self) -> None:
        mark = str(self.directory).encode()
        until = time.monotonic() + 10
        while any(mark in command for command in command_lines()):
            assert time.monotonic() < until, "an agent outlives its helper"
            time.sleep(0.02)

    def enrol(self, *lines: str) -> None:
        """Replace the enrolment list."""
        new = self.directory / "new"
        new.write_text("".join(line + "\n" for line in lines))
        new.chmod(0o644)
        new.rename(self.directory / "enrolled")

    def client(self, pair: str) -> Helper:
        """The app's client on one pair."""
        return Helper(self.pairs[pair], pair)

    def ask(self, pair: str, message: dict[str, Any], *more: int, wait_s: float = 5) -> dict[str, Any] | None:
        """Send any message with a fresh reply path; the last answer, or None for an end without one."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                send(self.pairs[pair], message, [theirs.fileno(), *more])
            poll = select.poll()
            poll.register(ours, select.POLLIN)
            assert poll.poll(wait_s * 1000), "no answer in time"
            try:
                frame = receive_reply(ours)
            except (EOFError, ConnectionError):
                return None
            for fd in frame.fds:
                os.close(fd)
            return frame.message

    def ping(self, pair: str = "worker") -> dict[str, Any]:
        """What the helper says of itself; also a barrier: it has dealt with all before on that pair."""
        answer = self.ask(pair, call("helper.ping", None, {}))
        assert answer is not None and answer["ok"]
        data: dict[str, Any] = answer["data"]
        return data

    def descriptors(self) -> int:
        """How many descriptors the helper has open once it has dealt with everything before."""
        for pair in self.pairs:
            self.ping(pair)
        counts = [0, 1, 2]
        while len(set(counts[-3:])) > 1:  # an answer comes a moment before its reply path is closed
            time.sleep(0.002)
            counts.append(len(os.listdir(f"/proc/{self.process.pid}/fd")))
        return counts[-1]

    def log(self) -> list[dict[str, Any]]:
        """The helper's log lines."""
        lines = (self.directory / "helper.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    @contextlib.contextmanager
    def connection(self, uid: int) -> Iterator[tuple[socket.socket, socket.socket]]:
        """A connection of that uid to the listener: the client's end and the accepted one."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            os.seteuid(uid)
            try:
                client.connect(self.socket_path)
            finally:
                os.seteuid(0)
            accepted, _ = self.listener.accept()
            with accepted:
                yield client, accepted


TRACE = """
import ctypes, os, sys
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long] * 4
if ptrace(0x4206, int(sys.argv[1]), 0, 0):  # PTRACE_SEIZE
    sys.exit(os.strerror(ctypes.get_errno()))
print("traces", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def traced(pid: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that traces another one until the context ends: until then no parent can reap that one."""
    argv = [sys.executable, "-c", TRACE, str(pid)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tracer:
        assert tracer.stdout is not None
        try:
            assert tracer.stdout.readline() == b"traces\n"
            yield tracer
        finally:
            tracer.kill()


def call(verb: str, user: Any, args: Any, timeout_s: int = 5, rid: str = "r-1") -> dict[str, Any]:
    """A call's message."""
    return {"verb": verb, "user": user, "rid": rid, "timeout_s": timeout_s, "args": args}


def command_lines() -> list[bytes]:
    """The command line of every process."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit():
                found.append(Path(f"/proc/{name}/cmdline").read_bytes())
    return found


def code_of(stage: Stage, user: str) -> str:
    """The code of the answer, or ok."""
    answer = stage.ask("worker", call("ctr.inspect", user, WS), wait_s=15)
    assert answer is not None
    return "ok" if answer["ok"] else str(answer["code"])


def ensure(stage: Stage, name: str, administrator: bool = False) -> dict[str, Any]:
    """account.ensure as `svc admin` asks for it."""
    return stage.client("admin").call("account.ensure", name, {"administrator": administrator}, rid="r")


def edit(name: str, keep: Callable[[str], bool], *more: str) -> None:
    """Take lines out of a file of /etc's accounts and add some, under the lock that useradd respects."""
    path, libc = Path("/etc") / name, ctypes.CDLL(None)
    assert libc.lckpwdf() == 0
    try:
        lines = [line for line in path.read_text().splitlines(keepends=True) if keep(line)]
        new = path.with_name(name + ".tsh")
        shutil.copy2(path, new)
        shutil.chown(new, path.stat().st_uid, path.stat().st_gid)
        new.write_text("".join([*lines, *(line + "\n" for line in more)]))
        new.rename(path)
    finally:
        libc.ulckpwdf()


def enrolled(stage: Stage) -> list[str]:
    """The lines of the enrolment list."""
    return (stage.directory / "enrolled").read_text().splitlines()
