"""Files below the caller's own file roots; the root account has none, tokens only with the scope `files`.

`?path=` and the paths in responses are percent-encoded as in svc.domain.files.paths.
"""

from __future__ import annotations

import base64
from contextlib import ExitStack
from typing import Any

from flask import Blueprint, Response, request

from svc.actions import table
from svc.actions.access import FILES, MEMBER, Access
from svc.domain import configuration
from svc.domain.files import fs
from svc.domain.files import paths as fs_paths
from svc.domain.files import transfers as fs_transfers
from svc.domain.principal import Caller
from svc.errors import InvalidRequest
from svc.web import outputs, ranges
from svc.web.access import action, rechecked, route
from svc.web.gunicorn_worker import shutdown, transfers
from svc.web.schemas.fs import (
    CONTENT,
    ENTRIES,
    ENTRY,
    REMOVED,
    ROOTS,
    UPLOADED,
    DirectoryMake,
    EntriesQuery,
    FileMove,
    FileQuery,
    ListQuery,
    PlaceQuery,
    ReadQuery,
    RemoveQuery,
    UploadQuery,
)

blueprint = Blueprint("fs", __name__)

LONG = Access(MEMBER, scope=FILES, stream=True)
BYTES = "application/octet-stream"
GZIP = "application/gzip"
LINES = "application/jsonl"


@action(blueprint, table.FS_ROOTS, answer=ROOTS)
def roots(caller: Caller) -> dict[str, Any]:
    """The caller's file roots, their free space, and the limits of one call."""
    return fs.list_roots(caller)


@action(blueprint, table.FS_LIST, query=ListQuery(), answer=ENTRIES)
def list_(caller: Caller, root: str, query: dict[str, Any]) -> dict[str, Any]:
    """A path's own entry and a directory's entries; links that stay inside the root are followed."""
    return fs.list_(caller, root, query["path"], query["limit"], query["offset"])


@route(blueprint, "GET", "/fs/<root>/entries", LONG, query=EntriesQuery(), gives=LINES, action=table.FS_LIST)
@shutdown.attributed()
def entries(caller: Caller, root: str, query: dict[str, Any]) -> Response:
    """All entries of a large directory, one JSON object a line, as in `items` of `list`."""
    _require_chunks("a list of entries")
    with ExitStack() as held:
        watched = shutdown.descriptors()
        found = held.enter_context(
            fs_transfers.entries(caller, root, query["path"], query["offset"], hangup_fds=watched)
        )
        if request.method == "HEAD":
            response = Response(iter(()), content_type=LINES)  # of unknown length
        else:
            found.begin()
            response = transfers.Outgoing(found.transfer, found.detail, None, found.end).response(held, LINES)
        response.headers["X-Svc-Entries-Total"] = str(found.total)
        return response


@action(blueprint, table.FS_READ, query=ReadQuery(), answer=CONTENT)
@shutdown.attributed()
def read(caller: Caller, root: str, query: dict[str, Any]) -> dict[str, Any]:
    """A part of a file, as JSON."""
    path, offset = query["path"], query["offset"]
    watched = shutdown.descriptors()
    part = fs_transfers.read(caller, root, path, offset, query["length"], hangup_fds=watched)
    content, size = part["content"], part["size"]
    return {
        "path": fs_paths.encode(path),
        "size": size,
        "offset": offset,
        "content": base64.b64encode(content).decode("ascii"),
        "truncated": offset + len(content) < size,
    }


@action(blueprint, table.FS_DOWNLOAD, query=FileQuery(), gives=BYTES)
@shutdown.attributed()
def download(caller: Caller, root: str, query: dict[str, Any]) -> Response:
    """A file, or one range of its bytes, as an attachment; with an ETag for If-None-Match and If-Range."""
    path = query["path"]
    with ExitStack() as held:
        watched = shutdown.descriptors()
        file = held.enter_context(fs_transfers.opened(caller, "download", root, path, hangup_fds=watched))
        if ranges.is_known(file.etag):
            return Response(status=304, headers=_validators(file))
        part = ranges.requested(file.size, file.etag)
        offset, count = part or (0, file.size)
        if request.method == "HEAD":
            response = Response(status=206 if part else 200, content_type=BYTES)
            response.content_length = count
        else:
            file.begin(offset, count)
            body = transfers.Outgoing(file.transfer, file.detail, count)
            response = body.response(held, BYTES, 206 if part else 200)
        if part:
            response.headers["Content-Range"] = ranges.content_range(offset, count, file.size)
        response.headers.update(_validators(file) | outputs.attachment(fs_paths.name_of(path)))
        return response


