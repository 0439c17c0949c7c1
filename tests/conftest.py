"""What every test can rely on: no real command by accident, nothing left behind.

Fixtures are named for facts. Those of one suite live in that suite's own conftest.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import depths
import pytest

HERE = Path(__file__).parent
LEAVING_S = 10  # what is only late is gone by then, and a leak is not
CLOSING_S = 30  # the same for descriptors of a suite with a server or a browser
# Suites whose server or browser is this process's child, which a test may restart.
WITH_CHILDREN = ("applications", "e2e", "hostile", "pages", "stories")
STARTING = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.spawn")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Only what belongs to the depth of this run."""
    depths.leave_out(config, items)


class RealCommand(BaseException):
    """A test of the unit suite started a program; a BaseException, so that nothing swallows it."""


class Gate:
    """Which programs may be started now; everything while `allowed` is None."""

    allowed: frozenset[str] | None = None
    installed = False

    @classmethod
    def audit(cls, event: str, arguments: tuple[object, ...]) -> None:
        """The interpreter's own word about each start of a program."""
        if cls.allowed is None or event not in STARTING:
            return
        program = os.path.basename(os.fsdecode(arguments[0])) if event != "os.system" else "a shell"
        if program not in cls.allowed:
            raise RealCommand(
                f"{program} was started; mark the test allow_commands({program!r}) if it must be"
            )


def in_suite(request: pytest.FixtureRequest, *suites: str) -> bool:
    """Does the test belong to one of these suites?"""
    return request.path.relative_to(HERE).parts[0] in suites


@pytest.fixture(autouse=True)
def no_real_commands(request: pytest.FixtureRequest) -> Iterator[None]:
    """In the unit suite a started program is a failure, unless allow_commands(...) names it."""
    if not in_suite(request, "unit"):
        yield
        return
    if not Gate.installed:
        sys.addaudithook(Gate.audit)
        Gate.installed = True
    marks = request.node.iter_markers("allow_commands")
    Gate.allowed = frozenset(name for mark in marks for name in mark.args)
    yield
    Gate.allowed = None


def children() -> set[int]:
    """The pids of this process's children."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
            found.update(int(pid) for pid in (task / "children").read_text().split())
    return found


def descriptors() -> dict[int, str]:
    """This process's open descriptors and what they lead to."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the directory's own descriptor
            continue
    return found


@pytest.fixture
def descriptors_left() -> Callable[[], dict[int, str]]:
    """A function that says which descriptors have been opened since and not closed."""
    files = descriptors()

    def opened() -> dict[int, str]:
        return {number: target for number, target in descriptors().items() if files.get(number) != target}

    def left() -> dict[int, str]:
        if opened():
            gc.collect()  # sockets in reference cycles are closed, not leaked
        return opened()

    return left


@pytest.fixture(autouse=True)
def no_leaks(
    request: pytest.FixtureRequest, descriptors_left: Callable[[], dict[int, str]]
) -> Iterator[None]:
    """A test that leaves a child process or a descriptor behind fails."""
    has_children = in_suite(request, *WITH_CHILDREN)
    counted = set if has_children else children
    pids = counted()
    yield
    ends_at = time.monotonic() + (CLOSING_S if has_children else LEAVING_S)
    while time.monotonic() < ends_at:
        left_pids, left_files = counted() - pids, descriptors_left()
        if not left_pids and not left_files:
            return
        time.sleep(0.05)
    pytest.fail(f"left behind: processes {sorted(left_pids)}, descriptors {left_files}", pytrace=False)


@pytest.fixture(scope="session")
def needs_root() -> None:
    """Skip where the test's own rights do not suffice."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes users and namespaces")


@pytest.fixture
def public_tmp_path(tmp_path: Path) -> Path:
    """tmp_path, reachable for every user: pytest's own directories above it are 0700."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o055 != 0o055:
            folder.chmod(0o755)
    return tmp_path
