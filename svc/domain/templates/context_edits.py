"""A template's build context, file by file: list, read, set, remove, replace.

"A clone has its own editable build context." Whoever sees a template may read its
context; only that of a private one is changed. A change reads the present files and
adds the revision with the new ones in one transaction, so concurrent changes of
different files are all kept. As a change of the Dockerfile, it disables the template.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from svc.db.connect import database, write
from svc.domain import operations, pages, versions
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import (
    bundle_paths,
    bundles,
    contexts,
    import_export,
    revisions,
    rows,
    sources,
    templates,
)
from svc.domain.templates.bundle_paths import CONTEXT, printable
from svc.domain.templates.bundles import ContextFile
from svc.domain.templates.rows import Template
from svc.domain.versions import Expected
from svc.errors import NotFound, QuotaExceeded, TooLarge, ValidationFailed, invalid_field
from svc.limits import BUNDLE_MAX, BUNDLE_MEMBERS_MAX

FILES_MAX = BUNDLE_MEMBERS_MAX - 1  # the Dockerfile is a member of the bundle, too
_MIB = 1024 * 1024
_SORT = {"path": "x.path", "size": "f.size"}

Files = dict[str, ContextFile]


class Content(NamedTuple):
    """A file of a context that was read."""

    name: str
    executable: bool
    version: str


# --- reading ---------------------------------------------------------------------------


def page_of(caller: Caller, ref: str, page: Page) -> dict[str, Any]:
    """One page of the files of a template's context: {path, size, executable, sha256}; and its `version`.

    Raises NotFound, also for a template without a Dockerfile.
    """
    with database.atomic("DEFERRED"):
        template = templates.built_from_dockerfile(caller, ref)
        return page_at(template, page) | {"version": versions.of_context(template.context)}


def page_at(template: Template, page: Page) -> dict[str, Any]:
    """One page of the files of a template's context at its revision; none without a Dockerfile."""
    found, values = pages.matching(page, ("x.path",))
    return pages.select(
        page,
        "x.path, f.size, x.executable, x.sha256",
        f"FROM context_files x JOIN files f USING (sha256) WHERE x.context = ? AND {found}",
        (template.context, *values),
        pages.order_by(page, _SORT, "path", "x.path"),
        _record,
    )


def _record(row: tuple[Any, ...]) -> dict[str, Any]:
    path, size, executable, sha256 = row
    return {"path": path, "size": size, "executable": bool(executable), "sha256": sha256}


def read(caller: Caller, ref: str, path: str, to: BinaryIO) -> Content:
    """Write the content of one file to another; raises NotFound."""
    with database.atomic("DEFERRED"):  # no content is deleted meanwhile
        template = templates.built_from_dockerfile(caller, ref)
        one = _get(caller, template, _files(template), path)
        bundles.copy(one, one.sha256, to.write)
    return Content(path.rpartition("/")[2], one.executable, _version(one))


def _version(one: ContextFile) -> str:
    return versions.of_file(one.sha256, executable=one.executable)


def _files(template: Template) -> Files:
    return {one.path: one for one in contexts.files_of(template.context)}


def _get(caller: Caller, template: Template, files: Files, path: str) -> ContextFile:
    """The file of that path; raises NotFound, ValidationFailed for a directory."""
    if path in files:
        return files[path]
    hint = _list_command(caller, template)
    below = sum(name.startswith(f"{path.rstrip('/')}/") for name in files)
    if below:
        message = f"{printable(path)} is a directory with {below} file{'s' * (below > 1)}: name one of them"
        raise invalid_field("path", "directory", message, hint=hint)
    raise NotFound(
        f"the build context of {template.name} has no file {printable(path)}",
        hint=hint,
    )


def _list_command(caller: Caller, template: Template) -> str:
    return f"svc template context {rows.reference(caller.user_id, template.id)}"


# --- changing --------------------------------------------------------------------------


def require_writable(caller: Caller, ref: str) -> Template:
    """The template, whose context the caller may change; raises NotFound, ReadOnly, Conflict."""
    template = rows.find(caller, ref)
    sources.require_writable(caller, template)
    return template


def check_path(untrusted: str) -> None:
    """Raise ValidationFailed unless a file of a context may have this path."""
    why = bundle_paths.fault(untrusted)
    if not why:
        try:
            bundle_paths.check(CONTEXT + untrusted)  # as a member of a bundle
        except ValidationFailed as error:
            why = error.fields[0]["message"]
    if why:
        raise invalid_field("path", "member_name", f"{printable(untrusted) or '(empty)'}: {why}")


