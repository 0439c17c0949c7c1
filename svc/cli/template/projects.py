"""Templates from local files, packed as a bundle without checksums, which the service computes.

A project is a directory with a Dockerfile; an unpacked bundle has manifest.json,
Dockerfile and context/.
"""

from __future__ import annotations

import io
import json
import os
import re

from svc.cli.template.ignore_rules import IgnoreRules
from svc.cli.template.trees import Packed
from svc.client.requests import read_document, read_file
from svc.commandline import output
from svc.errors import FileRefused, UsageError
from svc.limits import BUNDLE_MANIFEST_MAX
from svc_helper.wire import strict_json

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.commandline.arguments import Arguments

MANIFEST, DOCKERFILE, CONTEXT = "manifest.json", "Dockerfile", "context"
DOCKERFILES = ("Containerfile", DOCKERFILE)  # the first that exists, as `podman build`
FORMAT = 1
NAME_MAX = 63


def of_arguments(args: Arguments) -> tuple[Any, int]:
    """The archive for `template create --dockerfile`, and its size; raises FileRefused, UsageError."""
    again = "svc template create --help"
    if args.file == "-" == args.dockerfile:
        raise UsageError("--file and --dockerfile cannot both be standard input", hint=again)
    template = _object(args.file, read_document(args.file)) if args.file else {}
    source = template.get("source", {"type": "dockerfile"})
    if isinstance(source, dict) and "dockerfile" in source:
        raise UsageError(
            f"{args.file} has a Dockerfile in its source, and --dockerfile is another", hint=again
        )
    if args.name:
        template["name"] = args.name
    elif "name" not in template:
        if args.dockerfile == "-" and not args.context:
            raise UsageError("a Dockerfile from standard input has no name: add --name", hint=again)
        template["name"] = _name_of(args.context or os.path.dirname(args.dockerfile) or ".", again)
    archive = packed(template | {"source": source}, read_file(args.dockerfile))
    if args.context:
        require_directory(args.context)
        archive.add_directory(args.context, f"{CONTEXT}/", rules=IgnoreRules.of(args.context))
    return archive.finished()


def of_directory(directory: str) -> tuple[Any, int]:
    """The archive for `template import DIR`, and its size; raises FileRefused."""
    manifest = os.path.join(directory, MANIFEST)
    if os.path.exists(manifest):
        return _unpacked_bundle(directory, manifest)
    name = next((name for name in DOCKERFILES if os.path.exists(os.path.join(directory, name))), "")
    if not name:
        raise FileRefused(
            f"{directory} has neither a {DOCKERFILE}, as a project, nor a {MANIFEST}, as an unpacked bundle",
            hint="svc help template import",
        )
    template = {"name": _name_of(directory, "svc template create --help"), "source": {"type": "dockerfile"}}
    archive = packed(template, read_file(os.path.join(directory, name)))
    archive.add_directory(directory, f"{CONTEXT}/", rules=IgnoreRules.of(directory))
    return archive.finished()


def require_directory(path: str) -> None:
    """Raise FileRefused unless this is a directory."""
    if not os.path.isdir(path):
        what = "is not a directory" if os.path.lexists(path) else "does not exist"
        raise FileRefused(f"{path} {what}")


def _unpacked_bundle(directory: str, path: str) -> tuple[Any, int]:
    document = _object(path, read_document(path, BUNDLE_MANIFEST_MAX))
    document.pop("members", None)  # of the files as they were
    archive = Packed()
    _add_bytes(archive, MANIFEST, json.dumps(document).encode())
    dockerfile, context = os.path.join(directory, DOCKERFILE), os.path.join(directory, CONTEXT)
    if os.path.exists(dockerfile):
        _add_bytes(archive, DOCKERFILE, read_file(dockerfile))
    if os.path.isdir(context):
        archive.add_directory(context, f"{CONTEXT}/")
    for name in sorted(set(os.listdir(directory)) - {MANIFEST, DOCKERFILE, CONTEXT}):
        output.note(f"{os.path.join(directory, name)} is no part of a bundle and is left out")
    return archive.finished()


def packed(template: dict[str, Any], dockerfile: bytes) -> Packed:
    """The beginning of an archive: the template and its Dockerfile."""
    started = Packed()
    document = {"format": FORMAT, "template": template}
    _add_bytes(started, MANIFEST, json.dumps(document).encode())
    _add_bytes(started, DOCKERFILE, dockerfile)
    return started


def _add_bytes(archive: Packed, name: str, content: bytes) -> None:
    archive.add(name, io.BytesIO(content), len(content))


def _object(path: str, untrusted: bytes) -> dict[str, Any]:
    try:
        return strict_json.load_object(untrusted, depth_max=64)
    except strict_json.Malformed as error:
        raise FileRefused(f"{path}: it {error}") from None


def _name_of(directory: str, hint: str) -> str:
    """The directory's name as that of a template; raises FileRefused where nothing is left of it."""
    base = os.path.basename(os.path.abspath(directory))
    name = re.sub("[^a-z0-9]+", "-", base.lower())[:NAME_MAX].strip("-")
    if not name:
        raise FileRefused(f"no name for a template in {base}: name it with --name", hint=hint)
    return name
