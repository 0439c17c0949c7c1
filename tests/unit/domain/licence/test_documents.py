"""Licence files: what the vendor signs is read, and nothing else is.

"license: flipped bit, other host, `alg` swap, expired, clock set back: invalid; trial not extended".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from unit.licensing import CODE, Vendor

from svc.domain.licence import documents
from svc.errors import LicenseInvalid


def read(content: bytes, vendor: Vendor) -> documents.Licence:
    return documents.read(content, (b"\1" * 32, vendor.public))


def refusal(content: bytes, vendor: Vendor) -> str:
    with pytest.raises(LicenseInvalid) as refused:
        read(content, vendor)
    return refused.value.message


def test_a_signed_licence_is_read(vendor: Vendor) -> None:
    content = vendor.sign(users=50, not_before="2026-01-01", not_after="2026-12-31")
    licence = read(content, vendor)
    assert licence.holder == "Example Ltd"
    assert (licence.host, licence.users, licence.gpus) == (CODE, 50, None)
    assert licence.not_before == "2026-01-01T00:00:00.000Z"
    assert licence.not_after == "2027-01-01T00:00:00.000Z", "its last day is a whole one"
    assert read(json.dumps(json.loads(content)).encode(), vendor) == licence, "spaces do not matter"


def test_every_flipped_bit_is_found(vendor: Vendor) -> None:
    """It is refused, or says the same: a space, or a letter's case in the hexadecimal signature."""
    content = vendor.sign(users=5)
    licence = read(content, vendor)
    for place in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            try:
                assert read(bytes(changed), vendor) == licence
            except LicenseInvalid:
                continue
            assert content[place : place + 1].isspace() or content[place : place + 1] in b"abcdef"


@pytest.mark.parametrize(
    "change",
    [
        {"users": 500}, {"users": None}, {"host": CODE[:-1] + "0"},
        {"not_after": "2199-01-01T00:00:00Z"}, {"alg": "none"}, {"format": 2},
    ],
)  # fmt: skip
def test_a_changed_member_is_found(vendor: Vendor, change: dict[str, Any]) -> None:
    document = json.loads(vendor.sign(users=5))
    document["license"] |= change
    assert refusal(json.dumps(document).encode(), vendor) == "the licence was changed after it was signed"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"alg": "none"}, "must have the members key, license, signature alone"),
        ({"signature": ""}, "was changed"),
        ({"signature": None}, "was changed"),
        ({"signature": "0" * 128}, "was changed"),
        ({"key": "0" * 16}, "another key than this build's"),
        ({"key": None}, "another key than this build's"),
        ({"license": []}, "must have the members"),
    ],
)
def test_no_other_way_of_signing(vendor: Vendor, change: dict[str, Any], why: str) -> None:
    """There is one algorithm, which no member of the file chooses."""
    document = json.loads(vendor.sign()) | change
    assert why in refusal(json.dumps(document).encode(), vendor)


def test_another_vendors_licence_is_refused(vendor: Vendor, tmp_path: Path) -> None:
    other = Vendor(tmp_path)
    assert "another key" in refusal(other.sign(), vendor)
    document = json.loads(other.sign()) | {"key": documents.key_id(vendor.public)}
    assert "was changed" in refusal(json.dumps(document).encode(), vendor)


def test_a_build_without_a_key_says_so(vendor: Vendor) -> None:
    with pytest.raises(LicenseInvalid, match="this build has no licence key"):
        documents.read(vendor.sign(), ())


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"\xff", b"{}" * 2, b"[" * 5000, b'{"key": 1, "key": 2}', b'{"a": NaN}',
        b'{"license": {"users": 1e400}}', b" " * (documents.FILE_MAX + 1),
    ],
    ids=lambda content: repr(content[:12]),
)  # fmt: skip
def test_what_is_no_licence_at_all(vendor: Vendor, content: bytes) -> None:
    assert "licence file" in refusal(content, vendor)


@pytest.mark.parametrize(
    "change",
    [
        {"users": -1}, {"users": True}, {"users": 1.5}, {"gpus": "2"}, {"holder": ""}, {"holder": "a\nb"},
        {"holder": 1}, {"id": "../x"}, {"host": "svc1"}, {"issued": "yesterday"}, {"not_after": 0},
        {"not_after": "2026-13-01T00:00:00Z"}, {"not_after": "9999-12-31T23:59:59Z"},
        {"not_after": "2001-01-01T00:00:00Z"}, {"more": 1}, {"format": 2},
    ],
    ids=str,
)  # fmt: skip
def test_a_signature_is_no_reason_to_trust_a_member(vendor: Vendor, change: dict[str, Any]) -> None:
    """The vendor's key may have signed what a later tool wrote: it is refused, never an internal error."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    document = json.loads(vendor.sign())
    document["license"] |= change
    key: Any = load_pem_private_key(vendor.key.read_bytes(), None)
    document["signature"] = key.sign(documents.CONTEXT + documents.canonical(document["license"])).hex()
    assert "the licence" in refusal(json.dumps(document).encode(), vendor)


def test_the_vendors_tool_signs_the_same_bytes(vendor: Vendor) -> None:
    """The tool has a canonical form of its own, since it needs nothing of svc."""
    import runpy

    from unit.licensing import TOOLS

    theirs = runpy.run_path(str(TOOLS / "license"), run_name="license")
    for value in ({"b": 1, "a": None, "é": "\U0001f600\u2028"}, {"a": {"z": [], "y": "</"}}):
        assert theirs["canonical"](value) == documents.canonical(value)
    assert theirs["CONTEXT"] == documents.CONTEXT
