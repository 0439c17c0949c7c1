"""A terminal in a workspace: the first prompt, and how soon a key is back; beside Podman and ssh."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import shutil
import signal
import ssl
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.pairs import Row, Shell, Side, nothing, pair
from bench.stage import IMAGE, USER, Stage
from e2e import sshd
from e2e.installation import SVC, run
from e2e.surroundings import must
from hostile.attackers.raw import connect_tls

from svc.websocket import BINARY, Receiver, frame

OTHER = "bench-terminal"
PROMPT = b"# "
KEYS = 400
ECHO_P50_MS, ECHO_P99_MS = 2.0, 15.0  # "echo p50 <= 2 ms and p99 <= 15 ms on a quiet machine"
CAT = "stty -echo -icanon; echo ready; exec cat"
READY = b"ready"


class Window:
    """A program on a terminal of its own, as the user."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.pid = self.terminal = 0

    def open(self, *argv: str) -> None:
        """Start the program."""
        account = self.shell.account
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            try:
                os.setgroups(self.shell.groups)
                os.setgid(account.pw_gid)
                os.setuid(account.pw_uid)
                os.chdir(account.pw_dir)
                os.execvpe(argv[0], argv, self.shell.env | {"TERM": "xterm"})
            finally:
                os._exit(127)

    def wait_for(self, text: bytes) -> None:
        """Read until this is on the screen."""
        screen = b""
        while text not in screen:
            assert select.select([self.terminal], [], [], 30)[0], screen
            screen += os.read(self.terminal, 65536)

    def key_ms(self) -> float:
        """Milliseconds until a key is back."""
        began = time.perf_counter()
        os.write(self.terminal, b"x")
        assert select.select([self.terminal], [], [], 30)[0]
        os.read(self.terminal, 65536)
        return (time.perf_counter() - began) * 1000

    def close(self) -> None:
        """End the program, if there is one."""
        if self.pid:
            os.write(self.terminal, b"\nexit\n")
            ends_at = time.monotonic() + 2
            with contextlib.suppress(OSError):
                while time.monotonic() < ends_at and os.read(self.terminal, 65536):
                    pass
            os.close(self.terminal)
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0


def rows(shell: Shell, set_up: Stage, end_agent: Callable[[], None]) -> Iterator[Row]:
    """The first prompt, warm and cold, a command with input, keys over the host socket, keys over TLS."""
    must(run(USER, "ws", "start", "bench", env=set_up.env))
    shell("podman", "run", "-d", "--name", OTHER, "--init", "--pull=never", f"{set_up.registry}/{IMAGE}")
    try:
        ours, theirs = ((str(SVC), "ws", "shell", "bench"), ("podman", "exec", "-it", OTHER, "sh"))
        name = "ws shell, first prompt | podman exec -it"
        yield pair(name, _prompt(shell, ours), _prompt(shell, theirs), bar=0.6)
        name = "ws shell, first prompt, cold | podman exec -it"
        yield pair(name, _prompt(shell, ours, also=end_agent), _prompt(shell, theirs), rounds=8)
        piped = (str(SVC), "ws", "exec", "-i", "bench", "--", "true")
        their_piped = ("podman", "exec", "-i", OTHER, "true")
        yield pair("ws exec -i -- true | podman exec -i", shell.side(*piped), shell.side(*their_piped))
        other = _keys(shell, "podman", "exec", "-it", OTHER, "sh", "-c", CAT)
        mine = _keys(shell, str(SVC), "ws", "shell", "bench", "--command", CAT)
        yield from _echo("host socket | podman exec -it", mine, other)
        over_tls = _keys_over_tls(set_up)
        yield from _echo("TLS WebSocket | podman exec -it", over_tls, other)
        by_ssh = _keys_over_ssh(shell)
        for label, keys in (("host socket", mine), ("TLS WebSocket", over_tls)):
            yield from _compared(f"{label} | ssh to this host", keys, by_ssh)
    finally:
        shell("podman", "rm", "-f", "-t", "0", OTHER)


