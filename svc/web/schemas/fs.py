"""Files: what may be asked of a path below a file root, and what comes back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from svc.domain.files import paths as fs_paths
from svc.domain.files.fs import TYPES
from svc.limits import FILE_READ_MAX, FILES_LISTED_DEFAULT, FILES_LISTED_MAX
from svc.web.schemas.fields import Flag, QueryNumber
from svc.web.schemas.pages import OFFSET_MAX

SIZE_MAX = 2**63 - 1


class FilePath(fields.String):
    """A path below a file root, in a query: loads into bytes; raises InvalidRequest for one that is none.

    The query has been read with `surrogateescape` (see FileQuery), so that what
    is no UTF-8 is still there.
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


class QueryFlag(fields.String):
    """true or false in a query (also 1 or 0); loads into a bool."""

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> Any:
        if value not in ("true", "false", "1", "0"):
            raise ValidationError("Use true or false.")
        return value in ("true", "1")


class FileQuery(Schema):
    """One file or directory below a root."""

    undecodable = "surrogateescape"  # what inputs.py does with bytes of the query that are no UTF-8

    path = FilePath(required=True)


class PlaceQuery(Schema):
    """The root itself, or one file or directory below it."""

    undecodable = "surrogateescape"

    path = FilePath(root=True, load_default=b"")


class ListQuery(PlaceQuery):
    """What to list, and which part of it."""

    limit = QueryNumber(1, FILES_LISTED_MAX, load_default=FILES_LISTED_DEFAULT)
    offset = QueryNumber(0, OFFSET_MAX, load_default=0)


class ReadQuery(FileQuery):
    """Which file, and which part of it."""

    offset = QueryNumber(0, SIZE_MAX, load_default=0)
    length = QueryNumber(0, FILE_READ_MAX, load_default=FILE_READ_MAX)


class UploadQuery(FileQuery):
    """Where the file goes; with `force` it may replace another."""

    force = QueryFlag(load_default=False)


class RemoveQuery(FileQuery):
    """What to remove; a directory with what is in it only when `recursive`."""

    recursive = QueryFlag(load_default=False)


class DirectoryMake(Schema):
    """With `parents` the directories above it are made too, and one that is there is fine."""

    parents = Flag(load_default=False)


class FileMove(Schema):
    """Where to, in the same root; with `force` a file there is replaced."""

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
    """What one call takes at most."""

    upload_max_bytes = fields.Integer()
    read_max_bytes = fields.Integer()
    archive_max_members = fields.Integer()
    archive_max_bytes = fields.Integer()


class RootList(Schema):
    """The caller's file roots."""

    items = fields.List(fields.Nested(Root))
    limits = fields.Nested(FileLimits)


class Entry(Schema):
    """A file, a directory or what else has a name; `target` is where a symbolic link leads."""

    name = fields.String(metadata={"description": "bytes that are no UTF-8 are shown as \\xNN"})
    path = fields.String(metadata={"description": "percent-encoded, below the file root"})
    utf8 = fields.Boolean(metadata={"description": "whether `name` is exact"})
    type = fields.String(validate=validate.OneOf(TYPES))
    size = fields.Integer()
    modified_at = fields.DateTime(allow_none=True)
    mode = fields.String(metadata={"description": "permission bits, octal"})
    target = fields.String(allow_none=True)


class EntryList(Schema):
    """What a path is and, of a directory, a part of its entries in the order of their bytes."""

    path = fields.String(metadata={"description": "percent-encoded, below the file root"})
    entry = fields.Nested(Entry)
    items = fields.List(fields.Nested(Entry))
    total = fields.Integer()
    next_offset = fields.Integer(allow_none=True)


class FileContent(Schema):
    """A part of a file."""

    path = fields.String(metadata={"description": "percent-encoded, below the file root"})
    size = fields.Integer(metadata={"description": "of the whole file"})
    offset = fields.Integer()
    content = fields.String(metadata={"description": "base64"})
    truncated = fields.Boolean(metadata={"description": "whether there is more behind it"})


class Uploaded(Schema):
    """A file that is there, whole."""

    path = fields.String(metadata={"description": "percent-encoded, below the file root"})
    size = fields.Integer()
    modified_at = fields.DateTime(allow_none=True)
    replaced = fields.Boolean()
    etag = fields.String(metadata={"description": "as a download's ETag, without its quotes"})


class Removed(Schema):
    """How much is gone: files, directories and all else."""

    removed = fields.Integer()


ROOTS = RootList()
ENTRY = Entry()
ENTRIES = EntryList()
CONTENT = FileContent()
UPLOADED = Uploaded()
REMOVED = Removed()
