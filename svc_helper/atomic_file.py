"""Replace a file by draft and rename: readers see the old content or the new, never a part.

Imports only os: programs whose start is waited for use it.
"""

from __future__ import annotations

import os


def replace(path: str, content: bytes, mode: int = 0o600, *, draft: str = "", durable: bool = True) -> None:
    """Give the file this content and mode; with `durable` also after a power cut. Raises OSError.

    The directory belongs to the caller: whoever can write there could exchange the draft. Its name is
    unique unless `draft` gives one, which the next run after an interrupted one then removes.
    """
    directory, name = os.path.split(path)
    draft = draft or os.path.join(directory, f".{name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        write(draft, content, mode, durable=durable)
        os.rename(draft, path)
    except OSError:
        try:
            os.unlink(draft)
        except OSError:
            pass
        raise
    if durable:
        sync_directory(directory)


def write(path: str, content: bytes, mode: int, *, durable: bool = True) -> None:
    """Create a draft in place of an interrupted run's; one that could not be written whole stays."""
    if os.path.lexists(path):
        os.unlink(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)  # whatever the umask
        file.write(content)
        file.flush()
        if durable:
            os.fsync(file.fileno())


def sync_directory(path: str) -> None:
    """Make the names in a directory durable: creations, renames, removals."""
    directory = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
