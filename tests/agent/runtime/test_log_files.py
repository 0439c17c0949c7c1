"""Rows of output in numbered files: what is read of them, and where the last lines begin."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from svc_helper.agent.runtime import log_files
from svc_helper.agent.runtime.log_files import Files, find_start, output_of

HEAD = "2026-01-01T00:00:00.000000000+00:00"


def row(text: str, flag: str = "F", stream: str = "stdout") -> bytes:
    return f"{HEAD} {stream} {flag} {text}\n".encode()


def written(tmp_path: Path, *files: bytes, first: int = 0) -> Files:
    tmp_path.mkdir(exist_ok=True)
    for number, content in enumerate(files, first):
        (tmp_path / f"a.{number}.log").write_bytes(content)
    return Files(str(tmp_path), "a")


def kept(files: Files, tail: int | None = None, most: int | None = None) -> bytes:
    """The output from where the last lines begin."""
    position, _ = find_start(files, tail, most, lambda: None)
    return b"".join(output_of(rows) for rows in files.forward(position, files.end))


def test_rows() -> None:
    rows = row("one") + row("two ", "P") + row("other", stream="stderr") + row("parts")
    assert output_of(rows) == b"one\ntwo other\nparts\n", "in the order of the file, as on a terminal"
    assert output_of(b"rubbish\nx y Z w\n" + row("kept") + row("a marker", stream="marker")) == b"kept\n"
    assert output_of(row("2026 stdout F forged")) == b"2026 stdout F forged\n"
    for content in (b"", b"a", b"\n", b"a\nb", b"\0\xff\n\n"):
        assert output_of(log_files.rows_of(b"stdout", content)) == content


def test_the_last_lines_are_those_of_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "PART", 100)
    contents = [row("x" * (number % 150), "PFF"[number % 3]) for number in range(90)]
    files = written(tmp_path, b"".join(contents[:40]), b"", b"".join(contents[40:]))
    whole = kept(files)
    lines = whole.splitlines(keepends=True)
    for tail in (0, 1, 2, 30, 59, 60, 61, 10**12):
        assert kept(files, tail) == b"".join(lines[max(0, len(lines) - tail) :]), tail
    for most in (1, 200, 3000):
        assert find_start(files, None, most, lambda: None).truncated
        assert whole.endswith(kept(files, None, most)) and most - 152 <= len(kept(files, None, most)) <= most
    assert find_start(files, 3, 5000, lambda: None).truncated is False
    files.close()
    with written(tmp_path / "other", row("one") + row("unfinished", "P")) as files:
        assert [kept(files, tail) for tail in (0, 1, 2)] == [b"", b"unfinished", b"one\nunfinished"]


def test_a_gap_ends_what_is_kept(tmp_path: Path) -> None:
    written(tmp_path, row("lost"), first=3).close()
    with written(tmp_path, row("one"), row("two") + b"2026-01-01T0", b"", first=5) as files:
        assert (files.first, kept(files)) == ((5, 0), b"one\ntwo\n"), "an incomplete row is not read"
        assert files.end == (6, len(row("two")))


def test_a_row_of_nobody_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "PART", 100)
    monkeypatch.setattr(log_files, "ROW_MAX", 1000)
    with written(tmp_path, row("one") + b"x" * 50_000 + b"\n" + row("two")) as files:
        assert kept(files).startswith(b"one\n") and kept(files).endswith(b"two\n")
        assert kept(files, 1) == b"two\n"
        assert kept(files, 5).endswith(b"two\n")
    with Files(str(tmp_path), "nothing") as files:
        assert (kept(files), kept(files, 3), files.empty) == (b"", b"", True)


def test_times_stand_before_lines_and_not_before_their_parts() -> None:
    timed = log_files.renderer(times=True)
    rows = log_files.rows_of(b"stdout", b"one\ntwo ") + log_files.rows_of(b"stderr", b"more\nthree")
    first, second = rows[: rows.index(b"two")], rows[rows.index(b"two") :]
    head, first_rows = first[: first.rindex(b"\n") + 1], first[first.rindex(b"\n") + 1 :]
    found = timed(head) + timed(first_rows + second) + timed(log_files.rows_of(b"stdout", b" end\n"))
    lines = found.decode().splitlines()
    assert [line[log_files.TIMED :] for line in lines] == ["one", "two more", "three end"]
    for line in lines:
        assert datetime.fromisoformat(line[:26] + line[29:35]).utcoffset() == timedelta(0)
        assert line[35] == " "
    assert timed(log_files.rows_of(log_files.MARKER, b"started\n")) == b""


def test_a_head_that_is_no_time() -> None:
    row = b"\x1b[2J" + b"x" * 31 + b" stdout F text\n"
    assert log_files.renderer(times=True)(row) == b" " * 34 + b"- text\n"


def test_times_count_for_the_most(tmp_path: Path) -> None:
    Path(tmp_path, "output.0.log").write_bytes(log_files.rows_of(b"stdout", b"x\n" * 1000))
    with Files(str(tmp_path), "output") as files:
        position, truncated = find_start(files, None, 1000, lambda: None, log_files.TIMED)
        timed = log_files.renderer(times=True)
        content = b"".join(timed(rows) for rows in files.forward(position, files.end))
    assert truncated
    assert 900 < len(content) <= 1000
