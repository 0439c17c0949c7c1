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
import re
import select
import shlex
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from svc.errors import DatabaseRefused, HostRefused, SvcError, by_code
from svc.host.accounts import own_uids
from svc.host.detach import detach, escaped

SERVICE_USER = "svc"
RESULT_MAX = 16 * 1024 * 1024  # of the result of a forked process
OUTPUT_LINE_MAX = 64 * 1024
PIPE_BYTES = 64 * 1024  # as many as a pipe holds
# Hints that the owner's process may give: commands that change no account, policy or foreign file, and prose
COMMAND = (
    r"(sudo )?(systemctl (start|stop|restart|status) svc"
    r"|svc (env --all|admin (db-path|doctor|license (request|show)|list-users|migrate|restore( PATH)?"
    r"|update (check|status)"
    r"|(quota|registry) (list|set --help))"
    r"( --repair| --db [\w./@+-]+)*))"
)
HARMLESS = re.compile(
    rf"({COMMAND}|(install|reinstall|restore|stop|free|choose|use)( [\w,]+)+(: {COMMAND})?"
    rf"|use --global( [\w,]+)+|run it again when that has ended)?"
    rf"(, then: {COMMAND})?( +\([\w, ]+\))?"
)
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


def tls_owner() -> Owner | None:
    """The account that serves TLS, with the group of the service, if this host has it."""
    service = service_owner()
    try:
        return service and Owner(pwd.getpwnam(f"{SERVICE_USER}-tls").pw_uid, service.gid)
    except KeyError:
        return None


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
                f"{path} cannot be reached: {error.strerror}", hint=repair_command(path)
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
            hint=repair_command(path),
        )


def repair_command(database: str = "") -> str:
    """The command that repairs the service's own files: root pastes it, so it names no file to change.

    A printed `chown PATH` would let whoever can write the directory put a link there first.
    """
    return admin_command("doctor --repair", database)


def admin_command(command: str, database: str = "") -> str:
    """A command of `svc admin` for this database, with sudo but for an ordinary user's own."""
    sudo = "sudo " if os.geteuid() in {0, *own_uids()} else ""
    return f"{sudo}svc admin {command}" + (f" --db {shlex.quote(database)}" if database else "")


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

    An SvcError raised there is raised again here, without a hint that is not harmless. The result
    is untrusted: the owner controls the process, so check its shape before root uses it. The owner may also
    stop the process: after `within_s` it is killed, and SvcError is raised. It has a session of its
    own, without a terminal: root asks beforehand for whatever must be typed.
    """
    if os.geteuid() == owner.uid:
        return work()
    sys.stdout.flush()
    reading, writing = os.pipe2(os.O_CLOEXEC)
    output, output_end = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.close(output)
        _run_and_exit(owner, work, writing, output_end)
    os.close(writing)
    os.close(output_end)
    untrusted = _read_result(pid, reading, output, within_s)
    try:
        answer = json.loads(untrusted)
        if "error" not in answer:
            return answer["value"]
        code, message, hint = (str(answer["error"][key]) for key in ("code", "message", "hint"))
        fields = [
            {key: str(field.get(key, "")) for key in ("field", "code", "message")}
            for field in answer["error"]["fields"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SvcError(f"the process of {owner.name} ended without a result") from None
    raise by_code(code)(message, hint=hint if _is_harmless(hint) else "", fields=fields)


def _is_harmless(untrusted_hint: str) -> bool:
    """Whether root may paste the hint of a process that the owner controls."""
    return HARMLESS.fullmatch(untrusted_hint) is not None


def _read_result(pid: int, reading: int, output: int, within_s: float) -> bytes:
    """The result of the process, which is killed after the timeout; its output is passed on, escaped."""
    deadline = time.monotonic() + within_s
    received = {reading: bytearray(), output: bytearray()}
    poll = select.poll()
    for descriptor in received:
        poll.register(descriptor, select.POLLIN)
    open_ends = set(received)
    while open_ends and len(received[reading]) < RESULT_MAX:
        ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            break
        for descriptor, _ in ready:
            part = os.read(descriptor, PIPE_BYTES)
            received[descriptor] += part
            if not part:
                poll.unregister(descriptor)
                open_ends.discard(descriptor)
        _pass_on(received[output], is_last=output not in open_ends)
    for descriptor in received:
        os.close(descriptor)
    _end(pid, deadline)
    return bytes(received[reading])


def _pass_on(text: bytearray, *, is_last: bool) -> None:
    """Take the whole lines out and write them on standard error, with control characters escaped."""
    end = len(text) if is_last or len(text) > OUTPUT_LINE_MAX else text.rfind(b"\n") + 1
    sys.stderr.write(escaped(text[:end].decode("utf-8", "backslashreplace")))
    sys.stderr.flush()
    del text[:end]


def _end(pid: int, deadline: float) -> None:
    """Wait for the end of the process until the deadline, but at least a second; then kill it."""
    pidfd = os.pidfd_open(pid)
    try:
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        if not ended.poll(max(1.0, deadline - time.monotonic()) * 1000):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)
        os.waitpid(pid, 0)


def _run_and_exit(owner: Owner, work: Callable[[], Any], writing: int, output: int) -> None:
    """The forked process: sends the result and exits, whatever happens."""
    code = 1
    try:
        try:
            detach(output)
            become(owner)
            answer = {"value": work()}
        except SvcError as error:
            parts = {"message": error.message, "hint": error.hint, "fields": error.fields}
            answer = {"error": {"code": error.code, **parts}}
        with os.fdopen(writing, "wb") as file:
            file.write(json.dumps(answer).encode())
        code = 0
    except Exception:  # noqa: BLE001 - the edge of a process: code of the parent must not run in it
        import traceback

        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
    finally:
        os._exit(code)
