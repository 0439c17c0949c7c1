"""The caller's own files: opened to send, written from downloads."""

from __future__ import annotations

import _signal as signal  # the C half: signal itself loads enum, for 3 ms
import errno
import os
import stat
import sys

from svc.commandline import output
from svc.errors import FileRefused, UsageError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import FileIO
    from typing import Any

    from svc.errors import SvcError

# Bytes per system call into a file; more at once cost more on a virtual machine, see docs/performance-log.md.
WRITTEN = 64 * 1024
STANDARD_INPUT = ("-", "/dev/stdin")


def open_regular(path: str, flags: int = 0) -> tuple[FileIO, int]:
    """A regular file, unbuffered, and its size in bytes; raises FileRefused."""
    try:
        # O_NONBLOCK: opening a pipe without a writer must not block
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        is_link = bool(flags & os.O_NOFOLLOW) and os.path.islink(path)
        raise unreadable(path, error, "name the file itself, not a link to it" if is_link else "") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise FileRefused(f"{path} is not a regular file")
    return open(descriptor, "rb", buffering=0), status.st_size


def open_to_send(path: str) -> tuple[Any, int | None]:
    """A file and its size; no size of standard input and of a pipe such as `<(COMMAND)`.

    Raises FileRefused.
    """
    if path in STANDARD_INPUT:
        return sys.stdin.buffer, None
    if is_inherited(path):
        try:
            file = open(path, "rb", buffering=0)  # noqa: SIM115 (the caller closes it)
        except OSError as error:
            raise unreadable(path, error) from None
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file, None
        file.close()
    return open_regular(path)


def is_inherited(path: str) -> bool:
    """Whether a path stands for an open file of this process, whose name it has not."""
    return path in STANDARD_INPUT or path.startswith("/dev/fd/")


def unreadable(path: str, error: OSError | ValueError, hint: str = "") -> SvcError:
    """FileRefused for a local file; UsageError where a URL was given instead of one."""
    reason = getattr(error, "strerror", None) or error
    scheme, separator, _ = path.partition("://")
    if getattr(error, "errno", 0) in (errno.ENOENT, errno.ENOTDIR) and scheme.isalnum() and separator:
        to_read = f"curl --fail --location --remote-name {output.shell_quote(path)}"
        usage = UsageError(f"{path} is an address, not a local file", hint=f"{to_read}  # and name that file")
        usage.names_url = True
        return usage
    return FileRefused(f"cannot read {path}: {reason}", hint=hint)


def refuse_existing(path: str, force: bool, forced: str) -> None:
    """Raise FileRefused for a directory or, without force, any existing file; `forced` is the hint."""
    if os.path.isdir(path):
        raise FileRefused(f"{path} is a directory; name the file to write")
    if os.path.lexists(path) and not force:
        raise FileRefused(f"{path} already exists", hint=forced)


def save(parts: Iterable[bytes], path: str, force: bool, forced: str, *, executable: bool = False) -> None:
    """Write a draft in the same directory and rename it when complete; a link at `path` is not followed.

    An error, Ctrl-C or a closed terminal removes the draft. Raises FileRefused,
    and whatever the parts raise.
    """
    name = os.fsdecode(os.fsencode(os.path.basename(path))[:200])  # a name has at most 255 bytes
    draft = os.path.join(os.path.dirname(path), f".{name}.{os.urandom(4).hex()}")
    mode = 0o777 if executable else 0o666
    with ExitingOnSignals():
        try:
            with open(
                os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb"
            ) as file:
                for part in parts:
                    for start in range(0, len(part), WRITTEN):
                        file.write(memoryview(part)[start : start + WRITTEN])
                file.flush()
                if force:  # or a power failure could lose both the old file and this one
                    os.fsync(file.fileno())
            if force:
                os.rename(draft, path)
            else:
                _link(draft, path, forced)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise FileRefused(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from None
        finally:
            try:
                os.unlink(draft)
            except (OSError, ValueError):
                pass  # already renamed, or never created


class ExitingOnSignals:
    """In the block SIGHUP and SIGTERM raise SystemExit, so that drafts are removed; not where ignored."""

    def __enter__(self) -> None:
        both = (signal.SIGHUP, signal.SIGTERM)
        self.numbers = [number for number in both if signal.getsignal(number) == signal.SIG_DFL]
        for number in self.numbers:
            signal.signal(number, self._exit)

    def __exit__(self, *_error: object) -> None:
        for number in self.numbers:
            signal.signal(number, signal.SIG_DFL)

    @staticmethod
    def _exit(number: int, _frame: object) -> None:
        sys.exit(128 + number)


def _link(draft: str, path: str, forced: str) -> None:
    """Give the draft its name, unless another file has it by now."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise FileRefused(f"{path} already exists", hint=forced) from None
    except OSError:  # a file system without hard links
        refuse_existing(path, False, forced)
        os.rename(draft, path)


def refuse_terminal(instead: str) -> None:
    """Raise FileRefused if standard output is a terminal, which would obey control sequences in a file."""
    if output.on_terminal():
        raise FileRefused("refusing to write a raw file to a terminal", hint=instead)


def write_out(parts: Iterable[bytes]) -> None:
    """Write the parts to standard output."""
    sys.stdout.flush()
    for part in parts:
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
