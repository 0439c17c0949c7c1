"""The copy of crun that execs start from: sealed, run by its descriptor, and made anew for another crun."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_helper.agent.process import start
from svc_helper.agent.runtime import sealed_crun

SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


@pytest.fixture
def no_copy() -> Iterator[None]:
    """There is no copy yet, and none afterwards."""
    sealed_crun._copied.cache_clear()
    yield
    sealed_crun._copied.cache_clear()


@pytest.fixture
def crun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_copy: None) -> Path:
    """A crun of the test's own, in place of the host's."""
    path = tmp_path / "crun"
    install(path, "one")
    monkeypatch.setattr(sealed_crun, "CRUN", str(path))
    return path


def install(path: Path, answer: str) -> None:
    """Install a crun with this answer, as a package does."""
    new = path.with_name("crun.new")
    new.write_text(f"#!/bin/sh\necho {answer}\n")
    new.chmod(0o755)
    new.replace(path)


def answer_of(program: sealed_crun.Program, *arguments: str) -> str:
    """What the program prints, started as execs start it."""
    read, write = os.pipe2(os.O_CLOEXEC)
    process = start([program.path, *arguments], os.environ, {1: write, **program.fds})
    os.close(write)
    with open(read) as pipe:
        answer = pipe.read().strip()
    assert process.finish(10) == 0
    return answer


def test_nobody_can_write_to_it(crun: Path) -> None:
    [fd] = sealed_crun.program().fds.values()
    assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) == SEALS, "with exactly these crun does not start again"
    assert not os.get_inheritable(fd)
    with pytest.raises(PermissionError):
        os.pwrite(fd, b"#!/bin/sh\n", 0)
    assert answer_of(sealed_crun.program()) == "one"


def test_another_crun_is_copied_anew(crun: Path) -> None:
    before = sealed_crun.program()
    assert sealed_crun.program() is before
    install(crun, "another")
    after = sealed_crun.program()
    assert [answer_of(before), answer_of(after)] == ["one", "another"]
    [fd] = before.fds.values()
    del before
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_host_that_runs_no_memory_files(crun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    program = sealed_crun.program()
    assert (program.path, program.fds) == (str(crun), {})
    assert answer_of(program) == "one"


def test_there_is_no_crun(crun: Path) -> None:
    crun.unlink()
    with pytest.raises(FileNotFoundError):
        sealed_crun.program()


def test_the_hosts_own(no_copy: None) -> None:
    program = sealed_crun.program()
    assert program.fds
    assert answer_of(program, "--version").startswith("crun version")
