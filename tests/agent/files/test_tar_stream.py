"""The headers of archives, read by GNU tar, bsdtar and Python."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_helper.agent.files import tar_stream
from svc_helper.agent.files.tar_stream import DIRECTORY, FILE, HARD_LINK, SYMLINK, Member

LONG = [b"n" * length for length in (99, 100, 101, 255)] + [b"/".join([b"p" * 200] * 15)]
ODD = [b"-rf", b"new\nline", b" ", b"\x1b[31m", b"\xff\xfe", "ä".encode(), b"\\", b"....", b"*"]
READERS = [["tar", "--numeric-owner", "--warning=no-timestamp"], ["bsdtar"]]


def written(*members: tuple[Member, bytes]) -> bytes:
    """A whole archive."""
    parts = []
    for member, content in members:
        head = tar_stream.header(member._replace(size=len(content)))
        parts += [head, content, bytes(tar_stream.padding(len(content)))]
    return b"".join(parts) + tar_stream.END


def unpacked(reader: list[str], archive: bytes, directory: Path) -> Path:
    """The archive, unpacked by a program."""
    if shutil.which(reader[0]) is None:
        pytest.skip(f"needs {reader[0]}")
    directory.mkdir()
    done = subprocess.run([*reader, "-xpf", "-", "-C", str(directory)], input=archive, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    return directory


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader[0])
def test_names_of_any_length_and_bytes(tmp_path: Path, reader: list[str]) -> None:
    members = [(Member(FILE, b"top/" + name), name[:700]) for name in (*LONG, *ODD)]
    members.insert(0, (Member(DIRECTORY, b"top", 0o755), b""))
    for target in (b"x", b"t" * 100, b"t" * 101, b"../" * 400):
        members.append((Member(SYMLINK, b"top/link%d" % len(target), link=target), b""))
    for name in (LONG[2], LONG[4]):
        members.append((Member(HARD_LINK, b"top/hard%d" % len(name), link=b"top/" + name), b""))
    top = os.fsencode(unpacked(reader, written(*members), tmp_path / "out")) + b"/top/"
    for name in (*LONG, *ODD):
        with open(top + name, "rb") as file:
            assert file.read() == name[:700]
    assert os.readlink(top + b"link101") == b"t" * 101
    assert os.readlink(top + b"link1200") == b"../" * 400
    assert os.path.samefile(top + b"hard101", top + LONG[2])
    assert os.path.samefile(top + b"hard%d" % len(LONG[4]), top + LONG[4])


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader[0])
def test_modes_and_times(tmp_path: Path, reader: list[str]) -> None:
    members = [
        (Member(DIRECTORY, b"closed", 0o555, os.getuid(), os.getgid(), mtime=1_000_000_000), b""),
        (Member(FILE, b"closed/program", 0o755, os.getuid(), os.getgid(), mtime=-86_400), b"x" * 513),
        (Member(FILE, b"closed/later", 0o600, os.getuid(), os.getgid(), mtime=2**33 + 5), b""),
    ]
    out = unpacked(reader, written(*members), tmp_path / "out")
    for member, content in members:
        found = (out / os.fsdecode(member.name)).stat()
        assert (found.st_mode & 0o7777, int(found.st_mtime)) == (member.mode, member.mtime)
        assert member.kind == DIRECTORY or found.st_size == len(content)
    (out / "closed").chmod(0o755)


def test_python_reads_the_same() -> None:
    big = 10**9  # more than seven octal digits hold
    archive = written(
        (Member(FILE, b"a", 0o4751, big, 65534, mtime=-1, owner=b"somebody"), b"12345"),
        (Member(DIRECTORY, b"d" * 100, 0o700), b""),
        (Member(SYMLINK, b"l", link=b"a"), b""),
    )
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        first, second, third = tar.getmembers()
        file = tar.extractfile(first)
        assert file is not None and file.read() == b"12345"
    assert (first.mode, first.uid, first.gid, first.mtime) == (0o4751, big, 65534, -1)
    assert (first.uname, first.gname) == ("somebody", "")
    assert (second.isdir(), second.name) == (True, "d" * 100)
    assert (third.issym(), third.linkname) == (True, "a")


def test_a_file_of_more_than_eight_gibibytes(tmp_path: Path) -> None:
    size = 8 * 1024**3 + 1
    path = tmp_path / "great.tar"
    with path.open("wb") as file:
        file.write(tar_stream.header(Member(FILE, b"great", size=size)))
        file.seek(size + tar_stream.padding(size), os.SEEK_CUR)
        file.write(tar_stream.header(Member(FILE, b"after")) + tar_stream.END)
    with tarfile.open(path) as tar:
        assert [(member.name, member.size) for member in tar] == [("great", size), ("after", 0)]
    for reader in ("tar", "bsdtar"):
        if shutil.which(reader):
            done = subprocess.run([reader, "-tvf", str(path)], capture_output=True, text=True, check=True)
            assert str(size) in done.stdout and "after" in done.stdout


@given(
    st.sampled_from([FILE, DIRECTORY, SYMLINK, HARD_LINK]),
    st.binary(min_size=1, max_size=4095),
    st.binary(max_size=4095),
    st.integers(0, 2**62),
    st.integers(-(2**62), 2**62),
    st.integers(0, 2**32 - 2),
    st.binary(max_size=40),
)
def test_headers_are_blocks_with_a_right_sum(
    kind: bytes, name: bytes, link: bytes, size: int, mtime: int, uid: int, owner: bytes
) -> None:
    member = Member(kind, name, 0o7777, uid, uid, size, mtime, link, owner)
    head = tar_stream.header(member)
    assert len(head) == tar_stream.header_size(kind, name, link)
    assert len(head) % tar_stream.BLOCK == 0
    last = bytearray(head[-tar_stream.BLOCK :])
    result = int(bytes(last[148:154]), 8)
    last[148:156] = b" " * 8
    assert result == sum(last)
    assert last[156:157] == kind


@given(st.integers(0, 2**40))
def test_padding(size: int) -> None:
    assert (size + tar_stream.padding(size)) % tar_stream.BLOCK == 0
    assert 0 <= tar_stream.padding(size) < tar_stream.BLOCK
