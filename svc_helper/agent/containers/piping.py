"""One command in a running workspace with a standard input, its output sent as it comes.

Binary-safe and without loss both ways: frames of wire/terminal_frames.py over a
pair of message sockets. A caller that reads slowly slows the command; one that
goes ends it, with all its descendants, as for `ctr.exec`.
"""

from __future__ import annotations

import os
import select
import socket
from contextlib import suppress

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import exec as executing
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime.runtime_errors import refused_by_kernel
from svc_helper.wire.quick_typing import Any
from svc_helper.wire.terminal_frames import DATA_MAX, ERRORS, FRAME_MAX, INPUT, INPUT_END, OUTPUT


def pipe(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Run the command until it ends, its timeout, or the caller goes."""
    stream = socket.socket(fileno=call.data_stream("output"))
    with stream:
        if stream.type != socket.SOCK_SEQPACKET:
            raise Failure("protocol", "no message socket came with the call")
        try:
            return executing.run(podman, call, args, Pipes(call, stream))
        finally:
            drain(stream)


class Pipes:
    """The three pipes of a command, and the frames that wait for one of them or for the caller."""

    def __init__(self, call: Call, stream: socket.socket) -> None:
        self._call, self._stream = call, stream
        self.stdin: int | None
        self.stdin, self._input = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._input, False)
        self._typed = b""  # of the latest frame of input
        self._frame = b""  # of output, not sent yet
        self._begun, self._begins = -1, -1  # a pipe that gets the command's pid, until it has begun
        self._refused = False
        self._held = b""  # the first errors, while they may be crun's: the kernel refused the program
        self._is_first_error = True
        self._reading: dict[int, bytes] = {}
        self.writing: list[int] = []
        for kind in (OUTPUT, ERRORS):
            read, write = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(read, False)
            self._reading[read] = kind
            self.writing.append(write)

    def begin_pipe(self) -> int:
        """A pipe for crun to write the pid into: what is printed before that is crun's, and not sent."""
        self._begun, self._begins = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._begun, False)
        return self._begins

    def close_writing(self) -> None:
        """Close the command's own ends, once it has them itself."""
        if self._begins >= 0:
            os.close(self._begins)
            self._begins = -1
        while self.writing:
            os.close(self.writing.pop())
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None

    def events(self) -> dict[int, int]:
        """The poll masks of the descriptors to wait for; the kernel reports hang-ups without being asked."""
        stream = select.POLLOUT if self._frame else 0
        events = {} if self._frame else dict.fromkeys(self._sent(), select.POLLIN)
        if self._begun >= 0 and not self._refused:
            events[self._begun] = select.POLLIN
        if self._input >= 0 and self._typed:
            events[self._input] = select.POLLOUT
        elif self._input >= 0:
            stream |= select.POLLIN
            events[self._input] = 0  # the command has closed its end
        return events | ({self._stream.fileno(): stream} if stream else {})

    def act(self, ready: set[int]) -> None:
        """Move what can be moved."""
        if self._input in ready:
            self._write_input()
        if self._stream.fileno() in ready:
            self._send()
            self._receive()
        if self._begun in ready:
            self._has_begun()
        for fd in self._sent():
            if fd in ready and not self._frame:
                self._take(fd)

    def finish(self) -> None:
        """Send what an ended command left, without waiting for processes that still hold the pipes."""
        if self._begun >= 0:
            self._has_begun()
        for fd in self._sent():
            while True:
                while self._frame:
                    self._call.wait({self._stream.fileno(): select.POLLOUT})
                    self._send()
                if fd not in self._reading or not self._take(fd):
                    break

    def first_errors(self, most: int) -> str:
        """Those that are held back; the others have been sent."""
        return self._held.decode(errors="replace")

    def replace_errors(self, text: str) -> None:
        """Have this in place of what is held back, or after what has been sent."""
        self._held = b""
        self._send_whole(ERRORS + text.encode())

    def _send_whole(self, frame: bytes) -> None:
        self._frame = frame
        while self._frame:
            self._call.wait({self._stream.fileno(): select.POLLOUT})
            self._send()

    def release(self) -> None:
        """Send what is held back: the command began, and wrote it."""
        if self._held:
            self._send_whole(ERRORS + self._held)
            self._held = b""

    def close(self) -> None:
        """Close all pipes."""
        self.close_writing()
        self._close_input()
        if self._begun >= 0:
            os.close(self._begun)
            self._begun = -1
        while self._reading:
            os.close(self._reading.popitem()[0])

    def _sent(self) -> list[int]:
        """The pipes of output: no errors before the command has begun."""
        return [fd for fd, kind in self._reading.items() if kind == OUTPUT or self._begun < 0]

    def _has_begun(self) -> None:
        try:
            begun = os.read(self._begun, 32)
        except BlockingIOError:
            return
        if begun:
            os.close(self._begun)
            self._begun = -1
        else:
            self._refused = True  # crun is about to end

    def _take(self, fd: int) -> bool:
        """Read some output and send it; whether there may be more."""
        try:
            part = os.read(fd, DATA_MAX - len(self._held))
        except BlockingIOError:
            return False
        if not part:
            del self._reading[fd]
            os.close(fd)
            return False
        kind = self._reading[fd]
        if kind == ERRORS and self._is_first_error:
            self._is_first_error = False
            if refused_by_kernel(part.decode(errors="replace")):
                self._held = part
                return True
        self._frame = kind + (self._held + part if kind == ERRORS else part)
        self._held = b"" if kind == ERRORS else self._held
        self._send()
        return True

    def _send(self) -> None:
        if not self._frame:
            return
        try:
            self._stream.send(self._frame, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return
        except OSError:
            raise Failure("cancelled", "the caller has gone") from None
        self._frame = b""

    def _receive(self) -> None:
        if self._input < 0 or self._typed:
            return
        try:
            frame = self._stream.recv(FRAME_MAX + 1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            frame = b""
        if not frame:
            raise Failure("cancelled", "the caller has gone")
        if frame == INPUT_END:
            self._close_input()
        elif frame[:1] == INPUT and len(frame) <= FRAME_MAX:
            self._typed = frame[1:]
            self._write_input()
        else:
            raise Failure("protocol", "not a frame of input")

    def _write_input(self) -> None:
        try:
            if self._typed:
                self._typed = self._typed[os.write(self._input, self._typed) :]
            elif _is_hung_up(self._input):
                self._close_input()
        except BlockingIOError:
            pass
        except OSError:  # the command reads no more
            self._close_input()

    def _close_input(self) -> None:
        if self._input >= 0:
            os.close(self._input)
            self._input, self._typed = -1, b""


def drain(stream: socket.socket) -> None:
    """Take what the caller has sent and nobody reads: closed with that, its socket would lose our frames."""
    with suppress(OSError):
        stream.shutdown(socket.SHUT_RD)
        while stream.recv(FRAME_MAX, socket.MSG_DONTWAIT):
            pass


def _is_hung_up(fd: int) -> bool:
    poller = select.poll()
    poller.register(fd, 0)
    return bool(poller.poll(0))
