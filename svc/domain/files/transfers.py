"""The bytes of files: read, downloaded, uploaded and archived, each a call with a data stream.

What an agent says of a file (its size above all) decides what is promised to the
client; what comes over the data stream is then counted, so that a file that is shorter
or longer than was said is never passed off as whole. Each transfer holds one of
the caller's long calls. How the bytes move is the listener's own matter.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from svc.domain import configuration, long_calls
from svc.domain import untrusted as answers
from svc.domain.files import fs, paths
from svc.domain.principal import Caller
from svc.errors import EngineFailed, EngineTimeout, RangeUnsatisfiable, TooLarge
from svc.helper.transfers import Transfer
from svc.limits import (
    ARCHIVE_BYTES_MAX,
    ARCHIVE_MEMBERS_MAX,
    ARCHIVE_WALK_S,
    FILE_COMMIT_S,
    FILE_FACTS_S,
    FILE_READ_MAX,
)


class Opened:
    """A file that an agent has opened: {size, mtime_ns, etag} and its bytes, when they are asked for."""

    def __init__(self, transfer: Transfer, told: dict[str, Any], untrusted: Mapping[str, Any]) -> None:
        self.transfer = transfer
        self.told = told  # of the audit row
        self.size = answers.get_count(untrusted, "size")
        self.mtime_ns = answers.get_number(untrusted, "mtime_ns")
        self.etag = fs.etag(untrusted)

    def begin(self, offset: int, count: int) -> None:
        """Ask for these bytes; they come over the data stream, no more and no fewer."""
        self.told["bytes"] = 0
        self.transfer.send({"go": [offset, count]})


class Upload:
    """A file that an agent is about to take; it is there when commit() has come back."""

    def __init__(self, transfer: Transfer, told: dict[str, Any], path: bytes) -> None:
        self.transfer = transfer
        self.told = told
        self.path = path

    def commit(self, count: int) -> dict[str, Any]:
        """All `count` bytes have been sent: give the file its name.

        Returns {path, size, modified_at, replaced, etag}.
        """
        self.transfer.stream.finish()
        self.transfer.send({"commit": count})
        untrusted = self.transfer.end(FILE_COMMIT_S)
        if answers.get_count(untrusted, "size") != count:
            raise EngineFailed("the file is not of the size that was sent")
        return {
            "path": paths.encode(self.path),
            "size": count,
            "modified_at": fs.moment(answers.get_number(untrusted, "mtime_ns")),
            "replaced": answers.get_flag(untrusted, "replaced"),
            "etag": fs.etag(untrusted),
        }


class Archive:
    """A directory that an agent has counted and is about to pack."""

    def __init__(self, transfer: Transfer, told: dict[str, Any], untrusted: Mapping[str, Any]) -> None:
        self.transfer = transfer
        self.told = told
        self.members, self.bytes, self.skipped = (
            answers.get_count(untrusted, key) for key in ("members", "bytes", "skipped")
        )
        told.update(members=self.members, skipped=self.skipped)

    def begin(self) -> None:
        """Ask for the archive; it comes over the data stream, to its end."""
        self.told["bytes"] = 0
        self.transfer.send({"go": True})

    def end(self) -> None:
        """Its bytes have come to an end; raises what the agent says unless that was the archive's own."""
        untrusted = self.transfer.end(FILE_FACTS_S)
        self.told.update({key: answers.get_count(untrusted, key) for key in ("changed", "vanished")})


@contextmanager
def opened(
    caller: Caller, verb: str, root: str, path: bytes, *, hangup_fds: Sequence[int] = ()
) -> Iterator[Opened]:
    """A regular file, open for the length of the block; `verb` is what the audit rows call it.

    Ends with Conflict when the caller's connection or one of hangup_fds hangs up.
    """
    arguments = {"root": root, "path": paths.encode(path)}
    with (
        fs.audited(caller, verb, root, path) as told,
        long_calls.counted(caller),
        caller.transfer("fs.read", arguments, hangup_fds=_watched(caller, hangup_fds)) as transfer,
    ):
        yield Opened(transfer, told, transfer.receive(FILE_FACTS_S))


