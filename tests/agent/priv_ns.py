"""A private mount namespace in which rootless Podman runs without systemd, and agents in it.

For hosts whose PID 1 is no systemd and whose cgroups are hybrid: in a mount
namespace of its own /sys/fs/cgroup is plain cgroup2, `/` is shared, /run/user is
an empty tmpfs. A user's Podman pins the namespace it first saw, so everything of
a user starts and ends inside one.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from waiting import until

from svc_helper.root.drop import ALLOCATION
from svc_helper.wire import protocol

SITE = Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"
NO_LIMITS = {"cpu_limit": None, "memory_bytes": None, "shm_bytes": None, "pids_limit": None}
# For tests that use `agent`: with the store in the user's home, and with SVC_STORE_DIR.
IN_EACH_STORE = pytest.mark.parametrize("agent", ["home", "store directory"], indirect=True)
_NAMESPACE = Path(__file__).parents[2] / "packaging/quickstart.d/private-namespace"  # as the quickstart's
_MAKE = """
set -e
mkdir -p /run/user /etc/cdi
mount -t tmpfs -o mode=755 none /run/user
mount -t tmpfs -o mode=755,dev none /etc/cdi
echo ready
exec sleep infinity
"""
_ENTER = f"""
set -e
allocation='{" ".join(f"{name}={value}" for name, value in ALLOCATION.items())}'
group=/sys/fs/cgroup/$1; owner=$2; uid=$3; gid=$4; home=$5; name=$6; shift 6
mkdir -p "$group/leaf"
for directory in "$group" "$group/leaf"; do
    for file in . cgroup.procs cgroup.subtree_control cgroup.threads; do
        chown "$owner" "$directory/$file"
    done
done
install -d -m 0700 -o "$uid" -g "$gid" "/run/user/$uid"
echo $$ > "$group/leaf/cgroup.procs"
cd "$home"
exec setpriv --reuid "$uid" --regid "$gid" --init-groups --reset-env \\
    env -i HOME="$home" USER="$name" LOGNAME="$name" XDG_RUNTIME_DIR="/run/user/$uid" $allocation \\
    PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 "$@"
"""


class Answer(NamedTuple):
    """The end of a call: its last message, its descriptors and the progress before it."""

    message: dict[str, Any]
    fds: list[int]
    progress: list[dict[str, Any]]

    @property
    def data(self) -> dict[str, Any]:
        """What a successful call answered."""
        assert self.message.get("ok") is True, self.message
        return self.message["data"]

    @property
    def code(self) -> str:
        """Why a call failed."""
        assert self.message.get("ok") is False, self.message
        return self.message["code"]


class Pending:
    """A call under way, seen from the app's side."""

    def __init__(self, sock: socket.socket, stream: socket.socket | None = None) -> None:
        self.sock = sock
        self._stream = stream

    @property
    def stream(self) -> socket.socket:
        """The app's end of the data stream that was sent with the call."""
        assert self._stream is not None
        return self._stream

    def answer(self, timeout_s: float = 60) -> Answer:
        """Wait for the last message."""
        progress = []
        end = time.monotonic() + timeout_s
        while True:
            if not _readable(self.sock, end - time.monotonic()):
                raise TimeoutError("no answer")
            try:
                frame = protocol.receive_reply(self.sock)
            except EOFError:
                return Answer({"ok": False, "code": "died", "message": ""}, [], progress)
            if "progress" in frame.message:
                progress.append(frame.message["progress"])
                continue
            self.sock.close()
            return Answer(frame.message, frame.fds, progress)

    def cancel(self) -> None:
        """Ask for the call's end."""
        protocol.send(self.sock, {"cancel": True})

    def hang_up(self) -> None:
        """Go away, as an app does whose client has gone."""
        self.sock.close()


def _readable(sock: socket.socket, timeout_s: float) -> bool:
    import select

    poller = select.poll()
    poller.register(sock, select.POLLIN)
    return bool(poller.poll(max(0, timeout_s) * 1000))


class Log(NamedTuple):
    """Kept output, and what the agent says of it."""

    content: bytes
    start: list[int]
    older_gone: bool
    truncated: bool
    markers: list[list[Any]]

    @property
    def text(self) -> str:
        """The output as text."""
        return self.content.decode(errors="replace")


