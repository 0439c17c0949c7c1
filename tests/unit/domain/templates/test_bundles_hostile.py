"""Archives that mean harm: each is refused in words, in bounded memory and time, and nothing is written.

Built with the standard library's `tarfile`, which writes all of them, and by hand where it does not.
"""

from __future__ import annotations

import gzip
import io
import os
import resource
import tarfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from unit.bundling import (
    BLOCK,
    END,
    FILES,
    RECIPE,
    TEMPLATE,
    code,
    header,
    listing,
    manifest,
    member,
    refusal,
    written,
)

from svc.domain.templates import bundles
from svc.errors import TooLarge, ValidationFailed
from svc.limits import BUNDLE_MAX, BUNDLE_MEMBER_MAX, BUNDLE_MEMBERS_MAX

MIB = 1024 * 1024
A = {"context/a": b"alpha"}
START = manifest(A)


@pytest.fixture(autouse=True)
def nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No file can grow and none appears where the test stands."""
    monkeypatch.chdir(tmp_path)
    yield
    assert os.listdir(tmp_path) in ([], ["staged"])


@pytest.fixture
def bounded() -> Iterator[Callable[[], None]]:
    """A function that fails when more than 32 MiB or 5 seconds of work were used since."""
    tracemalloc.start()
    began = time.process_time()

    def check() -> None:
        assert tracemalloc.get_traced_memory()[1] < 32 * MIB
        assert time.process_time() - began < 5

    yield check
    tracemalloc.stop()


def packed(
    *members: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT
) -> bytes:
    """What the standard library makes of these, behind a manifest that lists context/a."""
    file = io.BytesIO()
    file.write(START)
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for supplied in members:
            info, content = supplied if isinstance(supplied, tuple) else (supplied, b"")
            info.size = len(content) or info.size
            archive.addfile(info, io.BytesIO(content) if content else None)
    return file.getvalue()


def info(name: str, kind: bytes = tarfile.REGTYPE, **changes: object) -> tarfile.TarInfo:
    """A member of any kind."""
    created = tarfile.TarInfo(name)
    created.type = kind
    for key, value in changes.items():
        setattr(created, key, value)
    return created


# --- what gets out elsewhere -----------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "context/../../evil",
        "/etc/cron.d/evil",
        "//evil",
        "context/..",
        "./context/a",
        "context\\..\\a",
    ],
)
def test_a_name_that_leads_out(name: str) -> None:
    assert code(packed((info(name), b"evil"))) == "member_name"
    assert code(START + member(name, b"evil") + END) == "member_name"


def test_a_link_and_then_a_file_through_it() -> None:
    link = info("context/a", tarfile.SYMTYPE, linkname="/etc")
    assert code(packed(link, (info("context/a/passwd"), b"evil"))) == "member_type"


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE,
     tarfile.GNUTYPE_SPARSE, b"D", b"M", b"V", b"Z", b"7"],
)  # fmt: skip
def test_what_is_neither_file_nor_directory(kind: bytes) -> None:
    created = info("context/a", kind, linkname="b" if kind in (b"1", b"2") else "", devmajor=8, devminor=1)
    assert code(packed(created, form=tarfile.USTAR_FORMAT)) == "member_type"


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o1777, 0o6755])
def test_a_mode_beyond_the_usual(mode: int) -> None:
    assert code(packed((info("context/a", mode=mode), b"alpha"))) == "member_mode"


def test_the_deep_path_of_cve_2025_4517() -> None:
    """Names that reach PATH_MAX only once links are followed, by the real trick's own steps."""
    step, links = "d" * 247, []
    path = ""
    for letter in "abcdefghijklmnop":
        links.append(info(os.path.join(path, step), tarfile.DIRTYPE))
        links.append(info(os.path.join(path, letter), tarfile.SYMTYPE, linkname=step))
        path = os.path.join(path, step)
    links.append(
        info(os.path.join("/".join("abcdefghijklmnop"), "l" * 254), tarfile.SYMTYPE, linkname="../" * 16)
    )
    links.append(info("escape", tarfile.SYMTYPE, linkname="l" * 254 + "/../../../../etc"))
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        assert code(packed(*links, (info("escape/passwd"), b"evil"), form=form)) == "member_type"


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_long_name_by_an_extended_header(form: int) -> None:
    assert code(packed((info("context/" + "n" * 300), b"alpha"), form=form)) == "member_type"


@pytest.mark.parametrize(
    "headers",
    [
        {"size": "99999999999"},
        {"size": "0"},
        {"path": "/etc/passwd"},
        {"linkpath": "x"},
        {"GNU.sparse.size": "9"},
    ],
)
@pytest.mark.parametrize("kind", [b"x", b"g"])
def test_an_extended_header_that_lies(headers: dict[str, str], kind: bytes) -> None:
    text = b"".join(b"%d %s=%s\n" % (len(k) + len(v) + 5, k.encode(), v.encode()) for k, v in headers.items())
    data = START + member("PaxHeaders/a", text, kind=kind) + member("context/a", b"alpha") + END
    assert code(data) == "member_type"
    assert code(member("PaxHeaders/a", text, kind=kind) + data) == "member_type"


