"""Whose the database is, and working as that account: root never opens it as root.

The database and its directory belong to the unprivileged account of the app,
so what is in them is that account's word. `svc admin` run by root gives root up
for good before it reads them, in the process itself or in a forked one.
Standard library only.
"""

from __future__ import annotations

import json
import os
import pwd
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from svc.errors import DatabaseRefused, HostRefused, SvcError, by_code

SERVICE_USER = "svc"
RESULT_MAX = 1024 * 1024  # of what a forked worker may answer
RUN_S = 600.0  # for what reads a whole database; a migration has its own


class Owner(NamedTuple):
    """An account that files belong to."""

    uid: int
    gid: int

    @property
    def name(self) -> str:
        """The account's name, or its number when it has none."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return f"uid {self.uid}"


def service_owner() -> Owner | None:
    """The system user of the service, when this host has one."""
    try:
        entry = pwd.getpwnam(SERVICE_USER)
    except KeyError:
        return None
    return Owner(entry.pw_uid, entry.pw_gid)


def owner_of(path: str) -> Owner:
    """Whose the database is: the file's owner, else that of the directory it would be made in.

    As root it refuses a file that lies in somebody else's directory: what SQLite
    opens beside it would be that somebody's, and be believed by the file's owner.
    """
    for place in (path, os.path.dirname(path)):
        try:
            status = os.lstat(place)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise DatabaseRefused(
                f"{path} cannot be reached: {error.strerror}", hint="sudo svc admin doctor"
            ) from None
        found = Owner(status.st_uid, status.st_gid)
        if os.geteuid() == 0 and place == path:
            _refuse_foreign_directory(path, found)
        return found
    if os.geteuid() != 0:
        return Owner(os.geteuid(), os.getegid())
    return service_owner() or Owner(0, 0)


def _refuse_foreign_directory(path: str, owner: Owner) -> None:
    directory = os.path.dirname(path) or "."
    beside = os.lstat(directory)
    if beside.st_uid not in (0, owner.uid):
        other = Owner(beside.st_uid, beside.st_gid).name
        raise DatabaseRefused(
            f"{path} belongs to {owner.name}, the directory that it is in to {other}",
            hint=f"sudo chown {other}: {path}",
        )


def become(owner: Owner) -> None:
    """Work as that account from here on, for good; "it never leaves root-owned -wal/-shm behind".

    What will be needed must be imported before: the interpreter's own files may
    be root's alone. The working directory, too, may be closed from here on.
    """
    if os.geteuid() == owner.uid:
        return
    if os.geteuid() != 0:
        raise DatabaseRefused(f"that is {owner.name}'s to do", hint="sudo svc admin ...")
    os.setgroups([])
    os.setresgid(owner.gid, owner.gid, owner.gid)
    os.setresuid(owner.uid, owner.uid, owner.uid)
    os.umask(0o077)
    try:
        os.setuid(0)
    except PermissionError:
        return
    raise HostRefused("root could not be given up; stopping here")


def run_as(owner: Owner, work: Callable[[], Any], within_s: float = RUN_S) -> Any:
    """What `work` returns (JSON values), done by a forked process that has become the owner.

    An SvcError raised there is raised here again. The answer comes from the
    owner's own process: check its shape before root acts on it. Its owner may
    also stop it: after `within_s` it is ended, and an SvcError raised.
    """
    if os.geteuid() == owner.uid:
        return work()
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _answer(owner, work, writing)
    os.close(writing)
    untrusted = _heard(pid, reading, within_s)
    try:
        answer = json.loads(untrusted)
        if "error" not in answer:
            return answer["value"]
        code, message, hint = (str(answer["error"][key]) for key in ("code", "message", "hint"))
    except (ValueError, KeyError, TypeError):
        raise SvcError(f"the work as {owner.name} ended without an answer") from None
    raise by_code(code)(message, hint=hint)


def _heard(pid: int, reading: int, within_s: float) -> bytes:
    """What the process says until its end, which comes within the time, one way or the other."""
    deadline = time.monotonic() + within_s
    heard = b""
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    with os.fdopen(reading, "rb", buffering=0) as file:
        while len(heard) < RESULT_MAX and poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            part = file.read(RESULT_MAX - len(heard))
            if not part:
                break
            heard += part
    pidfd = os.pidfd_open(pid)
    try:
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        if not ended.poll(max(1.0, deadline - time.monotonic()) * 1000):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)
        os.waitpid(pid, 0)
    return heard


def _answer(owner: Owner, work: Callable[[], Any], writing: int) -> None:
    """The forked process: never returns, whatever happens."""
    code = 1
    try:
        try:
            become(owner)
            answer = {"value": work()}
        except SvcError as error:
            answer = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
        with os.fdopen(writing, "wb") as file:
            file.write(json.dumps(answer).encode())
        code = 0
    except Exception:  # noqa: BLE001 - a process edge: nothing of the parent's may run on in the copy
        import traceback

        # What the database says may be in it, and root's terminal obeys more than letters.
        sys.stderr.write(_visible(traceback.format_exc()))
    finally:
        os._exit(code)


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)
