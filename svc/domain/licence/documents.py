"""The licence file: JSON with an Ed25519 signature over the canonical form of its licence.

    {"key": ..., "license": {"format": 1, "id", "holder", "host", "issued", "not_before",
    "not_after", "users", "gpus"}, "signature": ...}

There is one algorithm and no member that names it. Unknown members are refused: a later program may
give them a meaning which this one would pass over.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from svc.domain.licence.fingerprint import CODE
from svc.errors import LicenseInvalid
from svc.host.root_file import LATEST
from svc_helper.wire.strict_json import Malformed, load_object

FILE_MAX = 16 * 1024
CONTEXT = b"svc license 1\n"  # signed before the licence, so that no other signature of a key fits
FORMAT = 1
HOLDER_MAX = 200
NUMBER_MAX = 10**6
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
MEMBERS = {"key", "license", "signature"}


class Licence(NamedTuple):
    """A licence whose signature is right; times in the format of `ids.now`, None is unlimited."""

    id: str
    holder: str
    host: str
    issued: str
    not_before: str
    not_after: str
    users: int | None
    gpus: int | None


def canonical(value: dict[str, Any]) -> bytes:
    """The bytes that are signed: ASCII, keys in order, no space between tokens."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def key_id(public_key: bytes) -> str:
    """The name of a public key."""
    return hashlib.sha256(public_key).hexdigest()[:16]


def read(untrusted: bytes, keys: Sequence[bytes]) -> Licence:
    """The licence in a file; raises LicenseInvalid for one that none of these keys has signed."""
    if len(untrusted) > FILE_MAX:
        raise LicenseInvalid(f"the licence file has more than {FILE_MAX} bytes")
    try:
        document = load_object(untrusted, depth_max=2, brackets_max=4)
    except Malformed as reason:
        raise LicenseInvalid(f"the licence file {reason}") from None
    licence = document.get("license")
    if set(document) != MEMBERS or type(licence) is not dict:
        raise LicenseInvalid(f"the licence file must have the members {', '.join(sorted(MEMBERS))} alone")
    _require_signature(document, licence, keys)
    return _licence(licence)


def _require_signature(document: dict[str, Any], licence: dict[str, Any], keys: Sequence[bytes]) -> None:
    if not keys:
        raise LicenseInvalid("this build has no licence key, so that it can check no licence")
    key = next((key for key in keys if key_id(key) == document["key"]), None)
    if key is None:
        known = ", ".join(map(key_id, keys))
        raise LicenseInvalid(f"the licence is signed with another key than this build's ({known})")
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        signature = binascii.a2b_hex(document["signature"])
        Ed25519PublicKey.from_public_bytes(key).verify(signature, CONTEXT + canonical(licence))
    except (InvalidSignature, ValueError, TypeError, RecursionError):
        raise LicenseInvalid("the licence was changed after it was signed") from None


# --- the members: of a signed licence, checked all the same ------------------------------------


def _licence(signed: dict[str, Any]) -> Licence:
    readers: dict[str, Callable[[Any], Any]] = {
        "id": _text(re.compile(r"lic-[0-9a-z]{4,32}")),
        "holder": _holder,
        "host": _text(CODE),
        "issued": _time,
        "not_before": _time,
        "not_after": _time,
        "users": _number,
        "gpus": _number,
    }
    if signed.get("format") != FORMAT:
        raise LicenseInvalid("the licence is of another format than this program's; update svc")
    if unknown := set(signed) ^ {"format", *readers}:
        raise LicenseInvalid(
            f"the licence has missing or unknown members: {', '.join(sorted(unknown))[:200]}"
        )
    values = {}
    for name, reader in readers.items():
        try:
            values[name] = reader(signed[name])
        except (TypeError, ValueError):
            raise LicenseInvalid(f"the licence's {name} cannot be read") from None
    licence = Licence(**values)
    if licence.not_before >= licence.not_after:
        raise LicenseInvalid("the licence ends before it begins")
    return licence


def _text(form: re.Pattern[str]) -> Callable[[Any], str]:
    def reader(value: Any) -> str:
        if not form.fullmatch(value):
            raise ValueError
        return str(value)

    return reader


def _holder(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= HOLDER_MAX or not value.isprintable():
        raise ValueError
    return value


def _time(value: Any) -> str:
    if not TIME.fullmatch(value) or value > LATEST:
        raise ValueError
    moment = datetime.fromisoformat(value).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _number(value: Any) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= NUMBER_MAX:
        raise ValueError
    return value