def test_two_of_one_name() -> None:
    twice = member("context/a", b"alpha")
    assert code(START + twice + twice + END) == "twice"
    assert code(START + twice + member("context/a", b"other") + END) == "twice"
    folder = header("context/", kind=b"5")
    assert code(START + folder + folder + twice + END) == "twice"
    assert code(START + START + twice + END) == "unlisted"


def test_a_file_that_is_a_directory_too() -> None:
    assert code(START + member("context/a", b"alpha") + header("context/a/", kind=b"5") + END) == "twice"
    assert code(START + header("context/a/", kind=b"5") + END) == "unlisted"
    both = {"context/a": b"", "context/a/b": b""}
    assert code(manifest(both) + b"".join(map(member, both)) + END) == "member_name"


def test_a_name_that_is_not_utf_8() -> None:
    error = refusal(START + member(b"context/\xff\x1b[2J", b"alpha") + END)
    assert error.fields[0]["field"] == r"context/\xff\x1b[2J"


# --- what the manifest says --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (member("context/a", b"alpha") + END, "not_a_bundle"),
        (member("context/a", b"alpha") + START + END, "not_a_bundle"),
        (member("Manifest.json", b"{}") + END, "not_a_bundle"),
        (header("manifest.json/", kind=b"5") + END, "not_a_bundle"),
        (member("manifest.json", b"{}", mode=b"0000755\0") + END, "not_a_bundle"),
        (member("manifest.json", b"") + END, "manifest"),
        (member("manifest.json", b"not json") + END, "manifest"),
        (manifest(A, format=2) + END, "newer_format"),
        (START + END, "missing"),
        (START + member("context/b", b"alpha") + END, "unlisted"),
        (START + member("context/A", b"alpha") + END, "unlisted"),
        (START + member("context/a", b"alpha") + member("Dockerfile") + END, "unlisted"),
        (START + member("context/a", b"alpha") + member("evil") + END, "unlisted"),
        (START + member("context/a", b"alpha") + header("context/empty/", kind=b"5") + END, "unlisted"),
        (START + member("context/a", b"alpha") + header("cont/", kind=b"5") + END, "unlisted"),
        (START + member("context/a", b"alphb") + END, "digest"),
        (START + member("context/a", b"alph") + END, "size"),
        (START + member("context/a", b"alpha", mode=b"0000755\0") + END, "member_mode"),
        (manifest(A, members=listing({"evil": b""})) + member("evil") + END, "unlisted"),
    ],
)  # fmt: skip
def test_an_archive_that_is_not_what_its_manifest_says(data: bytes, why: str) -> None:
    assert code(data) == why


# --- how it ends -------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", range(0, len(written()), BLOCK))
def test_cut_short(cut: int) -> None:
    for at in (cut, cut + 1, cut + BLOCK - 1):
        assert code(written()[:at]) in ("not_a_bundle", "truncated")


@pytest.mark.parametrize("at", range(0, len(written()), 7))
def test_a_flipped_byte(at: int) -> None:
    """Refused, except within the template's own words, and then the digest is another one."""
    data = bytearray(written())
    data[at] ^= 0x55
    try:
        bundle = bundles.read(io.BytesIO(data))
    except (ValidationFailed, TooLarge):
        return
    assert bundle.template != TEMPLATE and bundle.digest != bundles.read(io.BytesIO(written())).digest


@pytest.mark.parametrize(
    "tail",
    [
        b"x" * BLOCK,
        bytes(20 * BLOCK),
        bytes(4 * BLOCK) + b"x" * BLOCK,
        bytes(BLOCK) + b"\0" * 511 + b"x",
        written(),
        b"x",
    ],
    ids=range(6),
)
def test_something_behind_the_end(tail: bytes) -> None:
    assert code(written() + tail) == "not_a_bundle"


def test_zeros_up_to_a_whole_record_are_fine() -> None:
    assert bundles.read(io.BytesIO(written() + bytes(19 * BLOCK))).dockerfile() == RECIPE


def test_something_between_the_members() -> None:
    alpha = member("context/a", b"alpha")
    assert code(START + alpha[:-1] + b"x" + END) == "header"
    assert code(START + bytes(BLOCK) + alpha + END) == "not_a_bundle"
    assert code(START + b"x" * BLOCK + alpha + END) == "header"


