"""Bundles: what is written is read back, equal content is equal, and what is read stays within bounds.

The fuzz tests run longer by hand:
    SVC_TEST_FUZZ=200000 python -m pytest tests/unit/domain/templates/test_bundles.py -k fuzz --timeout 0
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from typing import Any, BinaryIO

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from unit.bundling import (
    BLOCK,
    END,
    FILES,
    RECIPE,
    TEMPLATE,
    checksummed,
    code,
    context,
    header,
    listing,
    manifest,
    member,
    opener,
    written,
)

from svc.domain.templates import bundles
from svc.domain.templates.bundles import Bundle, ContextFile
from svc.errors import Conflict, TooLarge, ValidationFailed
from svc.limits import BUNDLE_DOCKERFILE_MAX, BUNDLE_MAX, BUNDLE_MEMBER_MAX, BUNDLE_MEMBERS_MAX

FUZZ = settings(
    max_examples=int(os.environ.get("SVC_TEST_FUZZ", "200")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

names = st.text(st.sampled_from("abAB-é. "), min_size=1, max_size=12).filter(
    lambda name: name not in (".", "..")
)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
trees = st.dictionaries(paths, st.tuples(st.binary(max_size=1500), st.booleans()), max_size=8)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
arguments = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
)
templates = st.dictionaries(
    texts, st.recursive(arguments, lambda inner: st.lists(inner, max_size=3)), max_size=4
)


def free_of_conflicts(tree: dict[str, Any]) -> dict[str, Any]:
    """The tree without files that are also directories."""
    return {path: fact for path, fact in tree.items() if not any(p.startswith(f"{path}/") for p in tree)}


def contents(bundle: Bundle) -> dict[str, tuple[bytes, bool]]:
    """The build context of a bundle that was read."""
    found = {}
    for path, executable, opened, size, _ in bundle.context():
        with opened() as file:
            found[path] = (file.read(), executable)
        assert len(found[path][0]) == size
    return found


# --- round trip --------------------------------------------------------------------------


@given(template=templates, dockerfile=st.none() | st.binary(max_size=600), tree=trees.map(free_of_conflicts))
def test_what_is_written_is_read(
    template: dict[str, Any], dockerfile: bytes | None, tree: dict[str, tuple[bytes, bool]]
) -> None:
    file = io.BytesIO()
    digest = bundles.write(file, template, dockerfile, context(tree))
    bundle = bundles.read(file)
    assert (bundle.template, bundle.dockerfile(), contents(bundle)) == (template, dockerfile, tree)
    assert bundle.digest == digest
    again = io.BytesIO()
    assert bundles.write(again, bundle.template, bundle.dockerfile(), bundle.context()) == digest
    assert again.getvalue() == file.getvalue()


def test_the_order_in_which_it_was_found_does_not_matter() -> None:
    assert written(dict(reversed(TEMPLATE.items())), RECIPE, dict(reversed(FILES.items()))) == written()


def test_another_mode_name_or_byte_is_another_digest() -> None:
    def digest(dockerfile: bytes | None, files: dict[str, tuple[bytes, bool]]) -> str:
        return bundles.write(io.BytesIO(), TEMPLATE, dockerfile, context(files))

    digests = {
        digest(RECIPE, FILES), digest(None, FILES), digest(b"", FILES), digest(RECIPE, {}),
        digest(RECIPE, {**FILES, "run.sh": (FILES["run.sh"][0], False)}),
        digest(RECIPE, {**FILES, "data/empty": (b"\0", False)}),
    }  # fmt: skip
    assert len(digests) == 6


def test_other_programs_read_it() -> None:
    with tarfile.open(fileobj=io.BytesIO(written()), mode="r:") as archive:
        found = {info.name: (info.mode, info.type) for info in archive}
        assert archive.extractfile("context/run.sh").read() == b"#!/bin/sh\n"
    assert list(found) == [
        "manifest.json",
        "Dockerfile",
        "context/data/empty",
        "context/data/notes.txt",
        "context/run.sh",
    ]
    assert found["context/run.sh"] == (0o755, tarfile.REGTYPE)
    assert found["Dockerfile"] == (0o644, tarfile.REGTYPE)
    assert written().endswith(END) and not written().endswith(END + bytes(BLOCK))


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT])
def test_a_bundle_that_another_program_packed_again_is_the_same(form: int) -> None:
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(written()), mode="r:") as source,
        tarfile.open(fileobj=packed, mode="w", format=form) as target,
    ):
        for info in source:
            info.uid, info.uname, info.mtime = 1000, "someone", 1_700_000_000
            target.addfile(info, source.extractfile(info))
            if info.name == "Dockerfile":
                for folder in ("context", "context/data"):
                    created = tarfile.TarInfo(folder)
                    created.type, created.mode = tarfile.DIRTYPE, 0o755
                    target.addfile(created)
    assert len(packed.getvalue()) % 10240 == 0
    bundle = bundles.read(packed)
    assert bundle.digest == bundles.read(io.BytesIO(written())).digest
    assert contents(bundle) == FILES


# --- reading in place --------------------------------------------------------------------


def test_a_member_ends_where_it_ends() -> None:
    bundle = bundles.read(io.BytesIO(written()))
    with bundle.open("context/run.sh") as one, bundle.open("context/data/notes.txt") as two:
        assert (one.read(4), two.read(3), one.read(100), two.read()) == (
            b"#!/b",
            b"nnn",
            b"in/sh\n",
            b"n" * 697,
        )
        assert (one.read(), one.read(1)) == (b"", b"")
        with pytest.raises(OSError, match="write"):
            one.write(b"x")
    assert bundle.dockerfile() == RECIPE
    for path in ("manifest.json", "context/none", "context/data", "../x"):
        with pytest.raises(KeyError):
            bundle.open(path)


def test_a_descriptor_of_a_file(tmp_path: Any) -> None:
    path = tmp_path / "bundle.tar"
    path.write_bytes(written())
    with open(path, "rb", buffering=0) as file:
        assert contents(bundles.read(file)) == FILES
    assert os.listdir(tmp_path) == ["bundle.tar"]
    assert path.read_bytes() == written()


def test_the_least_that_is_a_bundle() -> None:
    bundle = bundles.read(io.BytesIO(manifest({}) + END))
    assert (bundle.template, dict(bundle.members), bundle.dockerfile()) == ({}, {}, None)


# --- what is not written -------------------------------------------------------------------


def refused_before_writing(kind: type[Exception], *args: Any) -> Exception:
    """How write() refuses; nothing may have been written."""
    file = io.BytesIO()
    with pytest.raises(kind) as caught:
        bundles.write(file, *args)
    assert file.getvalue() == b""
    return caught.value


def never() -> BinaryIO:
    """A file that must not be opened: it was refused by its name or size."""
    raise AssertionError("opened")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a//b", "", "a\nb", "x" * 101, "e\u0301"])
def test_a_bad_name_is_not_written(path: str) -> None:
    refused_before_writing(ValidationFailed, {}, None, [(path, False, never, 1)])


def test_a_name_twice_or_a_file_that_is_a_directory_is_not_written() -> None:
    one = ("a", False, opener(b""), 0)
    refused_before_writing(ValidationFailed, {}, None, [one, one])
    refused_before_writing(ValidationFailed, {}, None, [one, ("a/b", False, opener(b""), 0)])


def test_a_template_that_json_cannot_say_is_not_written() -> None:
    refused_before_writing(ValidationFailed, {"a": float("nan")}, None, [])


def test_what_is_too_large_is_not_written() -> None:
    many = [(f"{n}", False, never, 0) for n in range(BUNDLE_MEMBERS_MAX + 1)]
    refused_before_writing(TooLarge, {}, None, many)
    refused_before_writing(TooLarge, {}, None, [("a", False, never, BUNDLE_MEMBER_MAX + 1)])
    halves = [(name, False, never, BUNDLE_MEMBER_MAX) for name in ("a", "b")]
    assert refused_before_writing(TooLarge, {}, None, halves).details["limit"] == BUNDLE_MAX
    refused_before_writing(TooLarge, {}, b"#" * (BUNDLE_DOCKERFILE_MAX + 1), [])
    refused_before_writing(TooLarge, {"a": "x" * 2**22}, None, [])


@pytest.mark.parametrize("size", [0, 4, 6])
def test_a_file_of_another_size_is_not_written(size: int) -> None:
    refused_before_writing(Conflict, {}, None, [ContextFile("a", False, opener(b"12345"), size)])


@pytest.mark.parametrize("then", [b"54321", b"1234", b"123456"])
def test_a_file_that_changes_meanwhile_is_noticed(then: bytes) -> None:
    states = [b"12345", then]
    file = io.BytesIO()
    with pytest.raises(Conflict):
        bundles.write(file, {}, None, [("a", False, lambda: io.BytesIO(states.pop(0)), 5)])
    with pytest.raises(ValidationFailed):
        bundles.read(file)


# --- fuzz ------------------------------------------------------------------------------------

HEADER_FIELDS = [
    (0, 100), (100, 8), (108, 8), (124, 12), (136, 12), (156, 1), (157, 100), (257, 8), (329, 8), (345, 155),
]  # fmt: skip
ODD = [
    b"", b"\0", b"..", b"/", b"../x", b"x/", b"0", b"5", b"2", b"x", b"L", b"g", b"S", b"\x80", b"\xff" * 12,
    b"00000000000\0", b"77777777777\0", b"0004755\0", b"ustar  \0", b"context/", b"manifest.json",
]  # fmt: skip
odd_fields = st.tuples(st.sampled_from(HEADER_FIELDS), st.sampled_from(ODD))
changes = st.lists(
    st.one_of(
        st.tuples(st.just("byte"), st.integers(0), st.integers(0, 255)),
        st.tuples(st.just("cut"), st.integers(0), st.integers(0, 2 * BLOCK)),
        st.tuples(st.just("drop"), st.integers(0), st.integers(1, 3)),
        st.tuples(st.just("again"), st.integers(0), st.integers(0, 30)),
        st.tuples(st.just("field"), st.integers(0, 12), odd_fields),
    ),
    min_size=1,
    max_size=4,
)


def changed(data: bytes, kind: str, where: int, what: Any) -> bytes:
    """The archive after one change; a changed header gets the checksum that makes it believable."""
    if not data:
        return data
    block = where % (len(data) // BLOCK or 1) * BLOCK
    if kind == "byte":
        at = where % len(data)
        return data[:at] + bytes([what]) + data[at + 1 :]
    if kind == "cut":
        return data[: where % len(data)] + data[where % len(data) + what :]
    if kind == "drop":
        return data[:block] + data[block + what * BLOCK :]
    if kind == "again":
        source = what * BLOCK % len(data)
        return data[:block] + data[source : source + BLOCK] + data[block:]
    (start, size), value = what
    whole = data[block : block + BLOCK]
    created = whole[:start] + value[:size].ljust(size, b"\0") + whole[start + size :]
    return data[:block] + checksummed(created) + data[block + BLOCK :] if len(whole) == BLOCK else data


def read_or_refused(data: bytes) -> None:
    """Only the two refusals come out, or a bundle of which every digest is right."""
    try:
        bundle = bundles.read(io.BytesIO(data))
    except (ValidationFailed, TooLarge) as error:
        assert error.message.isprintable()
        assert all(field["field"].isprintable() and len(field["field"]) < 1500 for field in error.fields)
        return
    for path, fact in bundle.members.items():
        assert path == "Dockerfile" or path.startswith("context/")
        with bundle.open(path) as file:
            content = file.read()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (fact.size, fact.sha256)


@FUZZ
@given(changes)
@example([("byte", 150, 0x37)])
def test_fuzz_a_bundle_changed_at_random(changes: list[tuple[str, int, Any]]) -> None:
    data = written()
    for change in changes:
        data = changed(data, *change)
    read_or_refused(data)


@FUZZ
@given(
    listed=st.dictionaries(paths.map("context/".__add__), st.binary(max_size=600), max_size=4),
    named=st.lists(
        st.tuples(paths | st.binary(min_size=1, max_size=100), st.binary(max_size=600)), max_size=3
    ),
)
def test_fuzz_an_archive_of_random_members(listed: dict[str, bytes], named: list[tuple[Any, bytes]]) -> None:
    parts = [member(path, data) for path, data in [*listed.items(), *named]]
    document = manifest(listed, members=listing(listed))
    read_or_refused(document + b"".join(parts) + END)


@FUZZ
@given(st.binary(max_size=3 * BLOCK))
def test_fuzz_anything(data: bytes) -> None:
    read_or_refused(data)


# --- archives without checksums --------------------------------------------------------


def unlisted(*members: bytes, template: dict[str, Any] = TEMPLATE) -> bytes:
    """A bundle as `tar` writes it: its manifest lists no members."""
    document = {"format": 1, "template": template}
    return member("manifest.json", json.dumps(document).encode()) + b"".join(members) + END


def test_checksums_are_computed() -> None:
    """An archive without the list has the digest of the one with it."""
    parts = [member("Dockerfile", RECIPE), header("context/", kind=b"5", mode=b"0000755\0")]
    for path, (data, run) in FILES.items():
        parts.append(member(f"context/{path}", data, mode=b"0000755\0" if run else b"0000640\0"))
    bundle = bundles.read(io.BytesIO(unlisted(*parts)))
    assert bundle.digest == bundles.read(io.BytesIO(written())).digest
    assert contents(bundle) == FILES
    assert bundle.dockerfile() == RECIPE


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([member("context/a", b"1"), member("context/a", b"2")], "twice"),
        ([member("context/a"), member("context/a/b")], "member_name"),
        ([member("elsewhere/a")], "unlisted"),
        ([member("Dockerfile", RECIPE, mode=b"0000755\0")], "member_mode"),
        ([header("context/empty", kind=b"5")], "unlisted"),
        ([header("context/link", kind=b"2", link=b"/etc/passwd")], "member_type"),
    ],
)
def test_what_is_refused_without_a_list_too(parts: list[bytes], why: str) -> None:
    assert code(unlisted(*parts)) == why


def test_the_files_of_a_context_alone() -> None:
    data = (
        member("run.sh", b"#!", mode=b"0000755\0") + header("data/", kind=b"5") + member("data/x", b"x") + END
    )
    found = bundles.read_context(io.BytesIO(data))
    assert [(one.path, one.executable, one.open().read()) for one in found] == [
        ("run.sh", True, b"#!"), ("data/x", False, b"x"),
    ]  # fmt: skip
    assert bundles.read_context(io.BytesIO(END + bytes(8192))) == []


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not_a_bundle"),
        (bytes(512), "not_a_bundle"),
        (b"\x1f\x8b" + bytes(2000), "not_a_bundle"),
        (member("a") + member("a") + END, "twice"),
        (member("../a") + END, "member_name"),
        (member("/a") + END, "member_name"),
        (header("a", kind=b"1", link=b"b") + END, "member_type"),
        (member("a")[:-1], "not_a_bundle"),
    ],
)
def test_a_context_that_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        bundles.read_context(io.BytesIO(data))
    assert caught.value.fields[0]["code"] == why
    assert "bundle" not in caught.value.message
