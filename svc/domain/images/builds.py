"""Builds of Dockerfiles, by the worker, in the calling user's own store.

A published recipe (a registry image with its Dockerfile) is built as "a private
fallback for a published managed recipe whose download failed (builds the
unchanged embedded Dockerfile under the same image reference)".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from svc.actions.commands import command
from svc.actions.table import IMAGE_PULL
from svc.db.connect import database
from svc.domain import engine_hints, operations, pages, registries
from svc.domain.files import spool
from svc.domain.images import images, preflight
from svc.domain.operations import Report
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import contexts, dockerfile_review, dockerfiles
from svc.domain.templates.rows import Template
from svc.errors import Conflict, SvcError, invalid_field

_FROM = f"""FROM operations o
    LEFT JOIN templates t ON t.id = json_extract({operations.REQUEST}, '$.template_id')
    WHERE o.owner_id = ? AND o.kind = 'build'"""
_SORT = {"created_at": "o.created_at", "finished_at": "o.finished_at", "status": "o.status"}

BuildArgs = Mapping[str, str]  # values of the Dockerfile's ARGs by name
TAR_MEMBER_MAX = 1024  # bytes of a file in an archive besides its content


def is_built(caller: Caller, template: Template) -> bool:
    """Check that the caller has built the present revision and still has its image.

    "A Dockerfile-backed clone or import must be built before it can be enabled."
    """
    done = database.execute_sql(
        "SELECT 1 FROM operations WHERE owner_id = ? AND subject_type = 'image' AND subject_id = ?"
        " AND kind = 'build' AND status = 'succeeded' LIMIT 1",
        (caller.user_id, template.image_ref),
    ).fetchone()
    return done is not None and images.present(caller, template.image_ref)


def require(
    caller: Caller,
    template: Template,
    build_args: BuildArgs | None = None,
    secrets: Iterable[str] | None = None,
) -> None:
    """Raise ValidationFailed or RegistryNotAllowed for a Dockerfile that this caller may not build.

    An argument may select the base image: the policy is asked about what comes out. One that the
    Dockerfile does not declare is refused, since Podman would ignore it; so is the id of a secret.
    """
    dockerfile = dockerfiles.parse(_text(template), build_args)
    if undeclared := sorted(set(build_args or {}) - dockerfile_review.arguments(dockerfile)):
        raise invalid_field("build_args", "undeclared", f"the Dockerfile has no ARG {undeclared[0]}")
    if unmounted := sorted(set(secrets or ()) - dockerfile_review.secrets(dockerfile)):
        message = f"the Dockerfile has no RUN --mount=type=secret,id={unmounted[0]}"
        raise invalid_field("secrets", "undeclared", message)
    dockerfile_review.require(dockerfile, own=_is_own(caller, template), allows=registries.allows)


def last_arguments(caller: Caller, image_ref: str) -> BuildArgs:
    """The arguments of the caller's last successful build of this image: a set-up builds the same."""
    row = database.execute_sql(
        "SELECT request_json FROM operations WHERE owner_id = ? AND subject_type = 'image' AND subject_id = ?"
        " AND kind = 'build' AND status = 'succeeded' AND json_valid(request_json)"
        " ORDER BY created_at DESC, rowid DESC LIMIT 1",
        (caller.user_id, image_ref),
    ).fetchone()
    return dict(json.loads(row[0]).get("build_args", {})) if row else {}


def run(
    caller: Caller,
    template: Template,
    report: Report,
    build_args: BuildArgs | None = None,
    secrets: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Check the size, then build; returns {image_ref, digest}. Repeatable.

    Raises as require() (the policy may have changed) and preflight.reserving() do,
    and BuildFailed with the step; the error is also stored in the image's row.
    """
    image_ref = template.image_ref
    images.remember(caller, image_ref, "building")
    try:
        report.phase("checking")
        require(caller, template, build_args)
        bases, absent, size = sources(caller, template, build_args)
        hosts = {base.partition("/")[0] for base in absent}
        with (
            engine_hints.completing(**({"registry": hosts.pop()} if len(hosts) == 1 else {})),
            preflight.reserving(caller, image_ref, absent, report.cancelled, extra_bytes=size),
        ):
            more = {"build_args": build_args or None, "secrets": secrets}
            found = _build(caller, template, {"bases": bases} | more, report)
        digest = images.arrived(caller, image_ref, found)
    except SvcError as error:
        images.record_failure(caller, image_ref, error, cancelled=report.cancelled())
        raise
    return {"image_ref": image_ref, "digest": digest}


def sources(
    caller: Caller, template: Template, build_args: BuildArgs | None = None
) -> tuple[list[str], list[str], int]:
    """The base images of a Dockerfile, those of them that are not in the store, and the context's bytes."""
    bases = dockerfile_review.images(dockerfiles.parse(_text(template), build_args))
    absent = [base for base in bases if not caller.ask("image.inspect", {"image": base}).get("present")]
    return bases, absent, contexts.totals(template.context)[1]


def _build(caller: Caller, template: Template, more: dict[str, Any], report: Report) -> dict[str, Any]:
    """Send the sources to the caller's agent, which builds; what it found in the store then."""
    count, size = contexts.totals(template.context)
    with spool.unnamed_file(size + len(_text(template)) + (count + 4) * TAR_MEMBER_MAX) as archive:
        contexts.archive(archive, _text(template), template.context)
        spool.ended(archive)
        report.phase("building")
        # ONBUILD instructions of base images run only for a Dockerfile that the caller wrote.
        arguments = {
            "image": template.image_ref,
            "triggers": _is_own(caller, template),
        } | more
        try:
            return caller.ask(
                "image.build",
                arguments,
                input_fd=archive.fileno(),
                on_progress=report.progress,
                cancelled=report.cancelled,
            )
        finally:
            archive.truncate(0)  # the user's agent may keep it open, and with it the disk space


def _text(template: Template) -> bytes:
    if template.dockerfile is None:
        raise Conflict(f"{template.name} has no Dockerfile", hint=command(IMAGE_PULL, ref=template.id))
    return template.dockerfile.encode()


def _is_own(caller: Caller, template: Template) -> bool:
    return template.written_by == caller.user_id


def page_of(caller: Caller, page: Page) -> dict[str, Any]:
    """The caller's builds, newest first: operations, each with its template or None."""
    found, values = pages.matching(page, ("t.name", "o.subject_id"))
    status, statuses = pages.with_status(page, "o.status")
    order = pages.order_by(page, _SORT, "-created_at", "o.id")
    parameters = (caller.user_id, *values, *statuses)
    source = f"{_FROM} AND {found} AND {status}"
    return pages.select(page, operations.RECORD, source, parameters, order, lambda row: json.loads(row[0]))
