"""A directory as a compressed tar archive, into the app's pipe: `fs.archive`, a conversation.

It is walked twice, first to say how much it is, then to write it, through a
compressor's process and never by way of the disk. What changes meanwhile is in it
as it was when its turn came, or left out; the archive itself is always whole.
"""

from __future__ import annotations

import errno
import mmap
import os
import select
import stat
from contextlib import closing
from typing import Any

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import beneath, tar_stream
from svc_helper.agent.files.compressor import Compressor
from svc_helper.agent.files.read import given_pipe, pump
from svc_helper.agent.files.walk import Found, Links, Walk
from svc_helper.agent.home import Home
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes

_WHOLE_MAX = 1024 * 1024  # bytes of a file that is read before its header is written
_HEADERS_MAX = 16 * 1024  # of one member, with the longest of names
_SENT_AT = 128 * 1024  # bytes of small members together
_SAID_MAX = 2**63 - 1  # a few files of nothing but holes may be more, and the app takes no number beyond
_ZEROS = memoryview(bytes(64 * 1024))


def archive(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.archive`: progress {"members", "bytes", "skipped", "skipped_names"}, word {"go"}, what was written.

    `bytes` are those of the files, each once, with their holes. The count ends at one
    more than `members_max`; a tree that grows beyond it afterwards is `too_large`.
    The names in the archive begin with the directory's own (the root's id for a root).
    The answer {"members", "bytes", "changed", "vanished"} comes when all has been
    compressed and taken: what ended before is no archive, whatever went into the pipe.
    """
    path = path_bytes(args["path"])
    output = given_pipe(call, "output")
    try:
        with beneath.refusing(path):
            base = _open(podman.home, args["root"], path)
            try:
                counted = count(Walk(call, base), args["members_max"])
                call.progress(counted, wait=True)
                call.receive("go")
                name = path.rpartition(b"/")[2] or args["root"].encode()
                compressor = Compressor(output)
                with closing(compressor):
                    os.close(output)
                    output = -1
                    done = _write(podman.home, call, base, name, compressor, args["members_max"])
                    done["vanished"] += max(0, done.pop("skipped") - counted["skipped"])
                    return done
            finally:
                os.close(base)
    finally:
        if output >= 0:
            os.close(output)


def _open(home: Home, root_name: str, path: bytes) -> int:
    root = beneath.root(home, root_name)
    try:
        return beneath.open_(root, path, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(root)


def count(walk: Walk, members_max: int) -> dict[str, Any]:
    """What an archive would have: its members and their bytes, and what would be left out."""
    members = size = 0
    links = Links()
    with closing(iter(walk)) as found_ones:
        for found in found_ones:
            taken = _size(walk, links, found)
            if taken is not None:
                members += 1
                size += taken
            if members > members_max:
                break
    skipped = {"skipped": walk.skipped, "skipped_names": walk.skipped_names}
    return {"members": members, "bytes": min(size, _SAID_MAX), **skipped}


def _size(walk: Walk, links: Links, found: Found) -> int | None:
    """The bytes of one member's content; None for what is left out."""
    if found.entry is None or not found.entry.is_file(follow_symlinks=False):
        return 0
    try:
        facts = found.entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if not _readable(found, facts):
        walk.skip(found.path)
        return None
    if links.find(facts) is not None:
        return 0
    links.add(facts, b"")
    return facts.st_size


def _readable(found: Found, facts: os.stat_result) -> bool:
    if facts.st_uid == os.geteuid() and facts.st_mode & stat.S_IRUSR:
        return True
    name = found.entry.name if found.entry else ""
    return os.access(name, os.R_OK, dir_fd=found.directory, effective_ids=True, follow_symlinks=False)


def _write(
    home: Home, call: Call, base: int, name: bytes, compressor: Compressor, members_max: int
) -> dict[str, Any]:
    walk = Walk(call, base)
    packer = _Packer(home, call, walk, name, compressor.pipe)
    try:
        with closing(iter(walk)) as found_ones:
            for found in found_ones:
                packer.take(found)
                if packer.members > members_max:
                    raise Failure("too_large", "the directory has grown beyond what may be archived")
        packer.end()
        compressor.finish(call)
    except BrokenPipeError:
        raise compressor.failure(call) from None
    return {
        "members": packer.members,
        "bytes": packer.bytes,
        "changed": packer.changed,
        "vanished": walk.gone,
        "skipped": walk.skipped,
    }


class _Packer:
    """Writes members into the compressor's pipe."""

    def __init__(self, home: Home, call: Call, walk: Walk, name: bytes, pipe: int) -> None:
        self.home, self.call, self.walk, self.name, self.pipe = home, call, walk, name, pipe
        self.members = self.bytes = self.changed = 0
        self._links = Links()
        # Not of the heap, and no more of it is there than was used.
        self._buffer = memoryview(mmap.mmap(-1, _WHOLE_MAX + _HEADERS_MAX))
        self._used = 0

    def take(self, found: Found) -> None:
        """Write one member with its content."""
        name = self.name + b"/" + found.path if found.path else self.name
        if found.entry is None:
            self._put(self._member(tar_stream.DIRECTORY, name, os.fstat(found.directory)))
        elif found.entry.is_symlink():
            self._link(name, found)
        else:
            file = self.walk.open_file(found)
            if file is not None:
                try:
                    self._file(name, file)
                finally:
                    os.close(file)

    def _member(self, kind: bytes, name: bytes, facts: os.stat_result) -> tar_stream.Member:
        owner = self.home.user.encode() if facts.st_uid == self.home.uid else b""
        mode, mtime = stat.S_IMODE(facts.st_mode), facts.st_mtime_ns // 10**9
        return tar_stream.Member(kind, name, mode, facts.st_uid, facts.st_gid, 0, mtime, owner=owner)

    def _link(self, name: bytes, found: Found) -> None:
        if found.entry is None:
            return
        try:
            target = os.readlink(os.fsencode(found.entry.name), dir_fd=found.directory)
            facts = found.entry.stat(follow_symlinks=False)
        except OSError:
            self.walk.gone += 1
            return
        self._put(self._member(tar_stream.SYMLINK, name, facts)._replace(link=target))

    def _file(self, name: bytes, file: int) -> None:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            self.walk.gone += 1  # something else has the name now
            return
        member = self._member(tar_stream.FILE, name, facts)
        first = self._links.find(facts)
        if first is not None:
            self._put(member._replace(kind=tar_stream.HARD_LINK, link=first))
            return
        if facts.st_size > _WHOLE_MAX:
            self._put(member._replace(size=facts.st_size))
            self._flush()
            self._pour(file, facts.st_size)
            self._zeros(tar_stream.padding(facts.st_size))
        else:
            self._put(member, file, facts.st_size)
        self._links.add(facts, name)

    def _put(self, member: tar_stream.Member, file: int = -1, size: int = 0) -> None:
        """Write a member into the buffer, with a file's content, whose size is what could be read."""
        if self._used + _HEADERS_MAX + size + tar_stream.BLOCK > len(self._buffer):
            self._flush()
        start = self._used + tar_stream.header_size(member)
        came = self._whole(file, start, size) if size else 0
        member = member._replace(size=member.size + came)
        end = start + came + tar_stream.padding(came)
        self._buffer[self._used : start] = tar_stream.header(member)
        self._buffer[start + came : end] = bytes(end - start - came)
        self._used = end
        self.members += 1
        self.bytes += member.size
        if self._used >= _SENT_AT:
            self._flush()

    def _whole(self, file: int, start: int, size: int) -> int:
        came = 0
        while came < size:
            try:
                part = os.preadv(file, [self._buffer[start + came : start + size]], came)
            except OSError:
                part = 0  # a fault of the disk: it is as if the file ended there
            if not part:
                self.changed += 1
                break
            came += part
        return came

    def _pour(self, file: int, size: int) -> None:
        """Write so many bytes of a file, zeros for its holes, which are not read, and for what has gone."""
        at, short = 0, False
        while at < size and not short:
            start = min(_seek(file, at, os.SEEK_DATA, at), size)
            self._zeros(start - at)
            end = min(_seek(file, start, os.SEEK_HOLE, size), size)
            at = start + pump(self.call, file, self.pipe, start, end - start)
            short = at < end
        self._zeros(size - at)
        self.changed += short or os.fstat(file).st_size < size

    def _zeros(self, count: int) -> None:
        while count > 0:
            part = _ZEROS[:count]
            self._send(part)
            count -= len(part)

    def end(self) -> None:
        """Write the archive's end."""
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
    """The next data or hole from there; ENXIO: none to the file's end. Some file systems know of none."""
    try:
        return os.lseek(file, at, whence)
    except OSError as error:
        return 2**63 if error.errno == errno.ENXIO else otherwise
