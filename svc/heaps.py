"""What glibc's malloc keeps of freed memory: how many heaps a process has, and what goes back.

Without it each thread gets a heap of its own, up to eight for each processor, which keeps what
the largest request in it took. Does nothing with another C library.
"""

from __future__ import annotations

import ctypes

HEAPS = 2  # the interpreter's lock lets one thread compute at a time: heaps are seldom asked for at once
M_ARENA_MAX = -8  # malloc.h

_libc = ctypes.CDLL(None)


def limit() -> None:
    """Have this process, and its forks, share HEAPS heaps: before the first thread."""
    mallopt = getattr(_libc, "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, HEAPS)


def give_back() -> None:
    """Give the kernel every page that holds nothing but freed memory."""
    malloc_trim = getattr(_libc, "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
