"""Build contexts, kept in the database: each content once, each listing under its own digest.

A context is named by the SHA-256 of its canonical listing, [[path, sha256,
executable], ...] in order; None names the one without files. Revisions, clones
and imports of equal files share the rows, which are never changed. Contents go
in and come out piece by piece, so that no file is ever held whole.
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

ROW_BYTES = 1024  # what a file takes besides its content: its path and digests, and the indexes of both

# What one owner's templates have, with all their revisions; what they share counts once.
_USED = f"""
WITH own AS MATERIALIZED (
    SELECT DISTINCT r.context FROM template_revisions r JOIN templates t ON t.id = r.template_id
    WHERE t.owner_id = ? AND r.context IS NOT NULL)
SELECT coalesce((SELECT sum(f.size) FROM files f WHERE f.sha256 IN (
        SELECT x.sha256 FROM context_files x WHERE x.context IN own)), 0)
    + {ROW_BYTES} * (SELECT count(*) FROM context_files x WHERE x.context IN own)
"""
# Each context once, by a jump in the index over its files: everybody's edits come by here.
_LOOSE = """
WITH RECURSIVE kept(context) AS (
    SELECT min(context) FROM context_files
    UNION ALL
    SELECT (SELECT min(x.context) FROM context_files x WHERE x.context > kept.context)
    FROM kept WHERE kept.context IS NOT NULL)
SELECT context FROM kept WHERE context IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM template_revisions r WHERE r.context = kept.context)
"""
_SWEEP_CONTENT = """
DELETE FROM files WHERE sha256 = ?1 AND NOT EXISTS (SELECT 1 FROM context_files x WHERE x.sha256 = ?1)
"""


class _Content(io.RawIOBase):
    """A file's content, read only, through a handle of this thread's connection."""

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


# --- keeping ---------------------------------------------------------------------------


def keep(files: Iterable[ContextFile]) -> str | None:
    """Take files into the database and name the context that they are, in the caller's write transaction.

    Raises Conflict for a file that changes while it is read. Nothing else looks
    at a context's rows until a revision has them, which the same transaction adds.
    """
    listing = sorted((file.path, _kept(file), file.executable) for file in files)
    if not listing:
        return None
    context = _name(listing)
    rows = ((context, *row) for row in listing)
    database.connection().executemany(
        "INSERT INTO context_files (context, path, sha256, executable) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        rows,
    )
    return context


def _kept(file: ContextFile) -> str:
    """The SHA-256 of a file whose content is in the database from now on."""
    sha256 = file.sha256 or bundles.digest_of(file)
    added = database.execute_sql(
        "INSERT INTO files (sha256, size, content) VALUES (?, ?, zeroblob(?)) ON CONFLICT DO NOTHING",
        (sha256, file.size, file.size),
    )
    if added.rowcount:
        with database.connection().blobopen("files", "content", added.lastrowid or 0) as blob:
            bundles.copy(file, sha256, blob.write)
    return sha256


def _name(listing: list[tuple[str, str, bool]]) -> str:
    text = json.dumps(listing, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def require_room(owner_id: int | None, extra_bytes: int) -> None:
    """Raise QuotaExceeded where one user's contexts would be over their limit; global ones have none.

    Nothing extra, once the rows are there, counts most exactly: what is shared counts once.
    """
    if owner_id is None:
        return
    used = database.execute_sql(_USED, (owner_id,)).fetchone()[0]
    if used + extra_bytes > CONTEXT_BYTES_PER_USER:
        raise QuotaExceeded(
            f"your templates' build contexts would have {-(-(used + extra_bytes) // _MIB)} MiB with this;"
            f" one user may have {CONTEXT_BYTES_PER_USER // _MIB} MiB",
            hint="svc template list  # deleting one makes room",
            details={
                "resource": "context_bytes",
                "limit": CONTEXT_BYTES_PER_USER,
                "used": used,
                "requested": extra_bytes,
            },
        )


def sweep() -> None:
    """Drop what no revision has any more, in the transaction that dropped the revision."""
    contents: set[tuple[str]] = set()
    for loose in database.execute_sql(_LOOSE).fetchall():
        contents.update(
            database.execute_sql("DELETE FROM context_files WHERE context = ? RETURNING sha256", loose)
        )
    database.connection().executemany(_SWEEP_CONTENT, contents)


# --- reading ---------------------------------------------------------------------------


def facts(context: str | None) -> tuple[int, int]:
    """How many files a context has, and their bytes."""
    count, size = database.execute_sql(
        "SELECT count(*), coalesce(sum(f.size), 0) FROM context_files x JOIN files f USING (sha256)"
        " WHERE x.context = ?",
        (context,),
    ).fetchone()
    return count, size


def files_of(context: str | None) -> Iterator[ContextFile]:
    """The files of a context in order, to be read in this thread and in one transaction with this call."""
    rows = database.execute_sql(
        "SELECT x.path, x.executable, f.rowid, f.size, x.sha256 FROM context_files x"
        " JOIN files f USING (sha256) WHERE x.context = ? ORDER BY x.path",
        (context,),
    ).fetchall()
    for path, executable, row, size, sha256 in rows:
        yield ContextFile(path, bool(executable), partial(_opened, row), size, sha256)


def _opened(row: int) -> BinaryIO:
    return io.BufferedReader(_Content(row))


def source_digest(dockerfile: bytes, context: str | None) -> str:
    """What a build is made from, as one SHA-256 (hex): the Dockerfile's bytes and the context's listing."""
    digest = hashlib.sha256(b"%d\n" % len(dockerfile))
    digest.update(dockerfile)
    digest.update((context or "").encode())
    return digest.hexdigest()


def archive(file: BinaryIO, dockerfile: bytes, context: str | None) -> None:
    """Write what a build needs as a plain tar: `Dockerfile`, and the context's files below `context/`.

    Equal sources give equal bytes. Reads in one transaction: nothing is swept meanwhile.
    """
    recipe = ContextFile(DOCKERFILE, False, lambda: io.BytesIO(dockerfile), len(dockerfile))
    with database.atomic("DEFERRED"):
        bundles.put(file, recipe)
        for given in files_of(context):
            bundles.put(file, given._replace(path=CONTEXT + given.path))
    file.write(bundles.END)
