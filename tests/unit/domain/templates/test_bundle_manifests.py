"""The manifest: canonical, strict, bounded."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.domain.templates import bundle_manifests
from svc.domain.templates.bundle_manifests import Member
from svc.errors import TooLarge, ValidationFailed
from svc.limits import BUNDLE_DOCKERFILE_MAX, BUNDLE_MANIFEST_MAX, BUNDLE_MEMBERS_MAX, DOCUMENT_BODY_MAX

SHA = "a" * 64
MEMBERS = {"context/b": Member(SHA, 3, True), "Dockerfile": Member(SHA, 7, False)}
ROW = {"sha256": SHA, "size": 1, "executable": False}


def document(**changes: Any) -> bytes:
    """A manifest with other keys than usual."""
    return json.dumps({"format": 1, "template": {}, "members": {}, **changes}).encode()


def code(untrusted: bytes) -> str:
    """The code with which a manifest is refused."""
    with pytest.raises(ValidationFailed) as caught:
        bundle_manifests.decode(untrusted)
    [field] = caught.value.fields
    assert caught.value.message.isprintable() and len(caught.value.message) < 1500
    return field["code"]


def test_what_is_written_is_read() -> None:
    raw = bundle_manifests.encode({"name": "ü", "n": 1.5}, MEMBERS)
    manifest = bundle_manifests.decode(raw)
    assert (manifest.template, manifest.members) == ({"name": "ü", "n": 1.5}, MEMBERS)
    assert manifest.order == ["Dockerfile", "context/b"]


def test_a_manifest_without_a_list_says_so() -> None:
    manifest = bundle_manifests.decode(b'{"format": 1, "template": {"name": "a"}}')
    assert (manifest.template, manifest.members, manifest.listed) == ({"name": "a"}, {}, False)
    assert bundle_manifests.decode(document()).listed


def test_the_digest_does_not_depend_on_the_order_or_the_spaces() -> None:
    raw = bundle_manifests.encode({"a": 1, "b": 2}, MEMBERS)
    same = json.dumps(dict(reversed(json.loads(raw).items())), indent=2).encode()
    assert same != raw
    assert bundle_manifests.decode(same).digest == bundle_manifests.decode(raw).digest
    other = bundle_manifests.encode({"a": 1, "b": 3}, MEMBERS)
    assert bundle_manifests.decode(other).digest != bundle_manifests.decode(raw).digest


def test_a_newer_format_is_said_whatever_else_is_in_it() -> None:
    for untrusted in (b'{"format": 2}', document(format=3, members=[], more=True), document(format=10**400)):
        with pytest.raises(ValidationFailed, match="made by a newer release") as caught:
            bundle_manifests.decode(untrusted)
        assert caught.value.fields[0]["code"] == "newer_format"


@pytest.mark.parametrize("form", [0, -1, None, True, "1", 1.0, [1]])
def test_no_format(form: Any) -> None:
    assert code(document(format=form)) == "format"


@pytest.mark.parametrize(
    "untrusted",
    [
        b"", b"[]", b"null", b"1", b"{", b'{"format": 1', b"\xff", b"\xef\xbb\xbf{}", b'"\xed\xa0\x80"',
        b'{"format": 1, "format": 1, "template": {}, "members": {}}',
        b'{"format": 1, "template": {"a": 1, "a": 1}, "members": {}}',
        b'{"format": 1, "template": {"a": NaN}, "members": {}}',
        b'{"format": 1, "template": {"a": -Infinity}, "members": {}}',
        b'{"format": 1, "template": {"a": 1e999}, "members": {}}',
        b'{"format": 1, "template": {"a": "\\ud800"}, "members": {}}',
        b'{"format": 1, "template": {"\\udfff": 1}, "members": {}}',
        b'{"format": 1, "template": {}, "members": {}} x',
        b'{"format": ' + b"1" * 5000 + b"}",
        b'{"template": ' + b"[" * 40 + b"]" * 40 + b"}",
        b"[" * 8000, b'{"a":' * 8000, b'{"format": "\n"}',
        document(template=None), document(template=[]), document(members=[]), document(members=None),
        document(more=1), b'{"format": 1, "members": {}}',
    ],
    ids=lambda untrusted: repr(untrusted[:40]),
)  # fmt: skip
def test_what_is_no_manifest(untrusted: bytes) -> None:
    assert code(untrusted) in ("manifest", "format")


@pytest.mark.parametrize(
    ("path", "row", "why"),
    [
        ("context/a", {}, "manifest"),
        ("context/a", None, "manifest"),
        ("context/a", [SHA, 1, False], "manifest"),
        ("context/a", {**ROW, "mode": 420}, "manifest"),
        ("context/a", {**ROW, "sha256": "A" * 64}, "manifest"),
        ("context/a", {**ROW, "sha256": SHA + "\n"}, "manifest"),
        ("context/a", {**ROW, "sha256": None}, "manifest"),
        ("context/a", {**ROW, "size": -1}, "manifest"),
        ("context/a", {**ROW, "size": 1.0}, "manifest"),
        ("context/a", {**ROW, "size": True}, "manifest"),
        ("context/a", {**ROW, "executable": 1}, "manifest"),
        ("Dockerfile", {**ROW, "executable": True}, "member_mode"),
        ("manifest.json", ROW, "unlisted"),
        ("dockerfile", ROW, "unlisted"),
        ("context", ROW, "unlisted"),
        ("contexts/a", ROW, "unlisted"),
        ("etc/passwd", ROW, "unlisted"),
        ("context/../x", ROW, "member_name"),
        ("/etc/passwd", ROW, "member_name"),
        ("", ROW, "member_name"),
        ("context/\x1b[2J", ROW, "member_name"),
        ("context/\ud800", ROW, "member_name"),
    ],
)
def test_a_row_that_is_not_right(path: str, row: Any, why: str) -> None:
    assert code(document(members={path: row})) == why


@pytest.mark.parametrize("between", ["context/a!", "context/a-b", "context/a/b/c"])
def test_a_file_that_is_also_a_directory(between: str) -> None:
    """Also where a name sorts between the two."""
    assert code(document(members={"context/a": ROW, between: ROW, "context/a/b": ROW})) == "member_name"


def test_names_that_differ_only_in_case_are_two() -> None:
    manifest = bundle_manifests.decode(document(members={"context/A/x": ROW, "context/a": ROW}))
    assert manifest.order == ["context/A/x", "context/a"]
    assert manifest.has_folder("context/A") and manifest.has_folder("context")
    assert not manifest.has_folder("context/a") and not manifest.has_folder("cont")


@pytest.mark.parametrize(
    "untrusted",
    [
        b" " * (BUNDLE_MANIFEST_MAX + 1),
        document(template={"a": [[]] * 20_000}),
        b"[]" * 20_000,
        document(members={f"context/{n}": ROW for n in range(BUNDLE_MEMBERS_MAX + 1)}),
        document(members={"context/a": {**ROW, "size": 10**12}}),
        document(members={"Dockerfile": {**ROW, "size": BUNDLE_DOCKERFILE_MAX + 1}}),
    ],
    ids=lambda untrusted: repr(untrusted[:40]),
)
def test_over_a_bound(untrusted: bytes) -> None:
    with pytest.raises(TooLarge) as caught:
        bundle_manifests.decode(untrusted)
    assert caught.value.details["size"] > caught.value.details["limit"]


def test_as_many_members_as_are_allowed_fit() -> None:
    folders = "context/" + "f" * 90 + "/" + "g" * 56  # with the name as long as a header holds
    members = {f"{folders}/{n:099}": Member(SHA, n, False) for n in range(BUNDLE_MEMBERS_MAX)}
    assert len(bundle_manifests.decode(bundle_manifests.encode({}, members)).members) == BUNDLE_MEMBERS_MAX


def test_a_recipe_of_any_bytes_fits_a_body() -> None:
    assert len(json.dumps("\x01" * BUNDLE_DOCKERFILE_MAX)) < DOCUMENT_BODY_MAX


@pytest.mark.parametrize("flood", [b'\\"', b'"', b"\\", b'"\\"', b"[", b"{}", b"1,", b"e\xcc\x81"])
def test_no_flood_takes_long(flood: bytes) -> None:
    began = time.process_time()
    untrusted = b'{"format": 1, "template": "' + flood * (BUNDLE_MANIFEST_MAX // len(flood) - 32)
    with pytest.raises((ValidationFailed, TooLarge)):
        bundle_manifests.decode(untrusted)
    assert time.process_time() - began < 2


def test_a_template_that_json_cannot_say() -> None:
    for value in (float("nan"), float("inf"), "\ud800"):
        with pytest.raises(ValidationFailed):
            bundle_manifests.encode({"a": value}, {})


@given(
    st.binary(max_size=200) | st.text(st.sampled_from('{}[]:,"\\ 1eN.-format'), max_size=60).map(str.encode)
)
def test_anything_is_read_or_refused(untrusted: bytes) -> None:
    with pytest.raises((ValidationFailed, TooLarge)):
        bundle_manifests.decode(untrusted)


@pytest.mark.parametrize("value", [b'""', b"1.5", b"[]", b'"a":""', b"null", b'"\\u0001"'])
@pytest.mark.parametrize("between", [b",", b"", b" , "])
def test_a_flood_of_small_values_costs_no_memory(value: bytes, between: bytes) -> None:
    """Two megabytes of the smallest things JSON has, which as objects would be a hundred."""
    count = (BUNDLE_MANIFEST_MAX - 100) // len(value + between)
    inner = between.join([value] * count)
    opened, closed = (b"{", b"}") if b":" in value else (b"[", b"]")
    data = b'{"format": 1, "template": {"a": ' + opened + inner + closed + b'}, "members": {}}'
    tracemalloc.start()
    with pytest.raises((TooLarge, ValidationFailed)):
        bundle_manifests.decode(data)
    assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
    tracemalloc.stop()


def test_as_many_values_as_a_template_may_have_are_read() -> None:
    """Every list of a template at its longest, beside as many members as there may be."""
    env = [{"name": f"N{number}", "value": "v"} for number in range(64)]
    launcher = {
        "name": "a",
        "title": "",
        "command": ["w"] * 256,
        "env": env,
        "port": None,
        "autostart": False,
    }
    template = {
        "command": ["w"] * 256, "env": env, "defaults": {"env": env}, "launchers": [launcher] * 16,
        "ports": [{"name": "p", "container_port": 1}] * 32,
    }  # fmt: skip
    members = {f"context/{number}": Member(SHA, 1, False) for number in range(BUNDLE_MEMBERS_MAX)}
    raw = bundle_manifests.encode(template, members)
    assert len(bundle_manifests.decode(raw).members) == BUNDLE_MEMBERS_MAX
