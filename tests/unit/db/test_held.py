"""Numbers that are held for as long as their process lives and works on what they stand for."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from svc.db.held import Numbers
from svc.errors import Maintenance


@pytest.fixture
def numbers(tmp_path: Path) -> Numbers:
    found = Numbers()
    found.database = str(tmp_path / "svc.db")
    (tmp_path / "svc.db").touch(0o600)
    return found


@contextmanager
def other_process(work: Callable[[], int]) -> Iterator[tuple[int, int]]:
    """(pid, what `work` returned) of a process that lives until it is killed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, str(work()).encode())
            signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as file:
        number = int(os.read(file.fileno(), 32))
    try:
        yield pid, number
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_number_is_held_for_the_length_of_the_block(numbers: Numbers) -> None:
    with numbers.holding() as first:
        with numbers.holding() as second:
            assert first != second
            assert numbers.is_held(first) and numbers.is_held(second)
        assert numbers.is_held(first) and not numbers.is_held(second)
    assert not numbers.is_held(first)
    assert not numbers.is_held(None)


def test_an_error_ends_it(numbers: Numbers) -> None:
    with pytest.raises(ZeroDivisionError), numbers.holding() as number:
        _ = 1 / 0
    assert not numbers.is_held(number)


def test_the_kernel_releases_what_a_killed_process_held(numbers: Numbers) -> None:
    """Asking from here neither takes the number away nor releases one of this process's own."""
    forever = ExitStack()
    with other_process(lambda: forever.enter_context(numbers.holding())) as (pid, number):
        with numbers.holding() as mine:
            assert numbers.is_held(number)
            assert not numbers.is_held(number + 1)
            with other_process(lambda: int(second(numbers).is_held(mine))) as (_, seen):
                assert seen
        assert numbers.is_held(number)
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert not numbers.is_held(number)


def second(numbers: Numbers) -> Numbers:
    """The same file, as another process has it."""
    other = Numbers()
    other.database = numbers.database
    return other


def test_threads_hold_numbers_of_their_own(numbers: Numbers) -> None:
    gate, wrong = threading.Barrier(16), []

    def work() -> None:
        gate.wait()
        for _ in range(50):
            with numbers.holding() as number:
                if not numbers.is_held(number):
                    wrong.append(number)
            if numbers.is_held(number):
                wrong.append(number)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("mode", [0o600, 0o660])
def test_the_file_is_for_whoever_may_write_the_database(numbers: Numbers, tmp_path: Path, mode: int) -> None:
    """Whichever account of the app creates it, and whatever the umask of its process."""
    os.chmod(numbers.database, mode)
    with numbers.holding():
        assert stat.S_IMODE(os.stat(tmp_path / "svc.db.held").st_mode) == mode


def test_the_file_is_never_a_link(numbers: Numbers, tmp_path: Path) -> None:
    os.symlink(tmp_path / "elsewhere", tmp_path / "svc.db.held")
    with pytest.raises(Maintenance), numbers.holding():
        pytest.fail("a link was followed")
    assert not (tmp_path / "elsewhere").exists()