@action(blueprint, table.FS_ARCHIVE, query=PlaceQuery(), gives=GZIP)
@shutdown.attributed()
def archive(caller: Caller, root: str, query: dict[str, Any]) -> Response:
    """A directory as a compressed tar, streamed; links stay links, and unreadable files are skipped."""
    path = query["path"]
    _require_chunks("an archive")
    with ExitStack() as held:
        watched = shutdown.descriptors()
        found = held.enter_context(fs_transfers.archive(caller, root, path, hangup_fds=watched))
        if request.method == "HEAD":
            response = Response(iter(()), content_type=GZIP)  # of unknown length
        else:
            found.begin()
            response = transfers.Outgoing(found.transfer, found.detail, None, found.end).response(held, GZIP)
        name = fs_paths.name_of(path) or root.encode()
        response.headers.update(outputs.attachment(name + b".tar.gz"))
        for key in ("members", "bytes", "skipped"):
            response.headers[f"X-Svc-Archive-{key.title()}"] = str(getattr(found, key))
        return response


@action(
    blueprint, table.FS_UPLOAD,
    takes=BYTES, query=UploadQuery(), answer=UPLOADED, status=201,
    location="/api/fs/{root}/download?path={path}",
)  # fmt: skip
@shutdown.attributed()
def upload(caller: Caller, root: str, query: dict[str, Any]) -> dict[str, Any]:
    """Upload a file, which becomes visible under its name when it is complete."""
    size = transfers.announced(BYTES)
    watched = shutdown.descriptors()
    with fs_transfers.upload(
        caller, root, query["path"], size, force=query["force"], hangup_fds=watched
    ) as place:
        with rechecked():
            count = transfers.Incoming(
                place.transfer, place.detail, configuration.current.upload_max
            ).receive()
        with shutdown.attributed():
            return place.commit(count)


@action(
    blueprint, table.FS_MKDIR,
    query=FileQuery(), body=DirectoryMake(), answer=ENTRY, status=201,
    location="/api/fs/{root}/list?path={path}",
)  # fmt: skip
def mkdir(caller: Caller, root: str, query: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Create a directory."""
    return fs.mkdir(caller, root, query["path"], parents=body["parents"])


@action(
    blueprint, table.FS_MOVE,
    query=FileQuery(), body=FileMove(), answer=ENTRY,
)  # fmt: skip
def move(caller: Caller, root: str, query: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Rename a file or a directory within its root; links are not followed."""
    return fs.move(caller, root, query["path"], body["to"], force=body["force"])


@action(blueprint, table.FS_REMOVE, query=RemoveQuery(), answer=REMOVED)
def remove(caller: Caller, root: str, query: dict[str, Any]) -> dict[str, Any]:
    """Remove a file, or a directory with its contents; links are not followed, mount points not entered."""
    return fs.remove(caller, root, query["path"], recursive=query["recursive"])


def _require_chunks(what: str) -> None:
    """Raise InvalidRequest for a client that knows no chunks."""
    if request.environ["SERVER_PROTOCOL"] == "HTTP/1.0":
        raise InvalidRequest(f"{what} is sent in chunks, which HTTP/1.0 does not support; use HTTP/1.1")


def _validators(file: fs_transfers.Opened) -> dict[str, str]:
    """The headers for ranges and conditional requests."""
    headers = {"ETag": f'"{file.etag}"', "Accept-Ranges": "bytes"}
    modified = ranges.http_date(file.mtime_ns)
    return headers | ({"Last-Modified": modified} if modified else {})
