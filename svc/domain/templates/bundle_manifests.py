"""A bundle's manifest: strict JSON that lists every member with its digest.

    {"format": 1, "template": {...}, "members": {path: {"sha256", "size", "executable"}}}

`members` may be absent: people write no checksums. The archive itself is the list then.

The bundle's digest is the SHA-256 of this in canonical form (keys sorted, no
spaces, UTF-8), so equal content has an equal digest. `template` is checked later,
by the rules of templates.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, NamedTuple

from svc.domain.templates import bundle_paths
from svc.domain.templates.bundle_paths import CONTEXT, DOCKERFILE, MANIFEST, refused
from svc.errors import TooLarge, ValidationFailed
from svc.limits import (
    BUNDLE_DOCKERFILE_MAX,
    BUNDLE_MANIFEST_MAX,
    BUNDLE_MEMBER_MAX,
    BUNDLE_MEMBERS_MAX,
    JSON_DEPTH_MAX,
)
from svc_helper.wire import strict_json

FORMAT = 1
_DEPTH_MAX = JSON_DEPTH_MAX + 1  # the template is one level down
_BRACKETS_MAX = 4 * BUNDLE_MEMBERS_MAX  # two for a member; the rest is for the template
_MARKS_MAX = 12 * BUNDLE_MEMBERS_MAX  # brackets and commas: six for a member; the rest is for the template

# Possessive, and the closing quote is optional: linear for any input.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_MARK = bytes(byte for byte in range(256) if byte not in b"[]{},")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Member(NamedTuple):
    """The manifest's entry for one member."""

    sha256: str
    size: int
    executable: bool


class Manifest(NamedTuple):
    """A checked manifest; `order` has the names of its members, sorted; without a list `listed` is False."""

    template: dict[str, Any]
    members: dict[str, Member]
    order: list[str]
    digest: str
    listed: bool

    def has_folder(self, path: str) -> bool:
        """Check whether a member is below this path."""
        at = bisect_left(self.order, f"{path}/")
        return at < len(self.order) and self.order[at].startswith(f"{path}/")


def encode(template: Mapping[str, Any], members: Mapping[str, Member]) -> bytes:
    """The canonical manifest; raises ValidationFailed for a template that JSON cannot represent."""
    listed = {path: member._asdict() for path, member in members.items()}
    return _canonical({"format": FORMAT, "template": dict(template), "members": listed})


def decode(untrusted: bytes) -> Manifest:
    """Parse and check a manifest; raises ValidationFailed, TooLarge.

    Of a newer format only the number is read.
    """
    document = _object(untrusted)
    form = document.get("format")
    if type(form) is int and form > FORMAT:
        raise _refused("newer_format", f"made by a newer release (format {str(form)[:20]}, here {FORMAT})")
    if type(form) is not int or form != FORMAT:
        raise _refused("format", f"the format is not {FORMAT}")
    if set(document) | {"members"} != {"format", "template", "members"}:
        raise _refused("manifest", "not the keys format, template and members")
    template, listed = document["template"], document.get("members", {})
    if type(template) is not dict or type(listed) is not dict:
        raise _refused("manifest", "template and members are not both objects")
    require_within("manifest.json lists too many members", len(listed), BUNDLE_MEMBERS_MAX)
    members = {path: _member(path, fact) for path, fact in listed.items()}
    digest = hashlib.sha256(_canonical(document)).hexdigest()
    manifest = Manifest(template, members, sorted(members), f"sha256:{digest}", "members" in document)
    for path in members:
        if manifest.has_folder(path):
            raise refused(path, "member_name", "both a file and a directory")
    return manifest


def require_within(message: str, size: int, limit: int) -> None:
    """Raise TooLarge, with both numbers, for a size over its limit."""
    if size > limit:
        raise TooLarge(
            f"the archive is refused: {message}: {size}, at most {limit}",
            details={"limit": limit, "size": size},
        )


def check_member(untrusted_path: str, size: int, executable: bool) -> str:
    """Return the path of a valid member; raises ValidationFailed, TooLarge."""
    path = bundle_paths.check(untrusted_path)
    if path != DOCKERFILE and not path.startswith(CONTEXT):
        raise refused(path, "unlisted", f"neither {DOCKERFILE} nor below {CONTEXT}")
    if path == DOCKERFILE and executable:
        raise refused(path, "member_mode", "a Dockerfile is not executable")
    most = BUNDLE_DOCKERFILE_MAX if path == DOCKERFILE else BUNDLE_MEMBER_MAX
    require_within(f"{bundle_paths.printable(path)} is too large", size, most)
    return path


def _member(untrusted_path: str, untrusted: Any) -> Member:
    """Check one entry of the list."""
    if type(untrusted) is not dict or set(untrusted) != set(Member._fields):
        raise refused(untrusted_path, "manifest", "listed without exactly sha256, size and executable")
    member = Member(**untrusted)
    if type(member.sha256) is not str or not _SHA256.fullmatch(member.sha256):
        raise refused(untrusted_path, "manifest", "its sha256 is not 64 hexadecimal digits")
    if type(member.size) is not int or member.size < 0 or type(member.executable) is not bool:
        raise refused(untrusted_path, "manifest", "its size or executable has the wrong type")
    check_member(untrusted_path, member.size, member.executable)
    return member


def _object(untrusted: bytes) -> dict[str, Any]:
    """The manifest's JSON object; few enough values that its objects in memory stay small."""
    require_within(f"{MANIFEST} is too large", len(untrusted), BUNDLE_MANIFEST_MAX)
    brackets = _marks(untrusted).translate(None, b",")
    require_within(f"{MANIFEST} has too many lists and objects", len(brackets), _BRACKETS_MAX)
    try:
        return strict_json.load_object(untrusted, depth_max=_DEPTH_MAX, lone_surrogates=True)
    except strict_json.Malformed as error:
        raise _refused("manifest", f"it {error}") from None


def _marks(untrusted: bytes) -> bytearray:
    """The brackets and commas outside strings; raises TooLarge for more than a bundle needs.

    Stops early: two megabytes of the shortest strings would be a hundred as Python objects.
    """
    marks, at = bytearray(), 0
    for number, string in enumerate(_STRING.finditer(untrusted)):
        marks += untrusted[at : string.start()].translate(None, _NO_MARK)
        at = string.end()
        require_within("manifest.json has too many values", max(len(marks), number // 2), _MARKS_MAX)
    marks += untrusted[at:].translate(None, _NO_MARK)
    require_within("manifest.json has too many values", len(marks), _MARKS_MAX)
    return marks


def _canonical(document: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(
            document, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise _refused("manifest", "it has half a surrogate pair") from None
    except ValueError:
        raise _refused("manifest", "a number that JSON does not have") from None


def _refused(code: str, message: str) -> ValidationFailed:
    return refused(MANIFEST, code, message)
