"""Unpacks the build sources that came with the call: a plain tar of `Dockerfile` and `context/`.

The archive comes from the app; any other member is refused all the same.
"""

from __future__ import annotations

import os
import shutil
import tarfile

from svc_helper.agent.calls import Failure
from svc_helper.wire.quick_typing import IO

DOCKERFILE, CONTEXT = "Dockerfile", "context"
_MEMBERS_MAX = 20_000
_BYTES_MAX = 1024**3
_END_MIN, _END_MAX = 1024, 64 * 1024
_PART = 1024 * 1024


def unpack(file: IO[bytes], directory: str) -> None:
    """Write the Dockerfile and the context into a new directory; raises Failure for any other archive."""
    os.makedirs(f"{directory}/{CONTEXT}")
    left, count = _BYTES_MAX, 0
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                count, left = count + 1, left - member.size
                path = _checked(member)
                if count > _MEMBERS_MAX or left < 0:
                    raise _refused("too large")
                _write(archive, member, f"{directory}/{path}")
            _require_end(file, archive.offset)
    except (tarfile.TarError, ValueError, EOFError):
        raise _refused("damaged") from None
    if not os.path.isfile(f"{directory}/{DOCKERFILE}"):
        raise _refused("without a Dockerfile")


def _require_end(file: IO[bytes], offset: int) -> None:
    """Require the blocks of zeros at the end: tarfile takes a damaged header for the end, too."""
    file.seek(offset)
    rest = file.read(_END_MAX)
    if len(rest) < _END_MIN or rest.strip(b"\0"):
        raise _refused("damaged")


def _checked(member: tarfile.TarInfo) -> str:
    parts = member.name.rstrip("/").split("/")
    clean = not any(part in ("", ".", "..") for part in parts) and "\0" not in member.name
    if clean and (member.isreg() or member.isdir()) and (parts[0] == CONTEXT or parts == [DOCKERFILE]):
        return "/".join(parts)
    raise _refused("with a member that is no file of a context")


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    if member.isdir():
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    source = archive.extractfile(member)
    if source is None:
        raise _refused("damaged")
    mode = 0o755 if member.mode & 0o111 else 0o644
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with source, os.fdopen(fd, "wb", buffering=0) as target:
        shutil.copyfileobj(source, target, _PART)
        if os.fstat(fd).st_size != member.size:
            raise _refused("damaged")
        os.fchmod(fd, mode)
    # A constant time: Podman's step cache compares it.
    os.utime(path, (0, 0))


def _refused(why: str) -> Failure:
    return Failure("failed", f"the sources of the build cannot be used: an archive {why}")
