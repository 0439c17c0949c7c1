"""Doctor check of the clock, by which tokens, certificates, sessions and the licence end."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator

import svc
from svc.admin.findings import Finding, Host, fail, ok, warn

CODE = "clock"
TIME_ERROR = 5  # of adjtimex(2): the clock is not synchronised
TIMEX_BYTES = 512  # more than the structure has; all zero reads only
DAY_S = 86400


def clock(host: Host) -> Iterator[Finding]:
    """Whether the clock can be right, and whether anything keeps it so."""
    remedy = "sudo timedatectl set-ntp true" if host.systemd else "sudo apt-get install chrony"
    installed = os.stat(os.path.dirname(svc.__file__)).st_mtime
    now = time.time()
    if now < installed - DAY_S:
        dates = [time.strftime("%Y-%m-%d", time.gmtime(moment)) for moment in (now, installed)]
        yield fail(CODE, f"it is {dates[0]} by the clock, and svc was installed on {dates[1]}", remedy)
    elif kernel_state() == TIME_ERROR:
        yield warn(CODE, "the clock is not synchronised: expiry times may be wrong", remedy)
    else:
        yield ok(CODE, "synchronised")


def kernel_state() -> int:
    """What the kernel says of its clock; -1 where it may not be asked."""
    return int(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(TIMEX_BYTES)))
