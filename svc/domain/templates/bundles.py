"""Template bundles: what `template export` writes and an import reads.

A bundle is a plain tar archive: `manifest.json` first, then `Dockerfile` and the
build context below `context/`. The writer is deterministic. The reader takes an
untrusted file and unpacks nothing: it checks every header (bundle_headers) and
every member's digest (bundle_manifests); members are then read in place through
`Bundle.open`. Memory is bounded by the manifest's limit, time by the file's.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from svc.domain.templates import bundle_headers, bundle_manifests, bundle_paths
from svc.domain.templates.bundle_headers import BLOCK, Header
from svc.domain.templates.bundle_manifests import Manifest, Member, require_within
from svc.domain.templates.bundle_paths import CONTEXT, DOCKERFILE, MANIFEST, refused
from svc.errors import Conflict, ValidationFailed
from svc.limits import BUNDLE_MANIFEST_MAX, BUNDLE_MAX, BUNDLE_MEMBERS_MAX

END = bytes(2 * BLOCK)  # of an archive
_PART = 256 * 1024
_RECORD = 20 * BLOCK  # tar programs pad the archive to a multiple of this
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}


class ContextFile(NamedTuple):
    """One file of a build context; `path` is below the context, `open` may be called more than once.

    `sha256` (hex) is empty where it is not known yet.
    """

    path: str
    executable: bool
    open: Callable[[], BinaryIO]
    size: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A checked bundle; its members are read from the bundle's file, which must not change."""

    digest: str
    template: dict[str, Any]
    members: Mapping[str, Member]
    _file: BinaryIO
    _starts: Mapping[str, int]

    def open(self, path: str) -> BinaryIO:
        """Open a member for reading, by one thread at a time; KeyError for no member."""
        return io.BufferedReader(_Window(self._file, self._starts[path], self.members[path].size))

    def dockerfile(self) -> bytes | None:
        """The Dockerfile, if there is one."""
        if DOCKERFILE not in self.members:
            return None
        with self.open(DOCKERFILE) as file:
            return file.read()

    def context(self) -> Iterator[ContextFile]:
        """The build context's files in order, as write() takes them."""
        for path, member in sorted(self.members.items()):
            if path.startswith(CONTEXT):
                name, open_member = path.removeprefix(CONTEXT), partial(self.open, path)
                yield ContextFile(name, member.executable, open_member, member.size, member.sha256)


class _Window(io.RawIOBase):
    """A read-only part of a file, which stays open when the part is closed."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        super().__init__()
        self._file, self._at, self._end = file, start, start + size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._at)
        part = self._file.read(min(len(buffer), self._end - self._at))
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


# --- writing ---------------------------------------------------------------------------


def write(
    file: BinaryIO,
    template: Mapping[str, Any],
    dockerfile: bytes | None,
    context: Iterable[ContextFile],
) -> str:
    """Write a bundle and return its digest; equal content gives equal bytes.

    Raises ValidationFailed and TooLarge for what read() would refuse, before a
    byte is written, and Conflict for a file that changes meanwhile: the output
    then lacks its end mark.
    """
    raw, digest, sources = _planned(template, dockerfile, context)
    file.write(bundle_headers.make(MANIFEST, len(raw), executable=False))
    file.write(raw + _padding(len(raw)))
    for source in sources:
        put(file, source)
    file.write(END)
    return digest


def check(template: Mapping[str, Any], dockerfile: bytes | None, context: Iterable[ContextFile]) -> None:
    """Raise what write() would raise before its first byte."""
    _planned(template, dockerfile, context)


def _planned(
    template: Mapping[str, Any], dockerfile: bytes | None, context: Iterable[ContextFile]
) -> tuple[bytes, str, list[ContextFile]]:
    """The checked manifest, the bundle's digest and the other members."""
    sources = _sources(dockerfile, context)
    members = {source.path: Member(source.sha256, source.size, source.executable) for source in sources}
    raw = bundle_manifests.encode(template, members)
    manifest = bundle_manifests.decode(raw)
    _require_total(len(raw), *(source.size for source in sources))
    return raw, manifest.digest, sources


def put(file: BinaryIO, source: ContextFile) -> None:
    """Write a source as a member under its whole path; raises Conflict when it has changed."""
    file.write(bundle_headers.make(source.path, source.size, source.executable))
    copy(source, source.sha256, file.write)
    file.write(_padding(source.size))


