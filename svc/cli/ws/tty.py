"""The user's own terminal while a remote one has it: raw, and put back on every way out.

Also on SIGTERM, SIGHUP and SIGQUIT, which then end the process as they would have; and with
what the remote programs switched on (another screen, mouse, pasting) switched off again.
"""

from __future__ import annotations

import _signal as signal  # the C half: signal itself loads enum, for 3 ms
import os
import sys
import termios

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# Private modes that outlive a program which is not left properly, and how each is put back.
PUT_BACK = {
    "1049": "l", "1047": "l", "47": "l", "1000": "l", "1002": "l", "1003": "l", "1005": "l", "1006": "l",
    "1015": "l", "1004": "l", "2004": "l", "1": "l", "7": "h", "25": "h",
}  # fmt: skip
INTRODUCER = b"\x1b[?"
SEQUENCE_MAX = 64


class Ended(BaseException):
    """A signal ends the process, after the terminal has been put back."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Modes:
    """The private modes that the output has set."""

    def __init__(self) -> None:
        self.changed: dict[str, None] = {}
        self._rest = b""

    def note(self, output: bytes) -> None:
        """Look for changes of modes in output, which may be cut anywhere."""
        data, self._rest = self._rest + output, b""
        start = data.find(INTRODUCER)
        while start >= 0:
            end = start + len(INTRODUCER)
            while end < len(data) and data[end : end + 1] in b"0123456789;":
                end += 1
            if end == len(data):
                break
            self._set(data[start + len(INTRODUCER) : end].decode("ascii"), chr(data[end]))
            start = data.find(INTRODUCER, end)
        last = data.rfind(b"\x1b", -SEQUENCE_MAX)
        if last >= 0 and all(byte in b"\x1b[?0123456789;" for byte in data[last:]):
            self._rest = data[last:]

    def put_back(self) -> bytes:
        """The output that puts them back."""
        return b"".join(f"\x1b[?{mode}{PUT_BACK[mode]}".encode() for mode in self.changed)

    def _set(self, modes: str, final: str) -> None:
        for mode in modes.split(";"):
            if mode not in PUT_BACK or final not in ("h", "l"):
                continue
            if final == PUT_BACK[mode]:
                self.changed.pop(mode, None)
            else:
                self.changed[mode] = None


class RawTerminal:
    """Standard input and output as one raw terminal, for the length of a block."""

    def __init__(self) -> None:
        self.modes = Modes()
        self.resized = True  # the remote end has yet to be told the size
        self._wake, self._woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> RawTerminal:
        self._saved = termios.tcgetattr(0)
        self._handlers = {number: signal.signal(number, self._end) for number in ENDING}
        self._handlers[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, self._note)
        self._handlers[signal.SIGCONT] = signal.signal(signal.SIGCONT, self._note)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        self._set_raw()
        return self

    def __exit__(self, *raised: object) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # none of them may come between
        try:
            self._leave_modes()
            termios.tcsetattr(0, termios.TCSANOW, self._saved)
        except (termios.error, OSError):
            pass  # it is gone, with its window
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)

    def fileno(self) -> int:
        """What becomes readable when a signal has come."""
        return self._wake

    def wakened(self) -> None:
        """Forget that a signal has come."""
        try:
            os.read(self._wake, 512)
        except BlockingIOError:
            pass

    def show(self, output: bytes) -> None:
        """Write output of the remote end."""
        self.modes.note(output)
        write(output)

    def _leave_modes(self) -> None:
        """Without waiting: a terminal that was stopped (Ctrl-S) must not keep its window."""
        leave = self.modes.put_back()
        if leave:
            os.set_blocking(1, False)
            try:
                os.write(1, leave)
            except OSError:
                pass
            finally:
                os.set_blocking(1, True)

    def _set_raw(self) -> None:
        iflag, oflag, cflag, lflag, ispeed, ospeed, chars = termios.tcgetattr(0)
        iflag &= ~(
            termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON
            | termios.IGNBRK | termios.PARMRK | termios.INLCR | termios.IGNCR
        )  # fmt: skip
        oflag &= ~termios.OPOST
        cflag = cflag & ~(termios.CSIZE | termios.PARENB) | termios.CS8
        lflag &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN | termios.ISIG)
        chars = list(chars)
        chars[termios.VMIN], chars[termios.VTIME] = 1, 0
        termios.tcsetattr(0, termios.TCSANOW, [iflag, oflag, cflag, lflag, ispeed, ospeed, chars])

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.resized = True
        if number == signal.SIGCONT:  # after a stop somebody else had the terminal
            self._set_raw()

    def _end(self, number: int, _frame: FrameType | None) -> None:
        raise Ended(number)


def write(data: bytes) -> None:
    """Write all of it to the terminal."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(1, view) :]
        except BlockingIOError:  # another program has made the terminal non-blocking
            import select

            select.select([], [1], [])


def end_by(number: int) -> int:
    """End this process by the signal that was held up; the exit code if it survives."""
    sys.stdout.flush()
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    return 128 + number