def _prompt(shell: Shell, argv: Sequence[str], also: Callable[[], None] = nothing) -> Side:
    """Timed: the start until the first prompt; before it the last one is closed, and this is done."""
    window = Window(shell)

    def first() -> None:
        window.open(*argv)
        window.wait_for(PROMPT)

    def close() -> None:
        window.close()
        also()

    return Side(first, close)


def _echo(name: str, mine: list[float], other: list[float]) -> Iterator[Row]:
    yield from _compared(name, mine, other)
    for label, at, bar in (("p50", 50, ECHO_P50_MS), ("p99", 99, ECHO_P99_MS)):
        figure = _percentile(mine, at)
        yield Row(f"key and back {label}, {name.split(' |')[0]} | bar", figure, bar, figure / bar, 1.0)


def _compared(name: str, mine: list[float], other: list[float]) -> Iterator[Row]:
    for at in (50, 99):
        ours, theirs = _percentile(mine, at), _percentile(other, at)
        yield Row(f"key and back p{at}, {name}", ours, theirs, ours / theirs, None)


def _percentile(keys: list[float], at: int) -> float:
    return statistics.quantiles(keys, n=100)[at - 1]


def _keys(shell: Shell, *argv: str) -> list[float]:
    window = Window(shell)
    window.open(*argv)
    window.wait_for(READY)
    times = _paced(window.key_ms)
    os.kill(window.pid, signal.SIGKILL)
    window.close()
    return times


def _paced(key_ms: Callable[[], float]) -> list[float]:
    """As somebody types who is quick, so that each key comes alone."""
    times = []
    for _ in range(KEYS):
        time.sleep(0.005)
        times.append(key_ms())
    return times


def _keys_over_ssh(shell: Shell) -> list[float]:
    """By a real sshd of this host, to the same loop without a container."""
    folder = Path(tempfile.mkdtemp(prefix="svc-bench-"))
    folder.chmod(0o755)
    try:
        with sshd.running(folder) as server:
            os.chown(server.key, shell.account.pw_uid, shell.account.pw_gid)
            options = (
                "StrictHostKeyChecking=no",
                "UserKnownHostsFile=/dev/null",
                "BatchMode=yes",
                "LogLevel=ERROR",
            )
            argv = ["ssh", "-tt", "-F", "/dev/null", "-p", str(server.port), "-i", str(server.key)]
            argv += [f"-o{option}" for option in options]
            return _keys(shell, *argv, f"{USER}@127.0.0.1", CAT)
    finally:
        shutil.rmtree(folder)


def _keys_over_tls(set_up: Stage) -> list[float]:
    token = must(run(USER, "token", "create", "--name", "bench", "--json", env=set_up.env)).json()["secret"]
    command = json.dumps(["sh", "-c", CAT]).replace(" ", "%20").replace('"', "%22")
    head = [
        f"GET /api/workspaces/bench/terminal?command={command} HTTP/1.1", "Host: localhost",
        f"Authorization: Bearer {token}", "Connection: Upgrade", "Upgrade: websocket",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: svc-terminal.1", "", "",
    ]  # fmt: skip
    with connect_tls(int(set_up.env["SVC_PORT"])) as sock:
        sock.sendall("\r\n".join(head).encode())
        return _paced_over(sock)


def _paced_over(sock: ssl.SSLSocket) -> list[float]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(4096)
    receiver = Receiver(1 << 20, masked=False)
    pending = list(receiver.feed(data.partition(b"\r\n\r\n")[2]))
    while not any(kind == BINARY and READY in content for kind, content in pending):
        pending += receiver.feed(sock.recv(65536))

    def key_ms() -> float:
        began = time.perf_counter()
        sock.sendall(frame(BINARY, b"x", mask=True))
        while not any(kind == BINARY for kind, _ in receiver.feed(sock.recv(65536))):
            pass
        return (time.perf_counter() - began) * 1000

    return _paced(key_ms)
