"""Processes that are killed in the middle of a restore, at a step that is chosen."""

from __future__ import annotations

import mmap
import os
import signal
import struct
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from depths import rounds

STRIDE = 9 // rounds(1, 9, 9)  # steps from one kill to the next; a merge has every step
STEPS = {"fsync", "rename", "unlink", "pwrite", "write", "mkdir", "rmdir", "ftruncate"}
WHERE = ("svc/admin/backup/", "svc/admin/restore/", "restoring.py", "atomic_file.py", "audit_heads.py")


def run_until(step: int, work: Callable[[], int]) -> int | None:
    """The exit code of `work` in a process that is killed before its `step`-th call; None when it was.

    The calls of the processes that it forks count too: one of those may be killed in its place.
    """
    pid = os.fork()
    if pid:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return None if code == -signal.SIGKILL else code
    left = mmap.mmap(-1, 8)  # shared by all of them; one works at a time
    left.write(struct.pack("q", step))

    def count(frame: FrameType, event: str, function: Any) -> None:
        if (
            event == "c_call"
            and getattr(function, "__name__", "") in STEPS
            and any(part in frame.f_code.co_filename for part in WHERE)
        ):
            number = struct.unpack("q", left[:8])[0] - 1
            left[:8] = struct.pack("q", number)
            if number == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    code = 99
    try:
        sys.setprofile(count)
        code = work()
    finally:
        sys.setprofile(None)
        os._exit(code)
