"""A signed release: one file, `release.json`, as `packaging/vendor/release sign` writes it.

    {"key":"...","release":{"commit":...,"format":1,...},"signature":"..."}

Without spaces between tokens. Root reads it, and parses nothing that is not signed: the signature, Ed25519
over a fixed text and the bytes of `release` as they are, is checked before. There is one
algorithm and no member that names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from svc.domain.licence.documents import TIME, key_id
from svc.errors import ReleaseInvalid
from svc_helper.wire.strict_json import Malformed, load_object

NAME = "release.json"
FILE_MAX = 64 * 1024
CONTEXT = b"svc release 1\n"  # signed before the release, so that no other signature of a key fits
FORMAT = 1
FORM = re.compile(
    rb'\{"key":"([0-9a-f]{16})","release":(\{.*\}),"signature":"([0-9a-f]{128})"\}\n?', re.DOTALL
)
VERSION = re.compile(r"([0-9]+:)?[0-9][A-Za-z0-9.+~-]{0,63}")  # of a Debian package
COMMIT = re.compile(r"[0-9A-Za-z]{1,64}")
PACKAGE_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~_-]{0,127}")
HOST = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
SHA256 = re.compile(r"[0-9a-f]{64}")
PACKAGES_MAX = 64
PACKAGE_MAX = 2**30  # bytes; a package has 20 MiB
SCHEMA_MAX = 9999
NOTES_MAX = 4000
NO_KEY = "this build has no release key, so that it applies no release"


class Package(NamedTuple):
    """The package for one kind of host."""

    os: str
    architecture: str
    file: str
    size_bytes: int
    sha256: str


class Release(NamedTuple):
    """A release whose signature is right; `min_from` is the lowest version to come from."""

    version: str
    commit: str
    schema: int
    published_at: str
    min_from: str
    packages: tuple[Package, ...]
    notes: str


def read(untrusted: bytes, keys: Sequence[bytes]) -> Release:
    """The release in a file; raises ReleaseInvalid for one that none of these keys has signed."""
    if not keys:
        raise ReleaseInvalid(NO_KEY, hint="svc --version   (ask the vendor for a build that has one)")
    if len(untrusted) > FILE_MAX:
        raise ReleaseInvalid(f"{NAME} has more than {FILE_MAX} bytes")
    found = FORM.fullmatch(untrusted)
    if found is None:
        raise ReleaseInvalid(f"{NAME} does not have the form of a signed release")
    _require_signature(found[1].decode(), found[2], bytes.fromhex(found[3].decode()), keys)
    try:
        return _release(load_object(found[2], depth_max=4, brackets_max=4 + 2 * PACKAGES_MAX))
    except Malformed as reason:
        raise ReleaseInvalid(f"{NAME} {reason}") from None


def _require_signature(name: str, content: bytes, signature: bytes, keys: Sequence[bytes]) -> None:
    key = next((key for key in keys if key_id(key) == name), None)
    if key is None:
        known = ", ".join(map(key_id, keys))
        raise ReleaseInvalid(f"the release is signed with another key ({name}) than this build's ({known})")
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, CONTEXT + content)
    except InvalidSignature:
        raise ReleaseInvalid("the release was changed after it was signed") from None


# --- the members: of a signed release, checked all the same ------------------------------------


def _release(signed: dict[str, Any]) -> Release:
    readers: dict[str, Callable[[Any], Any]] = {
        "version": _text(VERSION),
        "commit": _text(COMMIT),
        "schema": _number(1, SCHEMA_MAX),
        "published_at": _text(TIME),
        "min_from": _text(VERSION),
        "packages": _packages,
        "notes": _notes,
    }
    if signed.get("format") != FORMAT:
        raise ReleaseInvalid(
            "the release is of a newer format than this program's: install an earlier release first",
            hint="svc --version   (ask the vendor which release to install first)",
        )
    return Release(**_members(signed, {"format": lambda value: value, **readers}, "release"))


def _members(signed: Any, readers: dict[str, Callable[[Any], Any]], what: str) -> dict[str, Any]:
    if type(signed) is not dict or (unknown := set(signed) ^ set(readers)):
        names = ", ".join(sorted(unknown))[:200] if type(signed) is dict else "all"
        raise ReleaseInvalid(f"the {what} has missing or unknown members: {names}")
    values = {}
    for name, reader in readers.items():
        try:
            values[name] = reader(signed[name])
        except (TypeError, ValueError):
            raise ReleaseInvalid(f"the {what}'s {name} cannot be read") from None
    values.pop("format", None)
    return values


def _packages(value: Any) -> tuple[Package, ...]:
    readers: dict[str, Callable[[Any], Any]] = {
        "os": _text(HOST),
        "architecture": _text(HOST),
        "file": _text(PACKAGE_FILE),
        "size_bytes": _number(1, PACKAGE_MAX),
        "sha256": _text(SHA256),
    }
    if type(value) is not list or not 0 < len(value) <= PACKAGES_MAX:
        raise ValueError
    return tuple(Package(**_members(each, readers, "package")) for each in value)


def _text(form: re.Pattern[str]) -> Callable[[Any], str]:
    def reader(value: Any) -> str:
        if not form.fullmatch(value):
            raise ValueError
        return str(value)

    return reader


def _number(low: int, high: int) -> Callable[[Any], int]:
    def reader(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise ValueError
        return value

    return reader


def _notes(value: Any) -> str:
    if not isinstance(value, str) or len(value) > NOTES_MAX:
        raise ValueError
    return value
