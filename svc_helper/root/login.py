"""The surroundings of a login: scheduling, OOM score and limits for a process that becomes a user's.

A service's own settings (`OOMScoreAdjust=`, `Nice=`, `LimitNOFILE=`, or those of the shell it was
started from) are inherited by everything that its children start, unless root takes them back.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource

PID_1 = 1  # its limits and processors are those that a login begins with
LIMITS = range(16)  # RLIM_NLIMITS
IOPRIO_SET = {"x86_64": 251}  # the number of ioprio_set(2)
IOPRIO_SET_ELSEWHERE = 30
IOPRIO_WHO_PROCESS, IOPRIO_CLASS_NONE = 1, 0


def reset() -> None:
    """Give this process what a login has, before limits.conf; as root, raises OSError."""
    _reset_oom_score()
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    number = IOPRIO_SET.get(os.uname().machine, IOPRIO_SET_ELSEWHERE)
    if ctypes.CDLL(None, use_errno=True).syscall(number, IOPRIO_WHO_PROCESS, 0, IOPRIO_CLASS_NONE) == -1:
        raise OSError(ctypes.get_errno(), "ioprio_set")
    with contextlib.suppress(OSError):  # this service has a cpuset without any of them
        os.sched_setaffinity(0, os.sched_getaffinity(PID_1))
    for limit in LIMITS:
        with contextlib.suppress(ValueError):  # a container's root may not raise it
            resource.setrlimit(limit, resource.prlimit(PID_1, limit))


def _reset_oom_score() -> None:
    """Take back a preference over other processes; the write is also the lowest that the user can set."""
    with open("/proc/self/oom_score_adj", "r+", encoding="ascii") as file:
        score = max(int(file.read()), 0)
        file.seek(0)
        file.write(str(score))
