"""Read, download, upload and archive files, each a call with a data stream.

The size that an agent reports decides what the client is promised; the bytes of the
data stream are then counted, so that a file that is shorter or longer is never passed
off as complete. Each transfer is one of the caller's long calls. The listener moves the
bytes: svc.web.gunicorn_worker.transfers.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from svc.domain import configuration, untrusted
from svc.domain.files import fs, paths
from svc.domain.places import long_calls
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
    """A file that an agent has opened: {size, mtime_ns, etag}, and its bytes on request."""

    def __init__(
        self, transfer: Transfer, detail: dict[str, Any], untrusted_reply: Mapping[str, Any]
    ) -> None:
        self.transfer = transfer
        self.detail = detail  # of the audit row
        self.size = untrusted.get_count(untrusted_reply, "size")
        self.mtime_ns = untrusted.get_integer(untrusted_reply, "mtime_ns")
        self.etag = fs.etag(untrusted_reply)

    def begin(self, offset: int, count: int) -> None:
        """Request a range, which is then sent over the data stream."""
        self.detail["bytes"] = 0
        self.transfer.send({"go": [offset, count]})


class Upload:
    """A file that an agent is about to receive; it exists when commit() has returned."""

    def __init__(self, transfer: Transfer, detail: dict[str, Any], path: bytes) -> None:
        self.transfer = transfer
        self.detail = detail
        self.path = path

    def commit(self, count: int) -> dict[str, Any]:
        """Give the file its name after all `count` bytes have been sent.

        Returns {path, size, modified_at, replaced, etag}.
        """
        self.transfer.stream.finish()
        self.transfer.send({"commit": count})
        untrusted_reply = self.transfer.end(FILE_COMMIT_S)
        if untrusted.get_count(untrusted_reply, "size") != count:
            raise EngineFailed("the file does not have the size that was sent")
        return {
            "path": paths.encode(self.path),
            "size": count,
            "modified_at": fs.moment(untrusted.get_integer(untrusted_reply, "mtime_ns")),
            "replaced": untrusted.get_flag(untrusted_reply, "replaced"),
            "etag": fs.etag(untrusted_reply),
        }


class Entries:
    """The entries of a directory, which an agent has read and is about to send: {total}."""

    def __init__(
        self, transfer: Transfer, detail: dict[str, Any], untrusted_reply: Mapping[str, Any]
    ) -> None:
        self.transfer = transfer
        self.detail = detail
        self.total = untrusted.get_count(untrusted_reply, "total")

    def begin(self) -> None:
        """Request the lines, which are then sent over the data stream."""
        self.detail["bytes"] = 0
        self.transfer.send({"go": True})

    def end(self) -> None:
        """Check, after the end of the stream, that the list is complete; raises the agent's error."""
        untrusted_reply = self.transfer.end(FILE_FACTS_S)
        self.detail["entries"] = untrusted.get_count(untrusted_reply, "entries")


class Archive:
    """A directory that an agent has counted and is about to archive."""

    def __init__(
        self, transfer: Transfer, detail: dict[str, Any], untrusted_reply: Mapping[str, Any]
    ) -> None:
        self.transfer = transfer
        self.detail = detail
        self.members, self.bytes, self.skipped = (
            untrusted.get_count(untrusted_reply, key) for key in ("members", "bytes", "skipped")
        )
        detail.update(members=self.members, skipped=self.skipped)

    def begin(self) -> None:
        """Request the archive, which is then sent over the data stream."""
        self.detail["bytes"] = 0
        self.transfer.send({"go": True})

    def end(self) -> None:
        """Check, after the end of the stream, that the archive is complete; raises the agent's error."""
        untrusted_reply = self.transfer.end(FILE_FACTS_S)
        self.detail.update(
            {key: untrusted.get_count(untrusted_reply, key) for key in ("changed", "vanished")}
        )


@contextmanager
def opened(
    caller: Caller, verb: str, root: str, path: bytes, *, hangup_fds: Sequence[int] = ()
) -> Iterator[Opened]:
    """A regular file, open for the length of the block; `verb` is that of the audit rows.

    Raises Conflict when the caller's connection or one of hangup_fds hangs up.
    """
    arguments = {"root": root, "path": paths.encode(path)}
    with (
        fs.audited(caller, verb, root, path) as detail,
        long_calls.counted(caller),
        caller.transfer("fs.read", arguments, hangup_fds=caller.watched(hangup_fds)) as transfer,
    ):
        yield Opened(transfer, detail, transfer.receive(FILE_FACTS_S))


