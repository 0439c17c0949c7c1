"""Limit the heaps of glibc's malloc in a process, and return freed memory to the kernel.

By default each thread gets a heap of its own, up to eight per processor, and each heap keeps
what its largest request took. Does nothing with another C library.
"""

from __future__ import annotations

import ctypes

HEAPS = 2  # one thread computes at a time (interpreter lock), so heaps are seldom contended
M_ARENA_MAX = -8  # malloc.h

_libc = ctypes.CDLL(None)


def limit() -> None:
    """Limit this process and its forks to HEAPS heaps; to be called before the first thread starts."""
    mallopt = getattr(_libc, "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, HEAPS)


def give_back() -> None:
    """Return to the kernel each page that holds only freed memory."""
    malloc_trim = getattr(_libc, "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
