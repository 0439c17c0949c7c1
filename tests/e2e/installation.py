"""The installed program apart from any real installation: its own prefix, paths, port and users.

`Service` starts and stops `svc server`, `run` calls the program as somebody.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ports import free_port
from waiting import until

ROOT = Path(__file__).parents[2]
PREFIX = Path(os.environ.get("SVC_TEST_PREFIX", "/opt/svc-test"))
SVC = PREFIX / "bin" / "svc"
STATE = Path("/var/lib/svc-e2e")
RUN = Path("/run/svc-e2e")
PASSWORD = "seven quiet herons over mud\n"
IMAGE = "tests/base:1"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


APP_ACCOUNTS = ("svc", "svc-unix", "svc-tls", "svc-worker", "svc-apps")


def app_uids() -> dict[str, int]:
    """The uids of the app's accounts, by name."""
    return {name: pwd.getpwnam(name).pw_uid for name in APP_ACCOUNTS}


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code and both streams."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


Call = Callable[..., Outcome]


def environment(port: int, state: Path = STATE, run_dir: Path = RUN) -> dict[str, str]:
    """The settings of this installation; the same for the server, the admin commands and the clients."""
    return {
        "PATH": PATH,
        "LANG": "C.UTF-8",
        "SVC_DB": str(state / "data" / "svc.db"),
        "SVC_STATE_DIR": str(state),
        "SVC_SOCKET": str(run_dir / "svc.sock"),
        "SVC_PORT": str(port),
        "SVC_APPS_LOCAL_PORT": str(free_port()),
        "SVC_HOST": "127.0.0.1",
        "SVC_GPU_PROVIDER": "none",
        "SVC_LICENSE_PATH": str(state / "license.json"),
    }


def run(user: str, *argv: str, env: dict[str, str], stdin: str = "", timeout: float = 90) -> Outcome:
    """Call `svc ARGV` as that Linux user."""
    return command(user, str(SVC), *argv, env=env, stdin=stdin, timeout=timeout)


def command(user: str, *argv: str, env: dict[str, str], stdin: str = "", timeout: float = 90) -> Outcome:
    """Run any program as that Linux user, from that user's home."""
    account = pwd.getpwnam(user)
    done = subprocess.run(
        argv,
        input=stdin,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        cwd=account.pw_dir,
        env=env | {"HOME": account.pw_dir, "USER": user},
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=os.getgrouplist(user, account.pw_gid),
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Process:
    """One line of `ps`, and the status file's words on privilege."""

    pid: int
    parent: int
    uid: int
    args: str
    status: dict[str, str]


def process(pid: int) -> Process | None:
    """What the kernel says of a process; None when it is gone (or only waits to be reaped)."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            args = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except (FileNotFoundError, ProcessLookupError):
        return None
    if status["State"].startswith(("Z", "X")):
        return None
    return Process(pid, int(status["PPid"]), int(status["Uid"].split()[0]), args, status)


def processes() -> list[Process]:
    """All that run now."""
    return [found for name in os.listdir("/proc") if name.isdigit() and (found := process(int(name)))]


def below(pid: int) -> list[Process]:
    """A process and all its descendants."""
    everything = processes()
    chosen = {pid}
    for _ in range(8):
        chosen |= {one.pid for one in everything if one.parent in chosen}
    return [one for one in everything if one.pid in chosen]


def processes_of(user: str) -> list[Process]:
    """All processes of a Linux user."""
    uid = pwd.getpwnam(user).pw_uid
    return [one for one in processes() if one.uid == uid]


class Service:
    """One `svc server` and its children."""

    def __init__(self, env: dict[str, str], log: Path) -> None:
        self.env = env
        self.log = log
        self.supervisor: subprocess.Popen[bytes] | None = None

    def start(self, path: str = "/api/health") -> float:
        """Start it and wait until that path answers with success; how long that took."""
        began = time.monotonic()
        with open(self.log, "ab") as log:
            self.supervisor = subprocess.Popen(
                [SVC, "server"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
                cwd=self.log.parent,  # below /tmp: as somebody's home, no directory of the app's
                umask=0o077,  # a hardened root's: users reach the socket all the same
                start_new_session=True,
            )
        until(lambda: self.answers(path), 30)
        return time.monotonic() - began

    def answers(self, path: str = "/api/health") -> bool:
        """Does a path answer with success? The health endpoint does when all is well."""
        assert self.supervisor is not None
        assert self.supervisor.poll() is None, f"svc server ended:\n{self.tail()}"
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(30)
                client.connect(self.env["SVC_SOCKET"])
                client.sendall(
                    f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
                )
                return client.recv(64).startswith(b"HTTP/1.1 2")
        except OSError:  # it does not listen yet
            return False

    def tail(self, lines: int = 30) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    @property
    def pid(self) -> int:
        """The supervisor's pid."""
        assert self.supervisor is not None
        return self.supervisor.pid

    def members(self) -> list[Process]:
        """The processes of svc itself: supervisor, helper, app and its three; no user's."""
        return [one for one in below(self.pid) if one.uid in (0, *app_uids().values())]

    def member(self, argument: str) -> Process:
        """The one process of svc whose command line or name has that word, the topmost if several."""
        found = [one for one in self.members() if argument in one.args]
        assert found, f"no {argument!r} among {[one.args for one in self.members()]}"
        return next((one for one in found if one.parent not in {other.pid for other in found}), found[0])

    def named(self, name: str) -> Process:
        """The one process of svc of that name, such as svc-worker."""
        (found,) = [one for one in self.members() if one.status["Name"] == name]
        return found

    def stop(self, number: int = signal.SIGTERM) -> float:
        """End it with a signal; how long it took until nothing of svc was left."""
        if self.supervisor is None:
            return 0.0
        mine = {one.pid for one in self.members()}
        began = time.monotonic()
        self.supervisor.send_signal(number)
        self.supervisor.wait(20)
        until(lambda: not [pid for pid in mine if process(pid)], 20, 0.01)
        self.supervisor = None
        return time.monotonic() - began

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Without the server for a while."""
        self.stop()
        yield
        self.start()


def pieces_of(uid: int) -> list[Path]:
    """A user's files in /var/tmp, where Podman keeps what it is about to have."""
    return [path for path in Path("/var/tmp").iterdir() if path.lstat().st_uid == uid]


def remove_pieces(uid: int) -> None:
    """Take them away; a killed Podman leaves some."""
    for path in pieces_of(uid):
        subprocess.run(["rm", "-rf", "--", path], check=True)


def remove_user(name: str) -> None:
    """Take a test's Linux user away, with all its processes and files."""
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        return
    for _ in range(40):
        mine = processes_of(name)
        for one in mine:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
        if not mine:
            break
        time.sleep(0.05)
    subprocess.run(["userdel", "--remove", name], capture_output=True, check=False)
    shutil.rmtree(account.pw_dir, ignore_errors=True)
    remove_runtime_directory(account.pw_uid)
    remove_pieces(account.pw_uid)


def remove_runtime_directory(uid: int) -> None:
    """With its record and what it replaced: the next account of this uid would be refused for it."""
    for path in (f"/run/user/{uid}", *Path("/run/user").glob(f".svc-{uid}*")):
        subprocess.run(["rm", "-rf", path], check=True)
