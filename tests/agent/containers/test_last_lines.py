"""The last lines of a program's present run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from svc_helper.agent import paths
from svc_helper.agent.calls import Call
from svc_helper.agent.containers import last_lines
from svc_helper.agent.runtime import conmon_log, log_files
from svc_helper.agent.runtime.rotating_log import RotatingLog

WS = "ws-00000000"
CALL = cast(Call, SimpleNamespace(check=lambda: None))


@pytest.fixture
def home(tmp_path: Path) -> Any:
    return SimpleNamespace(home=str(tmp_path))


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ([], ""),
        ([b"of before\n", None], ""),
        ([None, b"of before\n", None, b"now\n", b"and now\n"], "now\nand now\n"),
        ([None, b"started -- line --\n"], "started -- line --\n"),
        ([None, *[b"%d\n" % number for number in range(20)]], "".join(f"{n}\n" for n in range(10, 20))),
        ([None, b"x" * 9000], "x" * 4000),
    ],
)
def test_of_a_launcher(home: Any, written: list[bytes | None], found: str) -> None:
    directory = Path(paths.launchers(home.home, WS))
    directory.mkdir(parents=True)
    log = RotatingLog(str(directory), "web")
    for each in written:
        if each is None:
            log.mark("started")
        else:
            log.write(each)
    log.close()
    assert last_lines.of_launcher(home, CALL, WS, "web") == found


def test_of_a_container(home: Any) -> None:
    before = last_lines.end_of(home, WS)
    assert last_lines.of_container(home, CALL, WS, before) == ""
    conmon_log.prepare(home, WS)
    log = Path(conmon_log.path(home, WS))
    log.write_bytes(log_files.rows_of(b"stdout", b"one\ntwo"))
    assert last_lines.of_container(home, CALL, WS, before) == "one\ntwo"
    before = last_lines.end_of(home, WS)
    assert last_lines.of_container(home, CALL, WS, before) == ""
    with log.open("ab") as file:
        file.write(log_files.rows_of(b"stderr", b"three\n"))
    assert last_lines.of_container(home, CALL, WS, before) == "three\n"
    file_number = before.number
    log.with_name("output.log.tmp").rename(log)
    log.write_bytes(log_files.rows_of(b"stdout", b"four\n"))
    assert last_lines.of_container(home, CALL, WS, before) == "three\nfour\n"
    assert last_lines.end_of(home, WS).number == file_number + 1