# --- how much ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "argument"), [(b"\x1f\x8b\x08", "gzip"), (b"BZh9", "bzip2"), (b"\xfd7zXZ\0", "xz"),
                        (b"\x28\xb5\x2f\xfd", "zstd"), (b"PK\x03\x04", "zip")],
)  # fmt: skip
def test_a_compressed_archive_is_named(first: bytes, argument: str) -> None:
    assert argument in refusal(first + written()).message
    assert argument in refusal(first).message


def test_ten_gigabytes_of_zeros_in_a_gzip(tmp_path: Path, bounded: Callable[[], None]) -> None:
    """160 parts of 64 MiB each once unpacked; nothing unpacks them."""
    part = gzip.compress(bytes(16 * MIB), 1, mtime=0) * 4
    with open(tmp_path / "staged", "w+b") as file:
        for _ in range(160):
            file.write(part)
        assert "gzip" in refusal(file).message
    bounded()


def test_ten_gigabytes_without_compression(tmp_path: Path, bounded: Callable[[], None]) -> None:
    with open(tmp_path / "staged", "w+b") as file:
        file.write(written())
        file.truncate(10 * 1024**3)
        assert refusal(file, TooLarge).details == {"limit": BUNDLE_MAX, "size": 10 * 1024**3}
        file.truncate(0)
        file.truncate(10 * 1024**3)
        assert code(file) == "not_a_bundle"
    bounded()


@pytest.mark.parametrize("size", [b"77777777777\0", b"777777777777", b"00000010000\0"])
def test_a_member_that_is_longer_than_the_archive(size: bytes, bounded: Callable[[], None]) -> None:
    assert code(START + header("context/a", raw_size=size) + bytes(4 * BLOCK)) == "truncated"
    assert code(header("manifest.json", raw_size=size) + bytes(4 * BLOCK)) == "truncated"
    bounded()


def test_a_manifest_that_is_too_long(bounded: Callable[[], None]) -> None:
    data = member("manifest.json", b" " * (4 * MIB)) + END
    assert refusal(data, TooLarge).details["size"] == 4 * MIB
    bounded()


def million(tmp_path: Path, each: Callable[[int], bytes], start: bytes) -> Path:
    """An archive of a great many members, as many as BUNDLE_MAX holds, sparse at its end."""
    path = tmp_path / "staged"
    with open(path, "wb") as file:
        file.write(start)
        for number in range(10_000):
            file.write(each(number))
        file.truncate(BUNDLE_MAX)
    return path


@pytest.mark.parametrize("name", ["context/{}", "context/a", "context/"])
def test_a_great_many_members(name: str, tmp_path: Path, bounded: Callable[[], None]) -> None:
    kind = b"5" if name.endswith("/") else b"0"
    path = million(tmp_path, lambda number: header(name.format(number), kind=kind), START)
    with open(path, "rb") as file, pytest.raises(ValidationFailed):
        bundles.read(file)
    bounded()


def test_a_million_members_beyond_the_size(tmp_path: Path, bounded: Callable[[], None]) -> None:
    """A million headers are 512 MB, so the archive's own bound speaks first."""
    with open(tmp_path / "staged", "w+b") as file:
        file.write(START)
        file.truncate(10**6 * BLOCK)
        assert refusal(file, TooLarge).details["limit"] == BUNDLE_MAX
    bounded()


def test_a_directory_for_every_step_of_a_deep_path(bounded: Callable[[], None]) -> None:
    """Not listed, so not bounded by the manifest; counted all the same."""
    deep = {f"context/{number:04}/" + "d/" * 40 + "f": b"" for number in range(110)}
    folders = [
        header(path[: at + 1], kind=b"5")
        for path in deep
        for at in range(len("context/0000"), len(path))
        if path[at] == "/"
    ]
    assert len(folders) > BUNDLE_MEMBERS_MAX
    assert (
        refusal(manifest(deep) + b"".join(folders) + END, TooLarge).details["limit"] == BUNDLE_MEMBERS_MAX + 1
    )
    bounded()


def test_the_memory_of_the_process_stays(tmp_path: Path) -> None:
    """The largest bundle there can be is read with little more than nothing: its content is never held."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    zeros = bytes(BUNDLE_MEMBER_MAX)
    files = {"context/0": zeros, "context/1": zeros[:-MIB]}
    with open(tmp_path / "staged", "w+b") as file:
        file.write(manifest(files))
        for path, content in files.items():
            file.write(header(path, len(content)))
            file.seek(len(content), os.SEEK_CUR)
        file.write(END)
        assert BUNDLE_MAX - MIB < file.tell() <= BUNDLE_MAX
        del zeros, files, content
        tracemalloc.start()
        assert len(bundles.read(file).members) == 2
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
        tracemalloc.stop()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 128 * 1024


def test_an_honest_bundle_is_not_refused() -> None:
    assert set(bundles.read(io.BytesIO(written())).members) == {
        "Dockerfile",
        *(f"context/{path}" for path in FILES),
    }
