"""Starts a command with a terminal in the container, by crun, as a child of the shim.

crun makes the terminal in the container's own devpts, as `podman exec -it` has it, and
sends its master over a console socket, long before it has written the pid: that
is read later, and nobody waits for it.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress

from svc_helper.agent.calls import Failure
from svc_helper.agent.process import Process
from svc_helper.agent.process import start as start_process
from svc_helper.agent.runtime import crun, sealed_crun
from svc_helper.agent.runtime.process_tracker import ProcessTracker
from svc_helper.shim.starting import find_running
from svc_helper.shim.workspace import Workspace
from svc_helper.wire.quick_typing import Any

_ERROR_MAX = 4096
_TERM = "xterm-256color"
_PLAIN_TERM = "xterm"  # Podman's own default for every container
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
# The user's login shell ($1: the uid), bash for those who have a plain one or none, else sh. Variables
# that are not exported end with `exec`: the shell has none of these. A subshell for them would delay it.
_SHELL = """\
while IFS=: read -r svc_any svc_any svc_uid svc_any svc_any svc_any svc_shell
    do [ "$svc_uid" = "$1" ] && break
    svc_shell=
    done 2>/dev/null </etc/passwd
set -- "$svc_shell"
case $1 in */sh|*/ash|*/dash|*/busybox|*/nologin|*/false|*/sync|"") set -- bash;; esac
command -v "$1" >/dev/null 2>&1 && exec "$1"
command -v bash >/dev/null 2>&1 && exec bash
exec sh"""


class Console:
    """A running crun that is about to send its terminal's master."""

    def __init__(
        self, process: Process, listener: socket.socket, pid_pipe: int, errors: int, tracker: ProcessTracker
    ) -> None:
        """`pid_pipe` gets the command's pid on the host, the file `errors` crun's messages."""
        self.process, self.pid_pipe = process, pid_pipe
        self._sock, self._connected = listener, False
        self._errors, self._tracker = errors, tracker

    def fileno(self) -> int:
        """What to watch until the master has been received: another one after crun has connected."""
        return self._sock.fileno()

    def take_master(self) -> int | None:
        """The terminal's master, non-blocking; None while it has not been sent.

        Raises OSError and EOFError when it will not be.
        """
        try:
            if not self._connected and not self._accept():
                return None
            data, fds, _, _ = socket.recv_fds(
                self._sock, 4096, 1, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
            )
        except BlockingIOError:
            return None
        if not fds and not data:
            raise EOFError
        if not fds:
            return None
        os.set_blocking(fds[0], False)
        return fds[0]

    def _accept(self) -> bool:
        """Whether crun has connected, before it makes the terminal."""
        sock, _ = self._sock.accept()
        peer = struct.unpack("i2I", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if peer[1] != os.geteuid():
            sock.close()
            return False
        self.stop_listening()
        self._sock, self._connected = sock, True
        return True

    def read_errors(self) -> str:
        """crun's error messages."""
        return os.pread(self._errors, _ERROR_MAX, 0).decode(errors="replace")

    def stop_listening(self) -> None:
        """Close the console socket, which is needed once."""
        if not self._connected:
            with suppress(OSError):
                os.unlink(self._sock.getsockname())
        self._sock.close()

    def close(self) -> None:
        """Close what is left, after crun has ended."""
        self.stop_listening()
        os.close(self.pid_pipe)
        os.close(self._errors)
        self._tracker.close()


class Consoles:
    """Starts consoles in one run of a container, whose configuration is read once."""

    def __init__(self, workspace: Workspace, directory: str) -> None:
        """`directory` is for the console sockets."""
        self._workspace, self._directory = workspace, directory
        self._process: dict[str, Any] | None = None

    def start(self, name: str, command: list[str] | None, size: tuple[int, int]) -> Console:
        """Start the command, without one the user's shell; raises Failure and OSError."""
        workspace = self._workspace
        running = find_running(workspace)
        if self._process is None:
            self._process = crun.read_process(workspace.home, running)
        if self._process is None:
            raise Failure("failed", "the container's configuration cannot be read")
        process = self._process | {"env": _with_locale(_with_term(self._process["env"]))}
        mark = f"{workspace.id}-{name}-{os.urandom(4).hex()}"
        described = crun.exec_process(running, process, command or _shell(process), mark, size)
        tracker = ProcessTracker(workspace.home, mark, running.cgroup, by_crun=bool(running.cgroup))
        try:
            return self._spawn(running, tracker, described, f"{self._directory}/{workspace.id}.{name}")
        except OSError:
            tracker.close()
            raise

    def _spawn(self, running: crun.Running, tracker: ProcessTracker, described: bytes, path: str) -> Console:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        opened: list[int] = []
        try:
            with suppress(FileNotFoundError):
                os.unlink(path)
            listener.bind(path)
            listener.listen(1)
            listener.setblocking(False)
            read, write = os.pipe2(os.O_CLOEXEC)
            opened = [read, write, os.memfd_create("svc-crun-log"), os.memfd_create("svc-process")]
            os.set_blocking(read, False)
            os.write(opened[3], described)
            program = sealed_crun.program()
            argv = crun.exec_argv(self._workspace.home, running, tracker.group, program)
            argv[-1:-1] = ["--pid-file=/proc/self/fd/5", f"--console-socket={path}"]
            # All of ours are at least __main__.RESERVED.
            fds = {0: None, 1: None, 2: None, 3: opened[3], 4: opened[2], 5: write, **program.fds}
            process = start_process(argv, crun.environment(self._workspace.home), fds, setsid=True)
            os.close(write)
            os.close(opened[3])
            return Console(process, listener, read, opened[2], tracker)
        except OSError:
            for fd in opened:
                os.close(fd)
            listener.close()
            raise


def _shell(process: dict[str, Any]) -> list[str]:
    user = process.get("user")
    uid = user.get("uid") if isinstance(user, dict) else None
    return ["/bin/sh", "-c", _SHELL, "sh", str(uid or 0)]


def _with_term(env: list[str]) -> list[str]:
    """The environment with a TERM: the workspace's own, unless that is only Podman's default."""
    own = [entry.partition("=")[2] for entry in env if str(entry).startswith("TERM=")]
    if own and own[-1] not in ("", _PLAIN_TERM, "dumb"):
        return env
    return [*(entry for entry in env if not str(entry).startswith("TERM=")), f"TERM={_TERM}"]


def _with_locale(env: list[str]) -> list[str]:
    """The environment with UTF-8 for characters, as viewers have it, unless it has a locale of its own."""
    if any(str(entry).partition("=")[0] in _LOCALE and not str(entry).endswith("=") for entry in env):
        return env
    return [*env, "LC_CTYPE=C.UTF-8"]  # glibc and musl have it without files