def copy(source: ContextFile, sha256: str, write: Callable[[bytes], Any]) -> None:
    """Pass a source's content to `write`; raises Conflict if its digest differs from a given one."""
    if digest_of(source, write) != sha256 and sha256:
        raise _changed(source)


def _sources(dockerfile: bytes | None, context: Iterable[ContextFile]) -> list[ContextFile]:
    """All members except the manifest under their names in the bundle, sorted and checked."""
    found: dict[str, ContextFile] = {}
    if dockerfile is not None:
        found[DOCKERFILE] = ContextFile(DOCKERFILE, False, partial(io.BytesIO, dockerfile), len(dockerfile))
    for one in context:
        source = ContextFile(*one)
        source = source._replace(path=CONTEXT + source.path)
        if source.path in found:
            raise _twice(source.path)
        found[source.path] = source
        require_within("too many members", len(found), BUNDLE_MEMBERS_MAX)
    for source in found.values():
        bundle_manifests.check_member(source.path, source.size, source.executable)
    _require_total(*(source.size for source in found.values()))
    known = (source._replace(sha256=source.sha256 or digest_of(source)) for source in found.values())
    return sorted(known, key=lambda source: source.path)


def _require_total(*sizes: int) -> None:
    """Raise TooLarge if members of these sizes make an archive over BUNDLE_MAX."""
    whole = sum(BLOCK + size + len(_padding(size)) for size in sizes) + len(END)
    require_within("the archive is too large", whole, BUNDLE_MAX)


def _padding(size: int) -> bytes:
    """The zeros that fill a member's last block."""
    return bytes(-size % BLOCK)


def digest_of(source: ContextFile, write: Callable[[bytes], Any] = len) -> str:
    """The SHA-256 of a source, each part passed to `write`; raises Conflict when its size has changed."""
    digest, left = hashlib.sha256(), source.size
    with source.open() as file:
        while part := file.read(min(_PART, left + 1)):
            left -= len(part)
            if left < 0:
                raise _changed(source)
            digest.update(part)
            write(part)
    if left:
        raise _changed(source)
    return digest.hexdigest()


def _changed(source: ContextFile) -> Conflict:
    return Conflict(f"{bundle_paths.printable(source.path)} is being changed; the export was stopped")


# --- reading ---------------------------------------------------------------------------


def read(file: BinaryIO) -> Bundle:
    """Check an untrusted, seekable file; raises ValidationFailed, TooLarge and writes nothing.

    Entries of directories are optional; an empty directory is refused, because the
    digest does not cover it. Of a manifest without `members` the archive is the list.
    """
    end = file.seek(0, os.SEEK_END)
    _require_archive(file, end)
    entries = _entries(file, end)
    first, start = next(entries, (None, 0))
    if first is None or first.path != MANIFEST or first.directory or first.executable:
        raise refused(MANIFEST, "not_a_bundle", "the archive does not begin with this file, as a bundle does")
    require_within(f"{MANIFEST} is too large", first.size, BUNDLE_MANIFEST_MAX)
    manifest = bundle_manifests.decode(_block(file, start, first.size))
    if not manifest.listed:
        found = [*entries]
        manifest = bundle_manifests.decode(bundle_manifests.encode(manifest.template, _members(file, found)))
        entries = iter(found)
    starts = _verified(file, manifest, entries)
    return Bundle(manifest.digest, manifest.template, manifest.members, file, starts)


def read_context(file: BinaryIO) -> list[ContextFile]:
    """Check an untrusted, seekable tar of a build context alone; raises ValidationFailed, TooLarge.

    Directories are optional and not kept. The files are read from this one, which must not change.
    """
    end = file.seek(0, os.SEEK_END)
    if end < len(END) or any(_block(file, 0)):  # only zeros are an archive without a member
        _require_archive(file, end)
    found: dict[str, ContextFile] = {}
    for header, start in _entries(file, end):
        if header.directory:
            continue
        if header.path in found:
            raise _twice(header.path)
        found[header.path] = context_file(file, header.path, header.executable, header.size, start)
    return [*found.values()]


def context_file(file: BinaryIO, path: str, executable: bool, size: int, start: int = 0) -> ContextFile:
    """A part of a file as a file of a build context, with its digest."""
    content = partial(_Window, file, start, size)
    one = ContextFile(path, executable, lambda: io.BufferedReader(content()), size)
    return one._replace(sha256=digest_of(one))


