"""What the app can reach of the host: namespaces of its own, made by root before the privileges are given up.

Processes: the app's alone, which end with the app parent. Mounts: no homes, no buses (D-Bus, logind,
users' managers), a private /tmp, and everything read-only but the database's directory. No network:
the listeners are inherited. No IPC objects of others. Each is done as far as the kernel allows; what
it refuses is logged, and `svc admin doctor` reports it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import struct
import sys
from collections.abc import Callable, Iterator, Sequence

from svc.log import log
from svc.settings import Settings

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x8000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_SLAVE = 2, 4, 8, 0x1000, 0x4000, 0x80000
MOUNT_SETATTR, AT_RECURSIVE, ATTR_RDONLY = 442, 0x8000, 1  # one number on every architecture
AT_FDCWD = -100
HIDDEN = ("/home", "/run/user", "/run/dbus", "/run/systemd")  # and root's home
PRIVATE = {"/tmp": "256m", "/var/tmp": "256m", "/dev/shm": "16m"}  # noqa: S108  SQLite's and gunicorn's
KEPT_EMPTY = ("/run/systemd/system",)  # says that systemd runs, as sd_booted(3) asks

libc = ctypes.CDLL(None, use_errno=True)


def enter(settings: Settings) -> None:
    """In a forked child of the supervisor, still as root: leave the host's namespaces."""
    _forgo_preference()
    _attempt("network namespace", lambda: _unshare(CLONE_NEWNET))
    _attempt("IPC namespace", lambda: _unshare(CLONE_NEWIPC))
    if _attempt("mount namespace", lambda: _unshare(CLONE_NEWNS)):
        _attempt("mounts", lambda: _mount_all(settings))


def _forgo_preference(path: str = "/proc/self/oom_score_adj") -> None:
    """What clients send fills the app's memory: it is no more worth than their own programs.

    OOMScoreAdjust= of the unit is for the supervisor and the helper. Written by root, it is also the least
    that the app can set itself.
    """
    with contextlib.suppress(OSError):
        with open(path, encoding="ascii") as file:
            score = int(file.read())
        with open(path, "w", encoding="ascii") as file:
            file.write(str(max(score, 0)))


def _attempt(what: str, act: Callable[[], None]) -> bool:
    try:
        act()
    except OSError as error:
        log("app", f"the {what} of the app cannot be its own: {error}", "warning")
        return False
    return True


def _unshare(flags: int) -> None:
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def process_namespace() -> Iterator[bool]:
    """What the block forks is the first process of a namespace, and all in it end with that process.

    For the supervisor, whose later children are in the host's again; False where the kernel refuses it.
    """
    host = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    is_own = _attempt("process namespace", lambda: _unshare(CLONE_NEWPID))
    try:
        yield is_own
    finally:
        if is_own and libc.setns(host, CLONE_NEWPID) != 0:
            raise OSError(ctypes.get_errno(), "the host's process namespace cannot be entered again")
        os.close(host)


def needed(settings: Settings) -> Iterator[tuple[str, bool]]:
    """The directories that the app needs, and whether it writes there."""
    yield os.path.dirname(os.path.abspath(settings.db)), True
    files = [settings.secret_file, settings.tls_cert, settings.tls_key, settings.license_path]
    if settings.gpu_provider.startswith("/"):
        files.append(settings.gpu_provider)
    directories = [settings.state_dir, *(os.path.dirname(file) for file in files if file)]
    program = os.path.dirname(os.path.dirname(sys.executable))
    for path in (*directories, program, sys.prefix, *sys.path):
        yield os.path.abspath(path), False


def _mount_all(settings: Settings) -> None:
    _mount("none", "/", "", MS_REC | MS_SLAVE)  # what the host unmounts is unmounted here too
    hidden = _existing([*HIDDEN, pwd.getpwuid(0).pw_dir, *PRIVATE])
    kept = _pinned(needed(settings), hidden)
    kept_empty = _existing(KEPT_EMPTY)
    for path in hidden:
        size = PRIVATE.get(path, "1m")
        mode = "1777" if path in PRIVATE else "0755"
        _mount("none", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, f"size={size},mode={mode}")
    for path in kept_empty:
        os.makedirs(path, exist_ok=True)
    writable = [path for path in hidden if path in PRIVATE]
    for path, pin, is_written in kept:
        os.makedirs(path, mode=0o755, exist_ok=True)
        _mount(f"/proc/self/fd/{pin}", path, "", MS_BIND | MS_REC)
        os.close(pin)
        if is_written:
            writable.append(path)
    _set_read_only("/", True)
    for path in writable:
        _set_read_only(path, False)


def _existing(paths: Sequence[str]) -> list[str]:
    """The directories among the paths, each once; not / and no link."""
    return [
        path
        for path in dict.fromkeys(paths)
        if path != "/" and os.path.isdir(path) and not os.path.islink(path)
    ]


def _pinned(paths: Iterator[tuple[str, bool]], hidden: Sequence[str]) -> list[tuple[str, int, bool]]:
    """The needed directories that would be hidden or read-only, with a descriptor of each.

    A directory inside another one comes with that; a whole hidden directory is never kept.
    """
    kept: list[tuple[str, int, bool]] = []
    for path, is_written in sorted(set(paths)):
        real = os.path.realpath(path)
        lost = is_written or any(_is_below(real, top) and real != top for top in hidden)
        inside = any(_is_below(real, other) and (writes or not is_written) for other, _, writes in kept)
        if lost and not inside and real != "/" and os.path.isdir(real):
            with contextlib.suppress(OSError):
                kept.append((real, os.open(real, os.O_PATH | os.O_CLOEXEC), is_written))
    return kept


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    arguments = (source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags))
    if libc.mount(*arguments, options.encode() or None) != 0:
        raise OSError(ctypes.get_errno(), f"{os.strerror(ctypes.get_errno())}: {target}")


def _set_read_only(path: str, read_only: bool) -> None:
    """For the mount at the path and, to forbid writing, all below it."""
    change = struct.pack("=QQQQ", ATTR_RDONLY * read_only, ATTR_RDONLY * (not read_only), 0, 0)
    flags = AT_RECURSIVE if read_only else 0
    if libc.syscall(MOUNT_SETATTR, AT_FDCWD, path.encode(), flags, change, len(change)) != 0:
        raise OSError(ctypes.get_errno(), f"{os.strerror(ctypes.get_errno())}: {path}")
