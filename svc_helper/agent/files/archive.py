"""Send a directory as a compressed tar archive over the app's data stream: `fs.archive`, a conversation.

The directory is walked twice, first to count it, then to write it through a
compressor process, without a copy on the disk. A file that changes between is
archived as it is when its turn comes, or left out; the archive itself is always complete.
"""

from __future__ import annotations

import errno
import mmap
import os
import select
import stat
from contextlib import closing

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import beneath, tar_stream
from svc_helper.agent.files.compressor import Compressor
from svc_helper.agent.files.namespace import Namespace
from svc_helper.agent.files.read import send_file
from svc_helper.agent.files.walk import Found, Links, Walk
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes
from svc_helper.wire.quick_typing import Any

_WHOLE_MAX = 1024 * 1024  # bytes of a file that is read before its header is written
_HEADERS_MAX = 16 * 1024  # bytes of one member's headers, with the longest names
_SEND_AT = 128 * 1024  # bytes of small members written at once
_BYTES_MAX = 2**63 - 1  # the app accepts no larger number; a few sparse files may have more
_ZEROS = memoryview(bytes(64 * 1024))


def archive(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.archive`: progress {"members", "bytes", "skipped", "skipped_names"}, message {"go"}, the totals.

    `bytes` are those of the files, each once, with their holes. The count stops at one
    more than `members_max`; a tree that grows beyond it afterwards is `too_large`.
    Names in the archive begin with that of the directory (for a root, its id). The
    reply {"members", "bytes", "changed", "vanished"} is sent when all data has been
    compressed and taken; what the stream carries before a failure is no archive.
    """
    path = path_bytes(args["path"])
    name = path.rpartition(b"/")[2] or args["root"].encode()
    with (
        beneath.closing(call.data_stream("output")) as output,
        beneath.refusing(path),
        Namespace(podman.home, call) as namespace,
        beneath.closing(_open(namespace, args["root"], path)) as base,
    ):
        counted = count(Walk(call, base, namespace), args["members_max"])
        call.progress(counted, wait=True)
        call.receive("go")
        with closing(Compressor(output)) as compressor:
            totals = _write(Walk(call, base, namespace), name, compressor, args["members_max"])
        totals["vanished"] += max(0, totals.pop("skipped") - counted["skipped"])
        return totals


def _open(namespace: Namespace, root_name: str, path: bytes) -> int:
    with beneath.closing(beneath.root(namespace.home, root_name)) as root:
        return namespace.open_(root, path, os.O_RDONLY | os.O_DIRECTORY)


def count(walk: Walk, members_max: int) -> dict[str, Any]:
    """Count the members of an archive, the bytes of their content, and what is left out."""
    members = total = 0
    links = Links()
    with closing(iter(walk)) as entries:
        for found in entries:
            size = _size(walk, links, found)
            if size is not None:
                members += 1
                total += size
            if members > members_max:
                break
    skipped = {"skipped": walk.skipped, "skipped_names": walk.skipped_names}
    return {"members": members, "bytes": min(total, _BYTES_MAX), **skipped}


def _size(walk: Walk, links: Links, found: Found) -> int | None:
    """The bytes of a member's content; None for an entry that is left out."""
    entry = found.entry
    if entry is None or not entry.is_file(follow_symlinks=False):
        return 0
    try:
        status = walk.namespace.stat(found.directory, found.name)
    except OSError:
        return None
    readable = (
        (status.st_uid == walk.uid and status.st_mode & stat.S_IRUSR)
        or walk.namespace.owners.is_subordinate(status.st_uid)
        or os.access(found.name, os.R_OK, dir_fd=found.directory, effective_ids=True, follow_symlinks=False)
    )
    if not readable:
        walk.skip(found.path)
        return None
    if status.st_nlink > 1:
        if links.find(status) is not None:
            return 0
        links.add(status, b"")
    return status.st_size


def _write(walk: Walk, name: bytes, compressor: Compressor, members_max: int) -> dict[str, Any]:
    packer = _Packer(walk, name, compressor.pipe)
    try:
        with closing(iter(walk)) as entries:
            for found in entries:
                packer.add(found)
                if packer.members > members_max:
                    raise Failure("too_large", f"the directory has grown to more than {members_max} entries")
        packer.end()
        compressor.finish(walk.call)
    except BrokenPipeError:
        raise compressor.failure(walk.call) from None
    return {
        "members": packer.members,
        "bytes": packer.bytes,
        "changed": packer.changed,
        "vanished": walk.gone,
        "skipped": walk.skipped,
    }


class _Packer:
    """Writes tar members into the compressor's pipe."""

    def __init__(self, walk: Walk, name: bytes, pipe: int) -> None:
        self.walk, self.name, self.pipe = walk, name, pipe
        self.call = walk.call
        self._user, self._uid = walk.namespace.home.user.encode(), walk.namespace.home.uid
        self.members = self.bytes = self.changed = 0
        self._links = Links()
        # Outside the heap; only pages that were used take memory.
        self._buffer = memoryview(mmap.mmap(-1, _WHOLE_MAX + _HEADERS_MAX))
        self._used = 0

    def add(self, found: Found) -> None:
        """Write one member with its content."""
        name = self.name + b"/" + found.path if found.path else self.name
        if found.entry is None:
            self._put(tar_stream.DIRECTORY, name, os.fstat(found.directory))
        elif not found.entry.is_file(follow_symlinks=False):
            self._add_link(name, found)
        else:
            file = self.walk.open_file(found)
            if file is not None:
                try:
                    self._add_file(name, file)
                finally:
                    os.close(file)

    def _add_link(self, name: bytes, found: Found) -> None:
        try:
            target = self.walk.namespace.readlink(found.directory, found.name)
            status = self.walk.namespace.stat(found.directory, found.name)
        except OSError:
            self.walk.gone += 1
            return
        self._put(tar_stream.SYMLINK, name, status, link=target)

    def _add_file(self, name: bytes, file: int) -> None:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            self.walk.gone += 1  # the name now belongs to another type of file
            return
        several = status.st_nlink > 1
        first = self._links.find(status) if several else None
        if first is not None:
            self._put(tar_stream.HARD_LINK, name, status, link=first)
            return
        if status.st_size > _WHOLE_MAX:
            self._put(tar_stream.FILE, name, status, size=status.st_size)
            self._flush()
            self._send_content(file, status.st_size)
            self._send_zeros(tar_stream.padding(status.st_size))
        else:
            self._put(tar_stream.FILE, name, status, file=file)
        if several:
            self._links.add(status, name)

    def _put(
        self,
        kind: bytes,
        name: bytes,
        status: os.stat_result,
        *,
        link: bytes = b"",
        size: int = 0,
        file: int = -1,
    ) -> None:
        """Append a member to the buffer, with the content of `file`, as much of it as could be read."""
        whole = status.st_size if file >= 0 else 0
        if self._used + _HEADERS_MAX + whole + tar_stream.BLOCK > len(self._buffer):
            self._flush()
        start = self._used + tar_stream.header_size(kind, name, link)
        count = self._read(file, start, whole) if whole else 0
        size += count
        end = start + count + tar_stream.padding(count)
        uid, mtime = status.st_uid, status.st_mtime_ns // 10**9
        owner = self._user if uid == self._uid else b""
        mode = stat.S_IMODE(status.st_mode)
        member = tar_stream.Member(kind, name, mode, uid, status.st_gid, size, mtime, link, owner)
        self._buffer[self._used : start] = tar_stream.header(member)
        self._buffer[start + count : end] = bytes(end - start - count)
        self._used = end
        self.members += 1
        self.bytes += size
        if end >= _SEND_AT:
            self._flush()

    def _read(self, file: int, start: int, size: int) -> int:
        """Read a whole file into the buffer; the bytes read."""
        count = 0
        while count < size:
            try:
                part = os.preadv(file, [self._buffer[start + count : start + size]], count)
            except OSError:
                part = 0  # a read error is treated as the end of the file
            if not part:
                self.changed += 1
                break
            count += part
        return count

    def _send_content(self, file: int, size: int) -> None:
        """Send exactly `size` bytes of a file: zeros for holes, which are not read, and for a missing end."""
        at, short = 0, False
        while at < size and not short:
            start = min(_seek(file, at, os.SEEK_DATA, at), size)
            self._send_zeros(start - at)
            end = min(_seek(file, start, os.SEEK_HOLE, size), size)
            at = start + send_file(self.call, file, self.pipe, start, end - start)
            short = at < end
        self._send_zeros(size - at)
        self.changed += short or os.fstat(file).st_size < size

    def _send_zeros(self, count: int) -> None:
        while count > 0:
            part = _ZEROS[:count]
            self._send(part)
            count -= len(part)

    def end(self) -> None:
        """Write the end-of-archive marker."""
        self._flush()
        self._send(memoryview(tar_stream.END))

    def _flush(self) -> None:
        self._send(self._buffer[: self._used])
        self._used = 0

    def _send(self, rest: memoryview) -> None:
        while rest:
            try:
                rest = rest[os.write(self.pipe, rest) :]
            except BlockingIOError:
                self.call.wait({self.pipe: select.POLLOUT})


def _seek(file: int, at: int, whence: int, otherwise: int) -> int:
    """The offset of the next data or hole, past any size if there is none; `otherwise` if unsupported."""
    try:
        return os.lseek(file, at, whence)
    except OSError as error:
        return 2**63 if error.errno == errno.ENXIO else otherwise
