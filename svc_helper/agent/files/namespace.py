"""Files of the user's subordinate ids, reached through the user's own namespace.

What a container's other users wrote (a database's directory of mode 0700) belongs to subordinate
ids, which the user itself may not read or change. In the user namespace of its rootless Podman it
may: there the user is root over exactly these ids, by the kernel's rules and without any right of
the host's root. A call that is refused starts one process there (namespace_program.py) and asks it
to open the file, to remove the tree or to count its bytes; most calls never need it.
"""

from __future__ import annotations

import errno
import os
import select
import socket

from svc_helper import interpreter
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import beneath
from svc_helper.agent.files.owners import Owners
from svc_helper.agent.files.sizes import Size
from svc_helper.agent.home import Home
from svc_helper.agent.process import Process, start
from svc_helper.agent.runtime import crun
from svc_helper.wire import protocol
from svc_helper.wire.arguments import path_text
from svc_helper.wire.quick_typing import Any

_START_S = 10  # for Podman to create the namespace, where no process holds it
_PROGRAM = "svc_helper.agent.files.namespace_program"


class Namespace:
    """The process in the user's namespace, started when a call first needs it and ended with the call."""

    def __init__(self, home: Home, call: Call) -> None:
        self.home, self.call = home, call
        self.owners = Owners(home)
        self._channel: socket.socket | None = None
        self._process: Process | None = None
        self._failed = False

    def __enter__(self) -> Namespace:
        return self

    def __exit__(self, *raised: object) -> None:
        self._close()

    def open_(
        self, directory: int, path: bytes, flags: int, *, resolve: int = 0, refused: bool = False
    ) -> int:
        """beneath.open_() for reading, or with O_PATH; as the user, and in the namespace if refused."""
        try:
            if refused:  # the user itself was, a moment ago
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return beneath.open_(directory, path, flags, resolve=resolve)
        except PermissionError:
            if not self._start():
                raise
        return self._ask(directory, {"open": [path_text(path), flags, resolve]}).fds[0]

    def stat(self, directory: int, name: bytes) -> os.stat_result:
        """The status of a name in a directory, links not followed."""
        try:
            return os.stat(name, dir_fd=directory, follow_symlinks=False)
        except PermissionError:
            if not self._is_foreign(directory):
                raise
        with beneath.closing(self.open_(directory, name, os.O_PATH | os.O_NOFOLLOW)) as found:
            return os.fstat(found)

    def readlink(self, directory: int, name: bytes) -> bytes:
        """The target of a link in a directory."""
        try:
            return os.readlink(name, dir_fd=directory)
        except PermissionError:
            if not self._is_foreign(directory):
                raise
        with beneath.closing(self.open_(directory, name, os.O_PATH | os.O_NOFOLLOW)) as found:
            return os.readlink(b"", dir_fd=found)

    def remove(
        self, directory: int, path: bytes, *, recursive: bool, before: int = 0
    ) -> dict[str, Any] | None:
        """remove.remove_below() in the namespace; None where it cannot be entered.

        `before` names were removed already, which the progress includes.
        """
        if not self._start():
            return None

        def report(facts: dict[str, Any]) -> None:
            self.call.progress({"removed": before + int(facts["removed"])})

        data: dict[str, Any] = self._ask(directory, {"remove": [path_text(path), recursive]}, report).message[
            "data"
        ]
        return data

    def measure(self, directory: int, path: bytes, *, seconds: float, skip: tuple[int, int]) -> Size | None:
        """tree_size.measure() in the namespace; None where it cannot be entered."""
        if not self._start():
            return None
        request = {"measure": [path_text(path), int(seconds * 1000), *skip]}
        return Size(*self._ask(directory, request).message["data"]["size"])

    def _is_foreign(self, directory: int) -> bool:
        return self.owners.is_subordinate(os.fstat(directory).st_uid)

    # --- the process ---------------------------------------------------------------------

    def _start(self) -> bool:
        """Whether the process runs; tried once in a call."""
        if self._channel is None and not self._failed:
            pause = crun.pause_pid(self.home)
            self._failed = not (pause and self._start_by(_enter_argv(pause))) and not self._start_by(
                ["/usr/bin/env", "podman", "unshare"]
            )
        return not self._failed

    def _start_by(self, argv: list[str]) -> bool:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel = ours
        with theirs:
            fds = {0: theirs.fileno(), 1: None, 2: None}
            environment = crun.environment(self.home)
            self._process = start([*argv, *interpreter.command(_PROGRAM)], environment, fds, setsid=True)
        try:
            if self.call.wait({ours.fileno(): select.POLLIN}, _START_S):
                return protocol.receive(ours).message == {"ready": True}
        except (EOFError, OSError, protocol.ProtocolError):
            self.call.log("the user's namespace cannot be entered", "warning", program=argv[0])
        self._close()
        return False

    def _ask(self, directory: int, request: dict[str, Any], report: Any = None) -> protocol.Frame:
        """Send a request with a directory's descriptor; the reply. Raises OSError or Failure of the reply."""
        channel = self._channel
        if channel is None:
            raise Failure("unavailable", "the user's namespace cannot be entered")
        try:
            protocol.send(channel, request, [directory])
            while True:
                self.call.wait({channel.fileno(): select.POLLIN})
                frame = protocol.receive_reply(channel)
                if "progress" not in frame.message:
                    break
                if report is not None:
                    report(frame.message["progress"])
        except (EOFError, OSError, protocol.ProtocolError):
            raise Failure("unavailable", "the process in the user's namespace ended; try again") from None
        if frame.message["ok"]:
            return frame
        if "errno" in frame.message:
            number = frame.message["errno"]
            raise OSError(number, os.strerror(number))
        raise Failure(frame.message["code"], frame.message["message"])

    def _close(self) -> None:
        """End the process: it meets the end of its socket, and is killed."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            self._process.finish(0)
            self._process = None


def _enter_argv(pause_pid: int) -> list[str]:
    """The beginning of a command line in the user namespace alone; directories come as descriptors."""
    return ["/usr/bin/nsenter", "--preserve-credentials", "-U", f"--target={pause_pid}", "--"]