def _members(file: BinaryIO, entries: list[tuple[Header, int]]) -> dict[str, Member]:
    """The list of an archive without one."""
    members: dict[str, Member] = {}
    for header, start in entries:
        if header.directory:
            continue
        bundle_manifests.check_member(header.path, header.size, header.executable)
        if header.path in members:
            raise _twice(header.path)
        sha256 = hashlib.file_digest(_Window(file, start, header.size), "sha256").hexdigest()
        members[header.path] = Member(sha256, header.size, header.executable)
    return members


def _twice(path: str) -> ValidationFailed:
    return refused(path, "twice", "there is another member of this name")


def _require_archive(file: BinaryIO, end: int) -> None:
    """Raise ValidationFailed or TooLarge for a file that is no tar archive of an allowed size."""
    file.seek(0)
    first = file.read(BLOCK)
    for magic, name in _COMPRESSED.items():
        if first.startswith(magic):
            raise _no_archive(f"it is compressed ({name}), not a plain tar archive")
    if not bundle_headers.is_tar(first):
        raise _no_archive("it is not a tar archive")
    require_within("the archive is too large", end, BUNDLE_MAX)
    if end % BLOCK:
        raise _no_archive("it is cut short")


def _no_archive(message: str) -> ValidationFailed:
    fields = [{"field": "archive", "code": "not_a_bundle", "message": message}]
    return ValidationFailed(f"the file is refused: {message}", fields=fields)


def _entries(file: BinaryIO, end: int) -> Iterator[tuple[Header, int]]:
    """Each member's header and the offset of its content; requires a correct end of the archive."""
    at, count = 0, 0
    while any(block := _block(file, at)):
        header = bundle_headers.parse(block)
        start = at + BLOCK
        at = start + header.size + -header.size % BLOCK
        if at > end:
            raise refused(header.path, "truncated", "it is longer than the archive")
        if any(_block(file, start + header.size, -header.size % BLOCK)):
            raise refused(header.path, "header", "there are bytes behind its end")
        count += 1
        require_within("too many members", count, BUNDLE_MEMBERS_MAX + 1)  # and the manifest
        yield header, start
    if any(_block(file, at + BLOCK)):
        raise _no_archive("its end mark is broken")
    rest = end - at - 2 * BLOCK
    if rest >= _RECORD or any(_block(file, at + 2 * BLOCK, rest)):
        raise _no_archive("it goes on behind its end")


def _block(file: BinaryIO, at: int, size: int = BLOCK) -> bytes:
    """Read exactly `size` bytes; raises ValidationFailed when there are fewer."""
    file.seek(at)
    block = file.read(size)
    if len(block) != size:
        raise _no_archive("it is cut short")
    return block


def _verified(file: BinaryIO, manifest: Manifest, entries: Iterator[tuple[Header, int]]) -> dict[str, int]:
    """The offset of each listed member; raises ValidationFailed unless exactly these are there, unchanged."""
    starts: dict[str, int] = {}
    for header, start in entries:
        if header.path in starts:
            raise _twice(header.path)
        starts[header.path] = start
        if not header.directory:
            _require_listed(file, manifest, header, start)
        elif not manifest.has_folder(header.path):
            raise refused(header.path, "unlisted", "a directory that holds nothing of the manifest's list")
    missing = next((path for path in manifest.order if path not in starts), None)
    if missing is not None:
        raise refused(missing, "missing", "listed in the manifest but not in the archive")
    return {path: starts[path] for path in manifest.order}


def _require_listed(file: BinaryIO, manifest: Manifest, header: Header, start: int) -> None:
    """Raise ValidationFailed unless a file matches its entry in the manifest."""
    listed = manifest.members.get(header.path)
    if listed is None:
        raise refused(header.path, "unlisted", "not listed in the manifest")
    if header.size != listed.size:
        raise refused(header.path, "size", "its size is not the one in the manifest")
    if header.executable != listed.executable:
        raise refused(header.path, "member_mode", "executable or not, but not as in the manifest")
    content = _Window(file, start, header.size)
    if hashlib.file_digest(content, "sha256").hexdigest() != listed.sha256:
        raise refused(header.path, "digest", "its content does not match the manifest's sha256")
