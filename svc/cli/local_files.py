"""The caller's own files: what is sent, and what is fetched and written down."""

from __future__ import annotations

import os
import stat
import sys

from svc.cli import output
from svc.errors import FileRefused

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import FileIO


def open_regular(path: str) -> tuple[FileIO, int]:
    """A regular file to send and its size in bytes; raises FileRefused for what is none.

    Unbuffered: who reads it brings a buffer of their own.
    """
    try:
        # a pipe that nobody writes to must not be waited for
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise FileRefused(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise FileRefused(f"{path} is not a regular file")
    return open(descriptor, "rb", buffering=0), status.st_size


def refuse_existing(path: str, force: bool, forced: str) -> None:
    """Raise FileRefused where something is that may not be replaced; `forced` is the command that does."""
    if os.path.isdir(path):
        raise FileRefused(f"{path} is a directory; name the file to write")
    if os.path.lexists(path) and not force:
        raise FileRefused(f"{path} exists already", hint=forced)


def save(parts: Iterable[bytes], path: str, force: bool, forced: str) -> None:
    """Write a file beside its place and put it there once it is whole; a link there is not followed.

    Nothing is left of it when it is not finished, be it for an error, Ctrl-C or a
    terminal that is closed. Raises FileRefused, and whatever the parts raise.
    """
    name = os.fsdecode(os.fsencode(os.path.basename(path))[:200])  # of 255 bytes that a name may have
    beside = os.path.join(os.path.dirname(path), f".{name}.{os.urandom(4).hex()}")
    signals = _end_by_exception()
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            if force:  # or a power cut could take the file that is replaced and this one
                os.fsync(file.fileno())
        if force:
            os.rename(beside, path)
        else:
            _place(beside, path, forced)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise FileRefused(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from None
    finally:
        try:
            os.unlink(beside)
        except (OSError, ValueError):
            pass  # it is in its place, or was never made
        _restore(signals)


def _end_by_exception() -> list[int]:
    """Let the signals that would end the program raise SystemExit; returns which these are."""
    import signal

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    deadly = (signal.SIGHUP, signal.SIGTERM)
    numbers = [number for number in deadly if signal.getsignal(number) == signal.SIG_DFL]  # not under nohup
    for number in numbers:
        signal.signal(number, end)
    return list(numbers)


def _restore(signals: list[int]) -> None:
    import signal

    for number in signals:
        signal.signal(number, signal.SIG_DFL)


def _place(beside: str, path: str, forced: str) -> None:
    """Give the file its name, unless somebody has taken that meanwhile."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise FileRefused(f"{path} exists already", hint=forced) from None
    except OSError:  # a file system without hard links
        refuse_existing(path, False, forced)
        os.rename(beside, path)


def refuse_terminal(instead: str) -> None:
    """Raise FileRefused where standard output is a terminal, which would obey what a file may hold."""
    if output.on_terminal():
        raise FileRefused("standard output is a terminal, which no file is written to as it is", hint=instead)


def write_out(parts: Iterable[bytes]) -> None:
    """Write a file to standard output, byte for byte."""
    sys.stdout.flush()
    for part in parts:
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
