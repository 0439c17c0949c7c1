"""SQLite on a file that only root can reach: an invented path stands for an inherited descriptor.

Root creates the snapshot's file; the database's owner fills and checks it, but may not enter the
directory. SQLite opens by path and follows links first, so that /proc/self/fd is of no use. Its
interface for replaced system calls (sqlite3_vfs.xSetSystemCall, in force for the process) makes
`open` of one path return a copy of the descriptor.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from svc.errors import HostRefused

LIBRARY = "libsqlite3.so.0"  # the one that Python's sqlite3 is linked with
VFS_VERSION = 3  # the first with xSetSystemCall
PR_SET_PDEATHSIG = 1

Open = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, use_errno=True)
SetCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
GetCall = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
POINTERS = (
    "next_vfs", "name", "app_data", "open", "delete", "access", "full_pathname", "dl_open", "dl_error",
    "dl_sym", "dl_close", "randomness", "sleep", "current_time", "get_last_error", "current_time_int64",
)  # fmt: skip


class Vfs(ctypes.Structure):
    """sqlite3_vfs of sqlite3.h."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("os_file_bytes", ctypes.c_int),
        ("pathname_max", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in POINTERS),
        ("set_system_call", SetCall),
        ("get_system_call", GetCall),
    ]


@contextmanager
def as_path(descriptor: int) -> Iterator[str]:
    """A path that SQLite in this process opens as the descriptor, for the length of the block.

    Open it with nolock or immutable. Raises HostRefused where SQLite has no such interface.
    """
    path = f"/svc-snapshot-{os.getpid()}-{descriptor}"
    vfs = _vfs()
    real = Open(vfs.contents.get_system_call(vfs, b"open"))

    def open_(name: bytes, flags: int, mode: int) -> int:
        if name != path.encode():
            return int(real(name, flags, mode))
        try:
            return os.dup(descriptor)
        except OSError as error:
            ctypes.set_errno(error.errno or errno.EIO)
            return -1

    replaced = Open(open_)  # must live as long as SQLite may call it
    vfs.contents.set_system_call(vfs, b"open", ctypes.cast(replaced, ctypes.c_void_p))
    try:
        yield path
    finally:
        vfs.contents.set_system_call(vfs, b"open", None)


def _vfs() -> ctypes._Pointer[Vfs]:
    try:
        find = ctypes.CDLL(LIBRARY).sqlite3_vfs_find
    except (OSError, AttributeError):
        raise HostRefused(f"{LIBRARY} is missing", hint="sudo apt-get install libsqlite3-0") from None
    find.restype = ctypes.POINTER(Vfs)
    vfs: ctypes._Pointer[Vfs] = find(None)
    if not vfs or vfs.contents.version < VFS_VERSION:
        raise HostRefused(f"{LIBRARY} is too old", hint="sudo apt-get install libsqlite3-0")
    return vfs


def end_with(parent: int) -> None:
    """Have this process killed when the parent ends; after the change of the uid, which clears that."""
    if os.getpid() == parent:
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
