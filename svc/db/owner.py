"""The owner of the database, and running code as that account: root never opens the database as root.

The database and its directory belong to the unprivileged account of the app, so
root does not trust their content. `svc admin` run by root drops its privileges
permanently before it reads them, in its own process or in a forked one.
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
RESULT_MAX = 1024 * 1024  # of the result of a forked process
RUN_S = 600.0  # enough to read a whole database; a migration has its own timeout


class Owner(NamedTuple):
    """An account that files belong to."""

    uid: int
    gid: int

    @property
    def name(self) -> str:
        """The account's name, or its uid when it has none."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return f"uid {self.uid}"


def service_owner() -> Owner | None:
    """The system user of the service, if this host has it."""
    try:
        entry = pwd.getpwnam(SERVICE_USER)
    except KeyError:
        return None
    return Owner(entry.pw_uid, entry.pw_gid)


def owner_of(path: str) -> Owner:
    """The owner of the database: of the file, else of the directory it would be created in.

    As root, refuses a file in a directory of a third account, which could forge the
    files that SQLite opens beside the database.
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
            f"{path} belongs to {owner.name}, but its directory to {other}",
            hint=f"sudo chown {other}: {path}",
        )


def become(owner: Owner) -> None:
    """Switch to that account permanently; "it never leaves root-owned -wal/-shm behind".

    All modules must be imported before: the account may lack permission to read the
    interpreter's files, or the working directory.
    """
    if os.geteuid() == owner.uid:
        return
    if os.geteuid() != 0:
        raise DatabaseRefused(f"this command must run as {owner.name} or root", hint="sudo svc admin ...")
    os.setgroups([])
    os.setresgid(owner.gid, owner.gid, owner.gid)
    os.setresuid(owner.uid, owner.uid, owner.uid)
    os.umask(0o077)
    try:
        os.setuid(0)
    except PermissionError:
        return
    raise HostRefused("root privileges could not be dropped")


def run_as(owner: Owner, work: Callable[[], Any], within_s: float = RUN_S) -> Any:
    """The result of `work` (JSON values), run by a forked process as the owner.

    An SvcError raised there is raised again here. The result is untrusted: the owner
    controls the process, so check its shape before root uses it. The owner may also
    stop the process: after `within_s` it is killed, and SvcError is raised.
    """
    if os.geteuid() == owner.uid:
        return work()
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _run_and_exit(owner, work, writing)
    os.close(writing)
    untrusted = _read_result(pid, reading, within_s)
    try:
        answer = json.loads(untrusted)
        if "error" not in answer:
            return answer["value"]
        code, message, hint = (str(answer["error"][key]) for key in ("code", "message", "hint"))
    except (ValueError, KeyError, TypeError):
        raise SvcError(f"the process of {owner.name} ended without a result") from None
    raise by_code(code)(message, hint=hint)


def _read_result(pid: int, reading: int, within_s: float) -> bytes:
    """Read the output of the process until its end; kill it after the timeout."""
    deadline = time.monotonic() + within_s
    result = b""
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    with os.fdopen(reading, "rb", buffering=0) as file:
        while len(result) < RESULT_MAX and poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            part = file.read(RESULT_MAX - len(result))
            if not part:
                break
            result += part
    pidfd = os.pidfd_open(pid)
    try:
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        if not ended.poll(max(1.0, deadline - time.monotonic()) * 1000):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)
        os.waitpid(pid, 0)
    return result


def _run_and_exit(owner: Owner, work: Callable[[], Any], writing: int) -> None:
    """The forked process: sends the result and exits, whatever happens."""
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
    except Exception:  # noqa: BLE001 - the edge of a process: code of the parent must not run in it
        import traceback

        # The text may contain data of the database; control characters must not reach root's terminal.
        sys.stderr.write(_visible(traceback.format_exc()))
    finally:
        os._exit(code)


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)
