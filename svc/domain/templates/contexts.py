"""Build contexts in the database: each content stored once, each listing under its digest (decision 16).

A context is named by the SHA-256 of its canonical listing, [[path, sha256,
executable], ...] in order; None is the one without files. Revisions, clones and
imports of equal files share the rows, which never change. Contents are read and
written in pieces, so that no file is held in memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO

from svc.db.connect import database
from svc.domain.templates import bundles
from svc.domain.templates.bundle_paths import CONTEXT, DOCKERFILE
from svc.domain.templates.bundles import ContextFile
from svc.errors import QuotaExceeded
from svc.limits import CONTEXT_BYTES_PER_USER

_MIB = 1024 * 1024

ROW_BYTES = 1024  # of a file besides its content: path, digests and their indexes

# Bytes of one owner's templates with all their revisions; shared files count once.
_USED = f"""
WITH own AS MATERIALIZED (
    SELECT DISTINCT r.context FROM template_revisions r JOIN templates t ON t.id = r.template_id
    WHERE t.owner_id = ? AND r.context IS NOT NULL)
SELECT coalesce((SELECT sum(f.size) FROM files f WHERE f.sha256 IN (
        SELECT x.sha256 FROM context_files x WHERE x.context IN own)), 0)
    + {ROW_BYTES} * (SELECT count(*) FROM context_files x WHERE x.context IN own)
"""
# Each context once, by skipping through the index: every edit runs this.
_UNUSED = """
WITH RECURSIVE kept(context) AS (
    SELECT min(context) FROM context_files
    UNION ALL
    SELECT (SELECT min(x.context) FROM context_files x WHERE x.context > kept.context)
    FROM kept WHERE kept.context IS NOT NULL)
SELECT context FROM kept WHERE context IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM template_revisions r WHERE r.context = kept.context)
"""
_DELETE_CONTENT = """
DELETE FROM files WHERE sha256 = ?1 AND NOT EXISTS (SELECT 1 FROM context_files x WHERE x.sha256 = ?1)
"""


class _Content(io.RawIOBase):
    """A file's content, read-only, through a handle of this thread's connection."""

    def __init__(self, row: int) -> None:
        super().__init__()
        self._blob: sqlite3.Blob = database.connection().blobopen("files", "content", row, readonly=True)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._blob.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._blob.close()
        super().close()


# --- writing ---------------------------------------------------------------------------


def store(files: Iterable[ContextFile]) -> str | None:
    """Store files in the caller's write transaction, which adds the revision; returns the context's name.

    Raises Conflict for a file that changes while it is read.
    """
    listing = sorted((file.path, _store_file(file), file.executable) for file in files)
    if not listing:
        return None
    text = json.dumps(listing, ensure_ascii=False, separators=(",", ":"))
    context = hashlib.sha256(text.encode()).hexdigest()
    database.connection().executemany(
        "INSERT INTO context_files (context, path, sha256, executable) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        ((context, *row) for row in listing),
    )
    return context


def _store_file(file: ContextFile) -> str:
    """Store a file's content and return its SHA-256."""
    sha256 = file.sha256 or bundles.digest_of(file)
    added = database.execute_sql(
        "INSERT INTO files (sha256, size, content) VALUES (?, ?, zeroblob(?)) ON CONFLICT DO NOTHING",
        (sha256, file.size, file.size),
    )
    if added.rowcount:
        with database.connection().blobopen("files", "content", added.lastrowid or 0) as blob:
            bundles.copy(file, sha256, blob.write)
    return sha256


def require_room(owner_id: int | None) -> None:
    """Raise QuotaExceeded if a user's contexts are over their limit; global ones have none."""
    if owner_id is not None:
        used = database.execute_sql(_USED, (owner_id,)).fetchone()[0]
        require_bytes("context_bytes", "your templates' build contexts", used, CONTEXT_BYTES_PER_USER)


def require_bytes(resource: str, subject: str, used: int, limit: int) -> None:
    """Raise QuotaExceeded for more bytes in the database than one user may have."""
    if used > limit:
        raise QuotaExceeded(
            f"{subject} would have {-(-used // _MIB)} MiB with this; one user may have {limit // _MIB} MiB",
            hint="svc template list  # deleting one makes room",
            details={"resource": resource, "limit": limit, "used": used, "requested": 0},
        )


def delete_unused() -> None:
    """Delete what no revision uses, in the transaction that deleted the revision."""
    contents: set[tuple[str]] = set()
    for unused in database.execute_sql(_UNUSED).fetchall():
        contents.update(
            database.execute_sql("DELETE FROM context_files WHERE context = ? RETURNING sha256", unused)
        )
    database.connection().executemany(_DELETE_CONTENT, contents)


# --- reading ---------------------------------------------------------------------------


def totals(context: str | None) -> tuple[int, int]:
    """A context's number of files and their bytes."""
    count, size = database.execute_sql(
        "SELECT count(*), coalesce(sum(f.size), 0) FROM context_files x JOIN files f USING (sha256)"
        " WHERE x.context = ?",
        (context,),
    ).fetchone()
    return count, size


def listing(context: str | None) -> str:
    """The files of a context as text, a line each, to compare."""
    rows = database.execute_sql(
        "SELECT path, substr(sha256, 1, 16), iif(executable, ' executable', '') FROM context_files"
        " WHERE context = ? ORDER BY path",
        (context,),
    )
    return "\n".join(f"{path} sha256:{digest}{executable}" for path, digest, executable in rows)


def files_of(context: str | None) -> Iterator[ContextFile]:
    """The files of a context in order, to be read by this thread in the transaction of this call."""
    rows = database.execute_sql(
        "SELECT x.path, x.executable, f.rowid, f.size, x.sha256 FROM context_files x"
        " JOIN files f USING (sha256) WHERE x.context = ? ORDER BY x.path",
        (context,),
    ).fetchall()
    for path, executable, row, size, sha256 in rows:
        yield ContextFile(path, bool(executable), partial(_open, row), size, sha256)


def _open(row: int) -> BinaryIO:
    return io.BufferedReader(_Content(row))


def source_digest(dockerfile: bytes, context: str | None) -> str:
    """The SHA-256 (hex) of a build's sources: the Dockerfile's bytes and the context's name."""
    digest = hashlib.sha256(b"%d\n" % len(dockerfile))
    digest.update(dockerfile)
    digest.update((context or "").encode())
    return digest.hexdigest()


def archive(file: BinaryIO, dockerfile: bytes, context: str | None) -> None:
    """Write a build's sources as a plain tar: `Dockerfile`, and the context's files below `context/`.

    Equal sources give equal bytes. Reads in one transaction, so that nothing is deleted meanwhile.
    """
    with database.atomic("DEFERRED"):
        bundles.put(file, ContextFile(DOCKERFILE, False, partial(io.BytesIO, dockerfile), len(dockerfile)))
        for one in files_of(context):
            bundles.put(file, one._replace(path=CONTEXT + one.path))
    file.write(bundles.END)