class Agent:
    """A running agent and the helper's end of its channel."""

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket, uid: int, log: Path) -> None:
        self.process, self.channel, self.uid, self.log = process, channel, uid, log
        self.count = 0

    def begin(
        self,
        verb: str,
        *,
        deadline_s: int = 0,
        rid: str = "",
        give: bytes | None = None,
        stream: bool = False,
        sends: dict[str, int] | None = None,
        **args: Any,
    ) -> Pending:
        """Send a call, with a file of these bytes if it takes one, or with one end of a data stream.

        `sends` are other descriptors to send with it, each by the name in its message.
        """
        self.count += 1
        deadline_s = deadline_s or min(60, protocol.VERBS[verb].max_timeout_s)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for name, fd in (sends or {}).items():
            protocol.send(ours, {name: True}, [fd])
        if give is not None:
            with tempfile.TemporaryFile() as file:
                file.write(give)
                file.flush()
                protocol.send(ours, {"input": True}, [file.fileno()])
        near_end = None
        if stream:
            near_end, far_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            with far_end:
                which = "input" if verb in protocol.INPUT else "output"
                protocol.send(ours, {which: True}, [far_end.fileno()])
        with theirs:
            message = {
                "verb": verb,
                "args": args,
                "rid": rid or f"test-{self.count}",
                "timeout_s": deadline_s,
            }
            protocol.send(self.channel, message, [theirs.fileno()])
        return Pending(ours, near_end)

    def call(self, verb: str, *, deadline_s: int = 0, rid: str = "", **args: Any) -> Answer:
        """Send a call and wait for its answer."""
        return self.begin(verb, deadline_s=deadline_s, rid=rid, **args).answer(90)  # `give` goes with args

    def logs(self, ws: str, launcher: str | None = None, tail: int | None = None, **more: Any) -> Log:
        """What `ctr.logs` sends; raises AssertionError for a call that fails."""
        args = {"launcher": launcher, "tail": tail, "most": None, "start": None, "skip": 0} | more
        pending = self.begin("ctr.logs", stream=True, id=ws, **args)
        with pending.stream:
            message = protocol.receive_reply(pending.sock).message
            assert "progress" in message, message
            protocol.send(pending.sock, {"go": True})
            content = b"".join(iter(lambda: pending.stream.recv(1 << 20), b""))
        assert pending.answer().data == {"sent": len(content)}
        return Log(content, **message["progress"])

    def pid(self) -> int:
        """The agent itself: the starting chain of programs has become it."""
        return self.process.pid

    def close(self, timeout_s: float = 10) -> int:
        """The helper's end: the agent finishes and ends."""
        self.channel.close()
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def kill(self) -> None:
        """End it as a fault would."""
        self.process.kill()
        self.process.wait()
        self.channel.close()


class Namespace:
    """The private mount namespace; everything in it ends with it."""

    def __init__(self) -> None:
        argv = [_NAMESPACE, "sh", "-c", _MAKE]
        self.holder = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
        assert self.holder.stdout is not None
        with self.holder.stdout as out:
            assert out.readline() == b"ready\n", "the namespace could not be made"
        self.users: list[User] = []

    def enter(self, user: User, argv: list[str], *, own_group: bool = True) -> list[str]:
        """The command line that runs argv as the user in here, in a cgroup of the user's own."""
        begin = ["nsenter", f"--target={self.holder.pid}", "--mount", "sh", "-c", _ENTER, "sh"]
        group = f"test-{user.name}" if own_group else "test-not-owned"
        owner = str(user.uid) if own_group else "0"
        return [*begin, group, owner, str(user.uid), str(user.gid), user.home, user.name, *argv]

    def close(self) -> None:
        """End every process of the users, then the namespace."""
        for user in self.users:
            user.end_all()
            for group in (f"test-{user.name}", "test-not-owned"):
                find = [
                    "find",
                    f"/sys/fs/cgroup/{group}",
                    "-depth",
                    "-type",
                    "d",
                    "-exec",
                    "rmdir",
                    "{}",
                    ";",
                ]
                inside = ["nsenter", f"--target={self.holder.pid}", "--mount"]
                subprocess.run([*inside, *find], check=False, capture_output=True)
        self.holder.kill()
        self.holder.wait()


