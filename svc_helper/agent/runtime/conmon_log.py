"""Keeps what conmon would discard of a container's output.

conmon appends rows to `output.log`. When that is full it creates `output.log.tmp` and
renames it to `output.log`: the old file is gone. So the agent gives each file a second,
numbered name (log_files.py), the next one before conmon creates it: conmon opens what
lies there. A full file and its successor are kept so without any process that waits for
it. If the successor fills up as well before the agent is asked anything about the
running workspace, only the newest file remains, and its number shows the gap.

Without these names conmon does what it always does: nothing here can end a container.
"""

from __future__ import annotations

import os
from contextlib import suppress

from svc_helper.agent import paths
from svc_helper.agent.calls import Failure
from svc_helper.agent.home import LOG_SIZE_MAX, Home
from svc_helper.agent.runtime import log_files
from svc_helper.agent.user_files import open_regular

NAME = "output"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_KEPT_BEFORE = 1  # full files before the current one
_FULL = LOG_SIZE_MAX // 8  # at a start, since conmon does not count what an earlier run has written


def path(home: Home, workspace_id: str) -> str:
    """The file that conmon writes."""
    return f"{paths.output(home.home, workspace_id)}/{NAME}.log"


def prepare(home: Home, workspace_id: str) -> None:
    """Create the directory and the files for a container that is about to start."""
    directory = paths.output(home.home, workspace_id)
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
    except OSError as error:
        raise Failure.of_os_error(
            error, "the directory of the container's output cannot be created"
        ) from None
    current = f"{directory}/{NAME}.log"
    with suppress(OSError):
        if not os.path.lexists(current):
            _create(directory, _newest(directory) + 1, current)
    arrange(directory)
    with suppress(OSError):
        if os.stat(current).st_size > _FULL:
            os.rename(f"{current}.tmp", current)  # as conmon does
            arrange(directory)


def arrange(directory: str) -> None:
    """Give conmon's file a number and prepare its successor; remove what is not kept.

    May be called at any time, by several at once. A full disk changes only what is kept.
    """
    with suppress(OSError):
        _arrange(directory)


def _arrange(directory: str) -> None:
    current = f"{directory}/{NAME}.log"
    try:
        status = os.lstat(current)
    except FileNotFoundError:
        return  # it never started
    number = _number_of(directory, status)
    if number is None:  # conmon has discarded at least one file before this one
        number = _newest(directory) + 2
        _link(current, log_files.path(directory, NAME, number))
    following = log_files.path(directory, NAME, number + 1)
    if not os.path.lexists(following):
        # One that is there already may be in use: conmon ends if it cannot rename what it has opened.
        _link(f"{current}.tmp", following)
        _create(directory, number + 1, f"{current}.tmp")
    for other in log_files.numbers(directory, NAME):
        if other < number - _KEPT_BEFORE:
            with suppress(FileNotFoundError):
                os.unlink(log_files.path(directory, NAME, other))


def _newest(directory: str) -> int:
    return max(log_files.numbers(directory, NAME), default=-1)


def _number_of(directory: str, status: os.stat_result) -> int | None:
    for number in reversed(log_files.numbers(directory, NAME)):
        with suppress(FileNotFoundError):
            if os.path.samestat(os.lstat(log_files.path(directory, NAME, number)), status):
                return number
    return None


def _create(directory: str, number: int, name: str) -> None:
    """Create a numbered file, and give it this name as well."""
    numbered = log_files.path(directory, NAME, number)
    with suppress(FileExistsError):
        os.close(open_regular(numbered, _CREATE))
        _link(numbered, name)


def _link(file: str, name: str) -> None:
    with suppress(FileExistsError, FileNotFoundError):
        os.link(file, name, follow_symlinks=False)
