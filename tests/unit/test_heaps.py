"""What malloc keeps: seen from outside, in a process of its own."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, os, re, threading
from svc import heaps

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
heaps.limit()
parts = []
for _ in range(1000):
    parts.append(libc.malloc(100_000))
    ctypes.memset(parts[-1], 1, 100_000)
full = resident()
for part in parts[:-1]:  # the last one keeps the heap from shrinking by itself
    libc.free(part)
kept = resident()
heaps.give_back()
print(full, kept, resident(), flush=True)  # the C library has a buffer of its own
gate = threading.Barrier(9)
def work():
    libc.malloc(1000)
    gate.wait()
    gate.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
gate.wait()
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
libc.fopen.restype = ctypes.c_void_p
libc.fclose.argtypes = [ctypes.c_void_p]
libc.fopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
file = libc.fopen(b"/dev/stdout", b"a")
libc.malloc_info(0, file)
libc.fclose(file)
gate.wait()
"""


@pytest.mark.skipif(not platform.libc_ver()[0], reason="the C library is not glibc")
@pytest.mark.allow_commands(Path(sys.executable).name)
def test_freed_pages_go_back_and_threads_share_heaps() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    full, kept, after = map(int, done.stdout.split("\n", 1)[0].split())
    assert kept > full - 10, "or there is nothing to see"
    assert after < full - 80
    assert done.stdout.count("<heap nr=") == 2
