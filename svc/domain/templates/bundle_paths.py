"""The names of a bundle's members: validation, and escaping for error messages.

A name is a relative path in UTF-8 (NFC) that stays below the archive in every
unpacker and fits a plain tar header. Names that differ only in case are two names.
"""

from __future__ import annotations

import unicodedata

from svc.errors import ValidationFailed
from svc.limits import BUNDLE_COMPONENT_MAX, BUNDLE_PATH_MAX

NAME_MAX, PREFIX_MAX = 100, 155  # the two fields of a ustar header that a slash joins
MANIFEST, DOCKERFILE, CONTEXT = "manifest.json", "Dockerfile", "context/"

_PRINTED_MAX = 120
# Control and format characters (bidirectional ones among them), surrogates, line and paragraph ends.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(untrusted: str | bytes) -> str:
    """A name for an error message: invisible characters and bad bytes escaped, cut when long."""
    text = untrusted if isinstance(untrusted, str) else untrusted.decode("utf-8", "backslashreplace")
    cut = text[:_PRINTED_MAX] + "..." * (len(text) > _PRINTED_MAX)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def refused(member: str | bytes, code: str, message: str) -> ValidationFailed:
    """The error for an archive with a bad member, whose untrusted name is escaped."""
    name = printable(member) or "(no name)"
    return ValidationFailed(
        f"the archive is refused: {name}: {message}",
        fields=[{"field": name, "code": code, "message": message}],
    )


def check(untrusted: str) -> str:
    """Return a valid member name; raises ValidationFailed with the reason for any other."""
    why = fault(untrusted)
    if why:
        raise refused(untrusted, "member_name", why)
    split(untrusted)
    return untrusted


def fault(path: str) -> str:
    """The reason why a name is invalid, or an empty string."""
    if not path:
        return "a member without a name"
    if len(path) > BUNDLE_PATH_MAX:  # before any check that takes longer for long names
        return f"the path is over {BUNDLE_PATH_MAX} bytes"
    if any(unicodedata.category(c) in _INVISIBLE for c in path):
        return "a control or invisible character in the name"
    if not unicodedata.is_normalized("NFC", path):
        return "the name is not in Unicode's composed form (NFC)"
    if "\\" in path:
        return "a backslash in the name"
    if path.startswith("/"):
        return "an absolute path"
    parts = path.split("/")
    if ".." in parts:
        return "the path leads outside"
    if "." in parts or "" in parts:
        return "an empty component or a dot in the path"
    if len(path.encode()) > BUNDLE_PATH_MAX:
        return f"the path is over {BUNDLE_PATH_MAX} bytes"
    if max(len(part.encode()) for part in parts) > BUNDLE_COMPONENT_MAX:
        return f"a name in the path is over {BUNDLE_COMPONENT_MAX} bytes"
    return ""


def split(path: str) -> tuple[bytes, bytes]:
    """Split a name into a tar header's prefix and name; raises ValidationFailed where that is impossible."""
    whole = path.encode()
    if len(whole) <= NAME_MAX:
        return b"", whole
    cut = whole.find(b"/", len(whole) - NAME_MAX - 1)
    if not 0 < cut <= PREFIX_MAX:
        raise refused(path, "member_name", "the path does not fit a plain tar header")
    return whole[:cut], whole[cut + 1 :]
