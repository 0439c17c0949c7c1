"""Files: the requests and responses of the routes below `/fs`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from svc.domain.files import paths as fs_paths
from svc.domain.files.fs import TYPES
from svc.limits import FILE_READ_MAX, FILES_LISTED_DEFAULT
from svc.web.schemas.fields import Flag, QueryFlag, QueryNumber
from svc.web.schemas.pages import OFFSET_MAX, Envelope
from svc_helper.wire.limits import FILES_LISTED_MAX

SIZE_MAX = 2**63 - 1


class FilePath(fields.String):
    """A path below a file root, in a query: loads into bytes; raises InvalidRequest for an invalid one.

    The query is decoded with `surrogateescape` (see FileQuery), which keeps bytes that
    are not UTF-8.
    """

    def __init__(self, *, root: bool = False, **options: Any) -> None:
        self.may_be_root = root
        super().__init__(metadata={"description": "percent-encoded, below the file root"}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> Any:
        return fs_paths.parse(os.fsencode(value), root=self.may_be_root)


class EncodedPath(FilePath):
    """The same in a JSON body, where it is percent-encoded as `path` of an entry is."""

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> Any:
        if type(value) is not str:
            raise ValidationError("Not a text.")
        return fs_paths.parse(fs_paths.decode_asked(value), root=self.may_be_root)


class FileQuery(Schema):
    """One file or directory below a root."""

    undecodable = "surrogateescape"  # how inputs.py decodes bytes of the query that are not UTF-8

    path = FilePath(required=True)


class PlaceQuery(Schema):
    """The root itself, or one file or directory below it."""

    undecodable = "surrogateescape"

    path = FilePath(root=True, load_default=b"")


class ListQuery(PlaceQuery):
    """The path to list, and the page."""

    limit = QueryNumber(1, FILES_LISTED_MAX, load_default=FILES_LISTED_DEFAULT)
    offset = QueryNumber(0, OFFSET_MAX, load_default=0)


class EntriesQuery(PlaceQuery):
    """The directory to list, and where to begin."""

    offset = QueryNumber(0, OFFSET_MAX, load_default=0)


class ReadQuery(FileQuery):
    """A file, and a range of it."""

    offset = QueryNumber(0, SIZE_MAX, load_default=0)
    length = QueryNumber(0, FILE_READ_MAX, load_default=FILE_READ_MAX)


class UploadQuery(FileQuery):
    """The path of the new file; `force` replaces an existing one."""

    force = QueryFlag(load_default=False)


class RemoveQuery(FileQuery):
    """The path to remove; `recursive` removes a directory with its contents."""

    recursive = QueryFlag(load_default=False)


class DirectoryMake(Schema):
    """`parents` creates missing parents too, and allows existing directories."""

    parents = Flag(load_default=False)


class FileMove(Schema):
    """The new path in the same root; `force` replaces an existing file."""

    to = EncodedPath(required=True)
    force = Flag(load_default=False)


class Root(Schema):
    """One file root."""

    id = fields.String()
    path = fields.String(metadata={"description": "on the host"})
    mounted_at = fields.String(allow_none=True, metadata={"description": "in every workspace"})
    exists = fields.Boolean()
    read_only = fields.Boolean()
    free_bytes = fields.Integer(allow_none=True)
    size_bytes = fields.Integer(allow_none=True, metadata={"description": "of the file system it is on"})


class FileLimits(Schema):
    """The limits of one call."""

    upload_max_bytes = fields.Integer()
    read_max_bytes = fields.Integer()
    archive_max_members = fields.Integer()
    archive_max_bytes = fields.Integer()


class RootList(Envelope):
    """The caller's file roots."""

    items = fields.List(fields.Nested(Root))
    limits = fields.Nested(FileLimits)


class Entry(Schema):
    """A file, directory or other entry; `target` is that of a symbolic link."""

    name = fields.String(metadata={"description": "bytes that are not UTF-8 are shown as \\xNN"})
    path = fields.String(metadata={"description": "percent-encoded, below the file root"})
    utf8 = fields.Boolean(metadata={"description": "whether `name` is exact"})
    type = fields.String(validate=validate.OneOf(TYPES))
    size = fields.Integer()
    modified_at = fields.DateTime(allow_none=True)
    mode = fields.String(metadata={"description": "permission bits, octal"})
    target = fields.String(allow_none=True)
    owner = fields.String(
        allow_none=True,
        metadata={"description": "a Linux user, `container:ID` for a user inside containers, or a bare id"},
    )


class EntryList(Envelope):
    """A path's own entry and, of a directory, a page of its entries in the order of their names' bytes."""

    path = fields.String(metadata={"description": "percent-encoded, below the file root"})
    entry = fields.Nested(Entry)
    items = fields.List(fields.Nested(Entry))


class FileContent(Schema):
    """A range of a file."""

    path = fields.String(metadata={"description": "percent-encoded, below the file root"})
    size = fields.Integer(metadata={"description": "of the whole file"})
    offset = fields.Integer()
    content = fields.String(metadata={"description": "base64"})
    truncated = fields.Boolean(metadata={"description": "whether the file continues after it"})


class Uploaded(Schema):
    """A complete uploaded file."""

    path = fields.String(metadata={"description": "percent-encoded, below the file root"})
    size = fields.Integer()
    modified_at = fields.DateTime(allow_none=True)
    replaced = fields.Boolean()
    etag = fields.String(metadata={"description": "as a download's ETag, without its quotes"})


class Removed(Schema):
    """The number of removed files, directories and other entries."""

    removed = fields.Integer()


ROOTS = RootList()
ENTRY = Entry()
ENTRIES = EntryList()
CONTENT = FileContent()
UPLOADED = Uploaded()
REMOVED = Removed()
