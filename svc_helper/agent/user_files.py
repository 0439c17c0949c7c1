"""Files in directories that the user can write: read with a bound, replaced by draft and rename."""

from __future__ import annotations

import os
import stat

from svc_helper import atomic_file

TYPE_CHECKING = False  # as typing's own, without its import: Podman's configuration is written by this
if TYPE_CHECKING:
    from typing import Any

_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_regular(path: str, flags: int = os.O_RDONLY) -> int:
    """Open a regular file; raises OSError for anything else, which may lie there as well.

    Opening a FIFO must not block, and a device must not be touched.
    """
    fd = os.open(path, flags | _FLAGS, 0o600)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError("not a regular file")
    return fd


def read(path: str, limit: int) -> bytes:
    """The first `limit` bytes of a regular file; raises OSError."""
    fd = open_regular(path)
    try:
        content = b""
        while len(content) < limit and (part := os.read(fd, limit - len(content))):
            content += part
        return content
    finally:
        os.close(fd)


def read_json(path: str, limit: int) -> Any:
    """The JSON value in a regular file; None for a file that cannot be read or is not JSON."""
    import json

    try:
        return json.loads(read(path, limit))
    except (OSError, ValueError, RecursionError):
        return None


def replace(path: str, text: str) -> None:
    """Replace a file, without fsync; readers see the old content or the new. Raises OSError."""
    atomic_file.replace(path, text.encode(), durable=False)
