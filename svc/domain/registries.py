"""The administrator's registry policy: the registries that images may come from.

The policy is a root-owned file that `svc admin registry` writes; agents and this
module only read it. An entry is {host, path_prefix, insecure}; an empty list allows nothing.
Hosts are compared as a whole, path prefixes by whole components.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from svc.domain import configuration
from svc.domain.principal import Caller
from svc.errors import AdminCommandOnly, AdminOnly, Conflict, RegistryNotAllowed, invalid_field
from svc.log import log
from svc_helper.wire.limits import IMAGE_REF, IMAGE_REF_MAX, REGISTRY_HOST

FILE_MAX = 256 * 1024
# With a number after it, each of these as the host of a reference would select a transport of Podman.
TRANSPORTS = {
    "containers-storage", "dir", "docker", "docker-archive", "docker-daemon", "oci", "oci-archive", "ostree",
    "sif", "tarball",
}  # fmt: skip

_ref = re.compile(IMAGE_REF)
_host = re.compile(REGISTRY_HOST)


def allowlist() -> list[dict[str, Any]]:
    """The entries in force; none when the file is missing or invalid."""
    try:
        return [entry for entry in _checked(_document()) if entry]
    except (OSError, ValueError, RecursionError) as error:
        path = configuration.current.registries_path
        log("domain", f"cannot read {path}, no registry is allowed: {error}", "error")
        return []


def readable() -> list[dict[str, Any]]:
    """The entries in force, for a change of them: Conflict for a file with anything else in it."""
    entries, faulty = seen()
    if faulty:
        raise _unreadable(f"its entry {faulty[0]} is not valid")
    return entries


def seen() -> tuple[list[dict[str, Any]], list[int]]:
    """The entries in force, the numbers of those that are none; Conflict for a file without a list."""
    try:
        found = _checked(_document())
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(str(error)) from None
    faulty = [number for number, entry in enumerate(found, 1) if entry is None]
    return [entry for entry in found if entry], faulty


def _unreadable(why: str) -> Conflict:
    path = configuration.current.registries_path
    return Conflict(f"{path} cannot be read ({why}); replace it: sudo svc admin registry set FILE")


def _document() -> Any:
    """The content of the file; raises OSError, ValueError, RecursionError."""
    try:
        with open(configuration.current.registries_path, encoding="utf-8") as file:
            return json.loads(file.read(FILE_MAX))
    except FileNotFoundError:
        return []


def _checked(document: Any) -> list[dict[str, Any] | None]:
    """The entries of the file; None in place of one that is none."""
    entries = document.get("registries") if isinstance(document, dict) else document
    if not isinstance(entries, list):
        raise ValueError("no list of registries")
    return [_entry(entry) for entry in entries]


def _entry(untrusted: Any) -> dict[str, Any] | None:
    if not isinstance(untrusted, dict):
        return None
    host, prefix = untrusted.get("host"), untrusted.get("path_prefix", "")
    if not isinstance(host, str) or not isinstance(prefix, str) or not _host.fullmatch(host):
        return None
    return {"host": host, "path_prefix": prefix, "insecure": untrusted.get("insecure") is True}


def allows(image_ref: str) -> bool:
    """Whether the policy in force allows this image."""
    return _allowed(image_ref, allowlist())


def _allowed(image_ref: str, entries: list[dict[str, Any]]) -> bool:
    host, repository = _parts(image_ref)
    for entry in entries:
        prefix = entry["path_prefix"].strip("/")
        if entry["host"] == host and (not prefix or f"{repository}/".startswith(f"{prefix}/")):
            return True
    return False


def _parts(image_ref: str) -> tuple[str, str]:
    """The registry's host and the repository, without tag and digest."""
    host, _, rest = image_ref.partition("/")
    repository = rest.partition("@")[0]
    return host, repository.rpartition(":")[0] or repository  # removes the tag; a repository has no colon


def refused_place(image_ref: str, entries: list[dict[str, Any]] | None = None) -> str:
    """What the allowlist lacks for a refused image: its registry, or of a listed one the repository."""
    host, repository = _parts(image_ref)
    is_listed = any(entry["host"] == host for entry in (allowlist() if entries is None else entries))
    return f"{host}/{repository}" if is_listed else host


def require(image_ref: str) -> None:
    """Raise RegistryNotAllowed unless the policy allows this image."""
    if not allows(image_ref):
        raise RegistryNotAllowed(
            f"images of {refused_place(image_ref)} are not on the registry allowlist; an administrator adds"
            " them",
            hint="svc image allowlist",
            details={"image_ref": image_ref},
        )


def findings(image_refs: Iterable[str]) -> list[dict[str, str]]:
    """The findings of a review for these references, one for each place that is not allowed."""
    entries = allowlist()  # read once: a list of templates has thousands of references
    places = dict.fromkeys(refused_place(ref, entries) for ref in image_refs if not _allowed(ref, entries))
    return [
        {"code": "registry_not_allowed", "message": f"{place} is not on the registry allowlist"}
        for place in places
    ]


def check_image_ref(image_ref: str, field: str = "source.image_ref") -> str:
    """The reference if it is complete (registry/repository:tag); ValidationFailed suggests a complete one."""
    if len(image_ref) <= IMAGE_REF_MAX and _ref.fullmatch(image_ref):
        host = image_ref.partition("/")[0]
        name, colon, _ = host.partition(":")
        if name not in TRANSPORTS and ("." in host or colon or host == "localhost"):
            return image_ref
    message = "an image reference is registry/repository:tag, in lower case"
    for whole in (f"docker.io/library/{image_ref}", f"docker.io/{image_ref}"):
        if len(whole) <= IMAGE_REF_MAX and _ref.fullmatch(whole) and whole.count("/") == 2:
            message = f"an image reference names its registry: {whole}"
            break
    raise invalid_field(field, "image_ref", message)


def require_unchanged(caller: Caller, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The policy in force if it is this one, else AdminCommandOnly: no request writes root's file."""
    if not caller.administers:
        raise AdminOnly("only an administrator can set the registry policy")
    check_policy(entries)
    if entries != allowlist():
        raise AdminCommandOnly(
            "the registry policy is a file of root's, which no request changes",
            hint="sudo svc admin registry --help",
        )
    return entries


def check_policy(entries: list[dict[str, Any]]) -> list[str]:
    """The entries as text, for the audit; ValidationFailed for an entry that is listed twice."""
    keys = [(entry["host"], entry["path_prefix"].strip("/")) for entry in entries]
    for number, key in enumerate(keys):
        if key in keys[:number]:
            message = f"{'/'.join(filter(None, key))} is listed twice"
            raise invalid_field(f"registries.{number}", "twice", message)
    insecure = [" (insecure)" * entry["insecure"] for entry in entries]
    return ["/".join(filter(None, key)) + mark for key, mark in zip(keys, insecure, strict=True)]