class User:
    """A real Linux user, made for the tests."""

    def __init__(self, namespace: Namespace, name: str, directory: Path, home: str = "") -> None:
        self.namespace, self.name, self.directory = namespace, name, directory
        self._make(home or f"/home/{name}")
        namespace.users.append(self)

    def _make(self, home: str) -> None:
        try:
            pwd.getpwnam(self.name)
        except KeyError:
            options = ["--create-home", f"--home-dir={home}", "--shell", "/bin/bash"]
            subprocess.run(["useradd", *options, self.name], check=True)
        found = pwd.getpwnam(self.name)
        self.uid, self.gid, self.home = found.pw_uid, found.pw_gid, found.pw_dir
        text = '[storage]\ndriver = "overlay"\n'
        script = 'mkdir -p ~/.config/containers && printf "%s" "$1" > ~/.config/containers/storage.conf'
        self.run("sh", "-c", script, "sh", text)

    @property
    def runtime(self) -> str:
        """The XDG_RUNTIME_DIR, as seen from in there."""
        return f"/run/user/{self.uid}"

    def run(self, *argv: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command as the user, in there, to its end."""
        setting = [f"{name}={value}" for name, value in environment.items()]
        argv_in = self.namespace.enter(self, [*(["env", *setting] if setting else []), *argv])
        done = subprocess.run(
            argv_in, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0 or not check, f"{argv}: {done.returncode} {done.stderr}"
        return done

    def podman(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """The Podman command line with the agent's own configuration."""
        return self.run(
            "podman",
            *argv,
            check=check,
            CONTAINERS_CONF=f"{self.runtime}/svc/containers.conf",
            CONTAINERS_REGISTRIES_CONF=str(self.directory / "registries.conf"),
        )

    def start_agent(
        self, *, keep_cgroup: bool = False, sooner: tuple[str, str, str] | None = None, **changes: Any
    ) -> Agent:
        """Start an agent, as the helper does; with keep_cgroup in a group as it is, whoever owns it.

        `sooner` is a module, and a line of it with the line that stands there instead: a shorter wait.
        """
        site = self._site(sooner)
        config = {
            "user": self.name,
            "uid": self.uid,
            "home": self.home,
            "roots": {"work": f"{self.home}/work"},
            "read_only": [],
            "systemd": False,
            "registries": str(self.directory / "registries.json"),
            "registries_conf": str(self.directory / "registries.conf"),
        } | changes
        code = f"import sys; sys.path.insert(0, {str(site)!r})"
        code += "; from svc_helper.agent.__main__ import main; main()"
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        number = theirs.fileno()
        place = "" if number == 3 else f"3<&{number} {number}<&-"
        shell = ["bash", "-c", f'umask 077; exec "$0" "$@" {place}', PYTHON, "-I", "-S", "-c", code]
        argv = self.namespace.enter(self, [*shell, json.dumps(config)], own_group=not keep_cgroup)
        log = self.directory / f"agent-{self.name}.log"
        with theirs, log.open("ab") as err:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=err, stderr=err, pass_fds=[number]
            )
        ours.shutdown(socket.SHUT_RD)
        return Agent(process, ours, self.uid, log)

    def _site(self, sooner: tuple[str, str, str] | None) -> Path:
        """A copy of the helper's packages, since the checkout may be closed to this user."""
        site = self.directory / (f"site-{abs(hash(sooner))}" if sooner else "site")
        if not site.exists():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(SITE / "svc_helper", site / "svc_helper", ignore=ignored)
            if sooner:
                module, line, other = sooner
                source = site / "svc_helper" / f"{module.replace('.', '/')}.py"
                text = source.read_text()
                assert text.count(f"\n{line}\n") == 1, f"{module} has no line {line!r}"
                source.write_text(text.replace(f"\n{line}\n", f"\n{other}\n"))
            subprocess.run([PYTHON, "-m", "compileall", "-q", str(site)], check=True)  # as an installation is
        return site

    def processes(self) -> dict[int, str]:
        """Everything that runs as the user or one of its subordinate ids, by pid."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                uid = entry.stat().st_uid
                arguments = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state != "Z" and (uid == self.uid or uid in self.subordinate()):
                found[int(entry.name)] = arguments
        return found

    def subordinate(self) -> range:
        """The user's range of /etc/subuid."""
        for line in Path("/etc/subuid").read_text().splitlines():
            name, low, count = line.split(":")
            if name == self.name:
                return range(int(low), int(low) + int(count))
        return range(0)

    def end_all(self) -> None:
        """Kill everything of the user."""
        for _ in range(100):
            left = self.processes()
            if not left:
                return
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.05)

    def delete(self) -> None:
        """Remove the account and its home."""
        self.end_all()
        subprocess.run(["userdel", "--remove", self.name], check=False, capture_output=True)


def wait_for(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """Wait until something is so; what it is."""
    return until(condition, seconds, every=0.02)


def proportional_set_kib(pid: int) -> int:
    """A process's share of memory."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise AssertionError(f"no Pss of {pid}")


if __name__ == "__main__":
    sys.exit("a module of the tests; run them with pytest")