def put(
    caller: Caller,
    ref: str,
    path: str,
    content: BinaryIO,
    size: int,
    *,
    executable: bool | None = None,
    expected: Expected = None,
) -> dict[str, Any]:
    """Add or replace one file; returns the template's record. `executable` None keeps what it was.

    `expected` are versions of this file. Raises NotFound, ReadOnly, Conflict, ValidationFailed, TooLarge,
    QuotaExceeded, PreconditionFailed.
    """
    check_path(path)
    new = bundles.context_file(content, path, bool(executable), size)

    def with_file(template: Template, files: Files) -> Files:
        _require_file(caller, template, files, path, expected)
        _require_place(files, path)
        before = files.get(path)
        kept = before.executable if before and executable is None else new.executable
        return files | {path: new._replace(executable=kept)}

    return _changed(caller, ref, with_file, set=path)


def remove(caller: Caller, ref: str, path: str, *, expected: Expected = None) -> dict[str, Any]:
    """Remove one file; returns the template's record. Raises as put does."""

    def without_file(template: Template, files: Files) -> Files:
        _require_file(caller, template, files, path, expected)
        gone = _get(caller, template, files, path)
        return {name: one for name, one in files.items() if name != gone.path}

    return _changed(caller, ref, without_file, removed=path)


def replace(
    caller: Caller, ref: str, files: list[ContextFile], *, expected: Expected = None
) -> dict[str, Any]:
    """Replace the whole context; returns the template's record. Raises as put does.

    `expected` are versions of all its files together.
    """

    def with_all(template: Template, _: Files) -> Files:
        record = {"context": template.context}
        what = f"the build context of {template.name}"
        versions.require(expected, record, versions.CONTEXT, what, _list_command(caller, template))
        return {one.path: one for one in files}

    return _changed(caller, ref, with_all, replaced=len(files))


def _require_file(caller: Caller, template: Template, files: Files, path: str, expected: Expected) -> None:
    """Raise PreconditionFailed for a file that was changed since the caller read it."""
    one = files.get(path)
    record = {"file": [one.sha256, one.executable]} if one else None
    hint = _list_command(caller, template)
    versions.require(expected, record, versions.FILE, f"the file {printable(path)}", hint)


def _require_place(files: Files, path: str) -> None:
    """Raise ValidationFailed if a file's path is that of a directory, or leads through a file."""
    parts = path.split("/")
    parents = ("/".join(parts[:count]) for count in range(1, len(parts)))
    if through := next((parent for parent in parents if parent in files), ""):
        message = f"{printable(through)} is a file, so it has nothing below it"
        raise invalid_field("path", "member_name", message)
    if any(name.startswith(f"{path}/") for name in files):
        raise invalid_field("path", "directory", f"{printable(path)} is a directory")


def _changed(
    caller: Caller, ref: str, change: Callable[[Template, Files], Files], **detail: Any
) -> dict[str, Any]:
    """Apply a change of the files as an edit of the template, in one transaction."""
    with templates.editing(caller), write():
        template = require_writable(caller, ref)
        files = change(template, _files(template))
        _require_bundle(template, files)
        source = revisions.source_of(template)._replace(context=contexts.store(files.values()))
        templates.save(caller, template, source, {}, keys=["context"], **detail)
        _require_room(caller, template)
    operations.wake()  # the worker checkpoints a large write-ahead log
    return templates.get(caller, template.id)


def _require_bundle(template: Template, files: Files) -> None:
    """Raise TooLarge, ValidationFailed for a context with which the template could not be exported."""
    if len(files) > FILES_MAX:
        raise TooLarge(
            f"the build context would have {len(files)} files; it may have {FILES_MAX}",
            details={"limit": FILES_MAX, "size": len(files)},
        )
    dockerfile = (template.dockerfile or "").encode()
    if sum(one.size for one in files.values()) > BUNDLE_MAX:
        size = -(-sum(one.size for one in files.values()) // _MIB)
        raise TooLarge(
            f"the build context would have {size} MiB; with its Dockerfile it may have {BUNDLE_MAX // _MIB}"
            " MiB: download in the Dockerfile what is larger",
            details={"limit": BUNDLE_MAX, "size": size * _MIB},
        )
    bundles.check(import_export.document(template), dockerfile, files.values())


def _require_room(caller: Caller, template: Template) -> None:
    """Raise QuotaExceeded for contexts over the user's limit, after earlier revisions have made room.

    Otherwise a few changes of a large context would fill the limit with what nobody uses.
    """
    try:
        contexts.require_room(caller.user_id)
    except QuotaExceeded:
        if not revisions.delete_unused(template.id):
            raise
        contexts.require_room(caller.user_id)