def read(
    caller: Caller, root: str, path: bytes, offset: int, length: int, *, hangup_fds: Sequence[int] = ()
) -> dict[str, Any]:
    """A part of a file, at most FILE_READ_MAX bytes: {size, content}; `content` is bytes.

    Raises RangeUnsatisfiable for an offset behind the end.
    """
    with opened(caller, "read", root, path, hangup_fds=hangup_fds) as file:
        if offset > file.size:
            raise behind_the_end(file.size)
        count = min(length, file.size - offset, FILE_READ_MAX)
        file.begin(offset, count)
        content = _whole(file, count)
        return {"size": file.size, "content": content}


def _whole(file: Opened, count: int) -> bytes:
    stream, until = file.transfer.stream, time.monotonic() + FILE_FACTS_S
    content = bytearray()
    while len(content) < count:
        part = stream.receive(count - len(content))
        if part == b"":
            file.transfer.fail()
        if part:
            content += part
            file.told["bytes"] = len(content)
        elif time.monotonic() >= until:
            raise EngineTimeout("the file took too long to read")
        else:
            file.transfer.wait({stream.fileno(): select.POLLIN}, until - time.monotonic())
    return bytes(content)


@contextmanager
def upload(
    caller: Caller,
    root: str,
    path: bytes,
    size: int | None,
    *,
    force: bool = False,
    hangup_fds: Sequence[int] = (),
) -> Iterator[Upload]:
    """A place for a file, for the length of the block; without its commit() nothing is left of it.

    `size` is None where the client does not know. Raises TooLarge, AlreadyThere
    unless `force`, StorageFull. The caller's connection is not watched: its end
    is the end of the body.
    """
    arguments = {"root": root, "path": paths.encode(path), "size": size, "replace": force}
    with fs.audited(caller, "upload", root, path, writing=True, size=size, force=force) as told:
        require_size(size or 0)
        with (
            long_calls.counted(caller),
            caller.transfer("fs.write", arguments, hangup_fds=hangup_fds) as transfer,
        ):
            if transfer.receive(FILE_FACTS_S) != {"ready": True}:
                raise EngineFailed("the engine did not say that it is ready for the file")
            told["bytes"] = 0
            yield Upload(transfer, told, path)


@contextmanager
def archive(caller: Caller, root: str, path: bytes, *, hangup_fds: Sequence[int] = ()) -> Iterator[Archive]:
    """A directory, counted, for the length of the block. Raises TooLarge, with numbers, before any byte."""
    arguments = {"root": root, "path": paths.encode(path), "members_max": ARCHIVE_MEMBERS_MAX}
    further_down = f"svc fs ls {fs.command_word(root, path)}  # archive one of its directories"
    with (
        fs.audited(caller, "archive", root, path) as told,
        long_calls.counted(caller),
        caller.transfer("fs.archive", arguments, hangup_fds=_watched(caller, hangup_fds)) as transfer,
    ):
        found = Archive(transfer, told, transfer.receive(ARCHIVE_WALK_S))
        if found.members > ARCHIVE_MEMBERS_MAX:
            raise TooLarge(
                f"an archive has at most {ARCHIVE_MEMBERS_MAX} members",
                details={"limit": ARCHIVE_MEMBERS_MAX, "members": found.members},
                hint=further_down,
            )
        if found.bytes > ARCHIVE_BYTES_MAX:
            raise TooLarge(
                f"an archive has at most {ARCHIVE_BYTES_MAX} bytes of files",
                details={"limit": ARCHIVE_BYTES_MAX, "bytes": found.bytes},
                hint=further_down,
            )
        yield found


def require_size(size: int) -> None:
    """Raise TooLarge for a file that may not be uploaded."""
    upload_max = configuration.current.upload_max
    if size > upload_max:
        raise TooLarge(
            f"at most {upload_max} bytes may be uploaded as one file",
            details={"limit": upload_max, "size": size},
        )


def behind_the_end(size: int) -> RangeUnsatisfiable:
    """The refusal of bytes that a file does not have."""
    return RangeUnsatisfiable(f"the file has {size} bytes", details={"size": size})


def _watched(caller: Caller, hangup_fds: Sequence[int]) -> list[int]:
    return [*([] if caller.hangup_fd is None else [caller.hangup_fd]), *hangup_fds]