@contextmanager
def entries(
    caller: Caller, root: str, path: bytes, offset: int, *, hangup_fds: Sequence[int] = ()
) -> Iterator[Entries]:
    """All entries of a directory from an offset, in the order of fs.list_(), for the length of the block.

    The agent writes the lines, and the listener passes them on as it does a file's content: they tell
    an owner about that owner's files, and nothing here relies on them.
    """
    arguments = {"root": root, "path": paths.encode(path), "offset": offset}
    with (
        fs.audited(caller, "list", root, path) as detail,
        long_calls.counted(caller),
        caller.transfer("fs.entries", arguments, hangup_fds=caller.watched(hangup_fds)) as transfer,
    ):
        yield Entries(transfer, detail, transfer.receive(FILE_FACTS_S))


def read(
    caller: Caller, root: str, path: bytes, offset: int, length: int, *, hangup_fds: Sequence[int] = ()
) -> dict[str, Any]:
    """A part of a file, at most FILE_READ_MAX bytes: {size, content}; `content` is bytes.

    Raises RangeUnsatisfiable for an offset beyond the end.
    """
    with opened(caller, "read", root, path, hangup_fds=hangup_fds) as file:
        if offset > file.size:
            raise beyond_the_end(file.size)
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
            file.detail["bytes"] = len(content)
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
    """An upload, for the length of the block; without commit() nothing of it is kept.

    `size` is None if the client does not know it. Raises TooLarge, AlreadyThere unless
    `force`, StorageFull. The caller's connection is not watched: its end is that of
    the body.
    """
    arguments = {"root": root, "path": paths.encode(path), "size": size, "replace": force}
    with fs.audited(caller, "upload", root, path, writing=True, size=size, force=force) as detail:
        require_size(size or 0)
        with (
            long_calls.counted(caller),
            caller.transfer("fs.write", arguments, hangup_fds=hangup_fds) as transfer,
        ):
            if transfer.receive(FILE_FACTS_S) != {"ready": True}:
                raise EngineFailed("the engine is not ready to receive the file")
            detail["bytes"] = 0
            yield Upload(transfer, detail, path)


@contextmanager
def archive(caller: Caller, root: str, path: bytes, *, hangup_fds: Sequence[int] = ()) -> Iterator[Archive]:
    """A counted directory, for the length of the block. Raises TooLarge, with numbers, before any byte."""
    arguments = {"root": root, "path": paths.encode(path), "members_max": ARCHIVE_MEMBERS_MAX}
    hint = f"svc fs ls {fs.command_argument(root, path)}  # archive one of its directories"
    with (
        fs.audited(caller, "archive", root, path) as detail,
        long_calls.counted(caller),
        caller.transfer("fs.archive", arguments, hangup_fds=caller.watched(hangup_fds)) as transfer,
    ):
        found = Archive(transfer, detail, transfer.receive(ARCHIVE_WALK_S))
        if found.members > ARCHIVE_MEMBERS_MAX:
            raise TooLarge(
                f"an archive has at most {ARCHIVE_MEMBERS_MAX} members",
                details={"limit": ARCHIVE_MEMBERS_MAX, "members": found.members},
                hint=hint,
            )
        if found.bytes > ARCHIVE_BYTES_MAX:
            raise TooLarge(
                f"an archive has at most {ARCHIVE_BYTES_MAX} bytes of files",
                details={"limit": ARCHIVE_BYTES_MAX, "bytes": found.bytes},
                hint=hint,
            )
        yield found


def require_size(size: int) -> None:
    """Raise TooLarge for a file over the limit of uploads."""
    upload_max = configuration.current.upload_max
    if size > upload_max:
        raise TooLarge(
            f"at most {upload_max} bytes may be uploaded as one file",
            details={"limit": upload_max, "size": size},
        )


def beyond_the_end(size: int) -> RangeUnsatisfiable:
    """The error for a range beyond the end of a file."""
    return RangeUnsatisfiable(f"the file has {size} bytes", details={"size": size})
