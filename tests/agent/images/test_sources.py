"""The archive of a build's sources: what is unpacked, and what is refused with nothing written elsewhere."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc_helper.agent.calls import Failure
from svc_helper.agent.images import sources


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    """A member of an archive."""
    created = tarfile.TarInfo(name)
    created.type, created.linkname, created.mode = kind, link, mode
    return created


def archive(
    *members: tarfile.TarInfo, dockerfile: bytes = b"FROM x\n", form: int = tarfile.GNU_FORMAT
) -> io.BytesIO:
    """An archive with a Dockerfile and these members, each as long as it says, of zeros."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=form) as tar:
        first = member("Dockerfile")
        first.size = len(dockerfile)
        tar.addfile(first, io.BytesIO(dockerfile))
        for each in members:
            tar.addfile(each, io.BytesIO(b"\0" * each.size))
    written.seek(0)
    return written


def test_files_have_one_time_and_plain_modes(tmp_path: Path) -> None:
    program, text = member("context/a/b/run", mode=stat.S_ISUID | 0o711), member("context/text", mode=0o600)
    text.size, text.mtime = 5, 1_700_000_000
    umask = os.umask(0o022)
    try:
        sources.unpack(archive(program, text, member("context/empty/", tarfile.DIRTYPE)), str(tmp_path))
    finally:
        os.umask(umask)
    found = {
        str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode)
        for path in sorted(tmp_path.rglob("*"))
    }
    assert found == {
        "Dockerfile": 0o644,
        "context": 0o755,
        "context/a": 0o755,
        "context/a/b": 0o755,
        "context/a/b/run": 0o755,
        "context/empty": 0o755,
        "context/text": 0o644,
    }
    assert (tmp_path / "context/text").stat().st_mtime == 0
    assert (tmp_path / "context/text").read_bytes() == b"\0" * 5


HOSTILE = [
    member("../x"), member("/etc/x"), member("context/../../x"), member("context/./x"), member("other"),
    member("context//x"), member("context/x", tarfile.SYMTYPE, "/etc"), member("Dockerfile/x"),
    member("context/x", tarfile.LNKTYPE, "Dockerfile"), member("context/x", tarfile.FIFOTYPE),
    member("context/x", tarfile.CHRTYPE), member("context/x", tarfile.BLKTYPE), member("contextx/y"),
    member("Dockerfile", tarfile.SYMTYPE, "/etc/passwd"), member("context", tarfile.REGTYPE),
    member("Dockerfile"), member(""), member("."), member("./context/x"), member("context/" + "x" * 300),
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda found: f"{found.name[:20]} {found.type!r}")
def test_members_that_no_context_has(tmp_path: Path, hostile: tarfile.TarInfo) -> None:
    place = tmp_path / "inside/build"
    place.mkdir(parents=True)
    with pytest.raises((Failure, OSError)):
        sources.unpack(archive(hostile), str(place))
    assert sorted(path.name for path in place.rglob("*") if path.is_symlink() or path.name == "x") == []
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
    assert [path.name for path in place.parent.iterdir()] == ["build"]


def test_a_file_twice_and_a_file_as_a_directory(tmp_path: Path) -> None:
    for number, second in enumerate((member("context/a"), member("context/a/b"))):
        with pytest.raises(OSError, match=r"context/a"):
            sources.unpack(archive(member("context/a"), second), str(tmp_path / str(number)))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"x" * 5000,
        b"\0" * 10240,
        archive().getvalue()[:515],
        archive().getvalue()[:700] + b"x" * 600,
        archive().getvalue()[:1600],
        archive().getvalue()[:1024] + b"x" * 9000,
    ],
)
def test_what_is_no_archive(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(Failure, match="the sources of the build cannot be used"):
        sources.unpack(io.BytesIO(raw), str(tmp_path / "new"))


def test_a_size_that_is_a_lie(tmp_path: Path) -> None:
    raw = bytearray(archive(member("context/x")).getvalue())
    at = 1024 + 124  # the size in the second header
    raw[at : at + 12] = b"77777777777\0"
    header = bytearray(raw[1024:1536])
    header[148:156] = b" " * 8
    raw[1024 + 148 : 1024 + 156] = f"{sum(header):06o}\0 ".encode()
    with pytest.raises(Failure):
        sources.unpack(io.BytesIO(bytes(raw)), str(tmp_path / "new"))


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_MEMBERS_MAX", 10)
    with pytest.raises(Failure, match="too large"):
        sources.unpack(archive(*(member(f"context/{number}") for number in range(11))), str(tmp_path / "new"))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_archives_raise_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    raw = bytearray(archive(member("context/a"), member("context/b/c"), form=tarfile.PAX_FORMAT).getvalue())
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, 3000))] = data.draw(st.integers(0, 255))
    place = tmp_path_factory.mktemp("damaged") / "new"
    try:
        sources.unpack(io.BytesIO(bytes(raw)), str(place))
    except (Failure, OSError):
        pass
    assert [path.name for path in place.parent.iterdir()] == ["new"]
