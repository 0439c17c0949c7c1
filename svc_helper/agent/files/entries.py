"""Send all entries of a directory over the app's data stream: `fs.entries`, a conversation.

For directories of many entries: the agent reads and sorts them once, and writes each as the JSON
that the API's clients get. This avoids the limits of a page, and the app's work on each row. A line
has the same content as the API's record of a row of `fs.list`; a test compares both.
"""

from __future__ import annotations

import os
import select
import stat
import time
from _json import encode_basestring_ascii as quoted  # the one that json uses, without importing json
from functools import lru_cache

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import beneath, listing
from svc_helper.agent.files.namespace import Namespace
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes, path_text
from svc_helper.wire.quick_typing import Any

_LINES = 512  # lines in one write
_LINE = (
    '{"name": %s, "path": "%s", "utf8": %s, "type": "%s", "size": %d, "modified_at": %s, "mode": "%04o",'
    ' "target": %s, "owner": %s}\n'
)
_SECOND = 10**9


def entries(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.entries`: progress {"total": number of names}, message {"go"}, reply {"entries": lines sent}.

    Order and offset are those of `fs.list`. An entry that is removed meanwhile is left out.
    """
    path = path_bytes(args["path"])
    with (  # the stream is closed before the reply is sent, so that its reader sees EOF
        beneath.closing(call.data_stream("output")) as stream,
        beneath.refusing(path),
        Namespace(podman.home, call) as namespace,
        beneath.closing(_open(namespace, args["root"], path)) as directory,
    ):
        names = sorted(listing.names(call, directory))
        call.progress({"total": len(names)}, wait=True)
        call.receive("go")
        del names[: args["offset"]]
        try:
            return {"entries": _send(call, _Lines(namespace, directory, path), names, stream)}
        except ConnectionError:
            raise Failure("cancelled", "the caller has gone") from None


def _open(namespace: Namespace, root_name: str, path: bytes) -> int:
    with beneath.closing(beneath.root(namespace.home, root_name)) as root:
        return namespace.open_(root, path, os.O_RDONLY | os.O_DIRECTORY)


def _send(call: Call, lines: _Lines, names: list[bytes], stream: int) -> int:
    count = 0
    for start in range(0, len(names), _LINES):
        call.check()
        found = [line for line in map(lines.line, names[start : start + _LINES]) if line]
        count += len(found)
        rest = memoryview("".join(found).encode("ascii"))
        while rest:
            try:
                rest = rest[os.write(stream, rest) :]
            except BlockingIOError:
                call.wait({stream: select.POLLOUT})
    return count


class _Lines:
    """Formats the lines of one directory's entries."""

    def __init__(self, namespace: Namespace, directory: int, path: bytes) -> None:
        self._namespace, self._directory = namespace, directory
        self._before = path_text(path) + "/" if path else ""
        self._owner = lru_cache(maxsize=64)(lambda uid: quoted(namespace.owners.text(uid)))

    def line(self, name: bytes) -> str:
        """The line for one name, without following links; empty if it does not exist."""
        try:
            status = self._namespace.stat(self._directory, name)
        except FileNotFoundError:
            return ""
        except OSError:
            return self._text(name, "other", 0, 0, 0, None, "null")
        target = None
        if stat.S_ISLNK(status.st_mode):
            target = listing.link_target(self._namespace, self._directory, name)
        kind = listing.type_of(status.st_mode)
        owner = self._owner(status.st_uid)
        return self._text(name, kind, status.st_size, status.st_mtime_ns, status.st_mode, target, owner)

    def _text(
        self, name: bytes, kind: str, size: int, mtime_ns: int, mode: int, target: bytes | None, owner: str
    ) -> str:
        try:
            text, exact = name.decode("utf-8"), "true"
        except UnicodeDecodeError:
            text, exact = name.decode("utf-8", "backslashreplace"), "false"
        return _LINE % (
            quoted(text),
            self._before + path_text(name),
            exact,
            kind,
            size,
            _moment(mtime_ns),
            mode & 0o7777,
            "null" if target is None else quoted(target.decode("utf-8", "backslashreplace")),
            owner,
        )


def _moment(mtime_ns: int) -> str:
    """A file's time as JSON: RFC 3339 with milliseconds; null for a year outside 1 to 9999."""
    seconds = _second(mtime_ns // _SECOND)
    return f'"{seconds}.{mtime_ns % _SECOND // 10**6:03d}Z"' if seconds else "null"


@lru_cache(maxsize=64)  # many files of a directory share a second
def _second(seconds: int) -> str:
    try:
        parts = time.gmtime(seconds)
    except (OverflowError, OSError, ValueError):
        return ""
    if not 1 <= parts.tm_year <= 9999:
        return ""
    return "{:04d}-{:02d}-{:02d}T{:02d}:{:02d}:{:02d}".format(*parts[:6])
