"""Files below the caller's own file roots; root has none, and tokens do not reach them.

`?path=` and the paths in answers are percent-encoded bytes; svc.domain.files.paths
says which. Transfers go by svc.web.gunicorn_worker.transfers.
"""

from __future__ import annotations

import base64
from contextlib import ExitStack
from typing import Any

from flask import Blueprint, Response, request

from svc.domain import configuration
from svc.domain.files import fs
from svc.domain.files import paths as fs_paths
from svc.domain.files import transfers as fs_transfers
from svc.domain.principal import Caller
from svc.errors import InvalidRequest
from svc.web import outputs, ranges
from svc.web.access import MEMBER, Access, rechecked, route
from svc.web.gunicorn_worker import shutdown, transfers
from svc.web.schemas.fs import (
    CONTENT,
    ENTRIES,
    ENTRY,
    REMOVED,
    ROOTS,
    UPLOADED,
    DirectoryMake,
    FileMove,
    FileQuery,
    ListQuery,
    PlaceQuery,
    ReadQuery,
    RemoveQuery,
    UploadQuery,
)

blueprint = Blueprint("fs", __name__)

OWN = Access(MEMBER)
STREAM = Access(MEMBER, stream=True)
BYTES = "application/octet-stream"
GZIP = "application/gzip"


@route(blueprint, "GET", "/fs/roots", OWN, answer=ROOTS)
def roots(caller: Caller) -> dict[str, Any]:
    """The caller's file roots, how much room they have, and what one call takes at most."""
    return fs.list_roots(caller)


@route(blueprint, "GET", "/fs/<root>/list", OWN, query=ListQuery(), answer=ENTRIES)
def list_(caller: Caller, root: str, query: dict[str, Any]) -> dict[str, Any]:
    """What a path is, and a directory's entries; a link is followed where it stays inside the root."""
    return fs.list_(caller, root, query["path"], query["limit"], query["offset"])


@route(blueprint, "GET", "/fs/<root>/read", OWN, query=ReadQuery(), answer=CONTENT)
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


@route(blueprint, "GET", "/fs/<root>/download", STREAM, query=FileQuery(), gives=BYTES)
def download(caller: Caller, root: str, query: dict[str, Any]) -> Response:
    """A file, or one range of its bytes, to be saved; with an ETag for If-None-Match and If-Range."""
    path = query["path"]
    with ExitStack() as held:
        watched = shutdown.descriptors()
        file = held.enter_context(fs_transfers.opened(caller, "download", root, path, hangup_fds=watched))
        if ranges.is_known(file.etag):
            return Response(status=304, headers=_facts(file))
        part = ranges.asked(file.size, file.etag)
        offset, count = part or (0, file.size)
        if request.method == "HEAD":
            response = Response(status=206 if part else 200, content_type=BYTES)
            response.content_length = count
        else:
            file.begin(offset, count)
            body = transfers.Outgoing(file.transfer, file.told, count)
            response = body.response(held, BYTES, 206 if part else 200)
        if part:
            response.headers["Content-Range"] = ranges.content_range(offset, count, file.size)
        response.headers.update(_facts(file) | outputs.attachment(fs_paths.name_of(path)))
        return response


@route(blueprint, "GET", "/fs/<root>/archive", STREAM, query=PlaceQuery(), gives=GZIP)
def archive(caller: Caller, root: str, query: dict[str, Any]) -> Response:
    """A directory as a compressed tar, streamed; links stay links, and what cannot be read is skipped."""
    path = query["path"]
    if request.environ["SERVER_PROTOCOL"] == "HTTP/1.0":
        raise InvalidRequest("an archive comes in chunks, which HTTP/1.0 does not have")
    with ExitStack() as held:
        watched = shutdown.descriptors()
        found = held.enter_context(fs_transfers.archive(caller, root, path, hangup_fds=watched))
        if request.method == "HEAD":
            response = Response(iter(()), content_type=GZIP)  # of a length that nobody knows
        else:
            found.begin()
            response = transfers.Outgoing(found.transfer, found.told, None, found.end).response(held, GZIP)
        name = fs_paths.name_of(path) or root.encode()
        response.headers.update(outputs.attachment(name + b".tar.gz"))
        for key in ("members", "bytes", "skipped"):
            response.headers[f"X-Svc-Archive-{key.title()}"] = str(getattr(found, key))
        return response


@route(
    blueprint, "PUT", "/fs/<root>/file", OWN,
    takes=BYTES, query=UploadQuery(), answer=UPLOADED, status=201,
)  # fmt: skip
def upload(caller: Caller, root: str, query: dict[str, Any]) -> dict[str, Any]:
    """Upload a file: it has its name when it is whole, and until then nothing of it is seen."""
    size = transfers.announced(BYTES)
    watched = shutdown.descriptors()
    with fs_transfers.upload(
        caller, root, query["path"], size, force=query["force"], hangup_fds=watched
    ) as place:
        with rechecked():
            count = transfers.Incoming(place.transfer, place.told, configuration.current.upload_max).receive()
        return place.commit(count)


@route(
    blueprint, "POST", "/fs/<root>/mkdir", OWN,
    query=FileQuery(), body=DirectoryMake(), answer=ENTRY, status=201,
)  # fmt: skip
def mkdir(caller: Caller, root: str, query: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Make a directory."""
    return fs.mkdir(caller, root, query["path"], parents=body["parents"])


@route(blueprint, "POST", "/fs/<root>/move", OWN, query=FileQuery(), body=FileMove(), answer=ENTRY)
def move(caller: Caller, root: str, query: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Rename a file or a directory within its root; a link is renamed itself."""
    return fs.move(caller, root, query["path"], body["to"], force=body["force"])


@route(blueprint, "DELETE", "/fs/<root>/file", OWN, query=RemoveQuery(), answer=REMOVED)
def remove(caller: Caller, root: str, query: dict[str, Any]) -> dict[str, Any]:
    """Remove a file, or a directory with what is in it; a link itself, and nothing on another file system."""
    return fs.remove(caller, root, query["path"], recursive=query["recursive"])


def _facts(file: fs_transfers.Opened) -> dict[str, str]:
    """What a client may keep of a file, to ask for the rest of it, or for a newer one."""
    facts = {"ETag": f'"{file.etag}"', "Accept-Ranges": "bytes"}
    modified = ranges.http_date(file.mtime_ns)
    return facts | ({"Last-Modified": modified} if modified else {})
