"""Privilege drop: become a user for good, between fork and exec.

The bounding set stays that of a login: rootless Podman runs the set-uid newuidmap
for its id ranges, which fails with an empty set or no_new_privs.
"""

from __future__ import annotations

import os
import socket
from typing import NamedTuple, NoReturn

from svc_helper.keyring import leave_keyring
from svc_helper.root import capabilities, login, pam

LOG_MAX = 256 * 1024
# A long-lived process gives the memory of a large reply back to the kernel.
ALLOCATION = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}


class Account(NamedTuple):
    """A resolved Linux account."""

    name: str
    uid: int
    gid: int
    home: str

    @property
    def runtime_dir(self) -> str:
        """The user's XDG_RUNTIME_DIR."""
        return f"/run/user/{self.uid}"


def environment(account: Account) -> dict[str, str]:
    """The whole environment of a process of the user."""
    return {
        "HOME": account.home,
        "USER": account.name,
        "LOGNAME": account.name,
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        "LANG": "C.UTF-8",
        "XDG_RUNTIME_DIR": account.runtime_dir,
        **ALLOCATION,
    }


def become(account: Account, pam_service: str | None = None) -> None:
    """Take the account's identity; raises PermissionError or OSError unless every privilege is gone.

    With a PAM service: in a session of it, so that the process has the limits of a login.
    """
    os.chdir("/")
    login.reset()
    if pam_service is not None:
        pam.open_session(account.name, pam_service)
    leave_keyring()
    capabilities.keep(capabilities.IDENTITY)
    os.initgroups(account.name, account.gid)
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    if os.getresuid() != (account.uid,) * 3 or os.getresgid() != (account.gid,) * 3:
        raise PermissionError("the uid or gid did not change")
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        left = [line for line in status if line.startswith(("CapInh", "CapPrm", "CapEff", "CapAmb"))]
    if len(left) != 4 or any(int(line.split()[1], 16) for line in left):
        raise PermissionError("capabilities are left")
    try:
        os.setuid(0)
    except PermissionError:
        pass
    else:
        raise PermissionError("root can be regained")
    os.umask(0o077)
    os.chdir(account.home)


def execute(account: Account, command: list[str], pam_service: str, *, drop: bool = True) -> NoReturn:
    """Become the account, then exec the command; without `drop` (single-user mode) only exec it.

    The user may trace the process, so it does not keep root's standard error, which may be a
    terminal or root's log. Its output goes to the journal under the user's uid, else to a file
    in the runtime directory.
    """
    env = environment(account)
    if not drop:
        env["XDG_RUNTIME_DIR"] = os.environ.get("XDG_RUNTIME_DIR", account.runtime_dir)
    else:
        become(account, pam_service)
        log = journal("svc-agent") or _log_file(account)
        os.dup2(log, 1)
        os.dup2(log, 2)
    os.execve(command[0], command, env)  # noqa: S606  no shell, a command built by root


def journal(identifier: str) -> int | None:
    """A stream of this process's own to the journal; None without systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        try:
            stream.connect("/run/systemd/journal/stdout")
        except OSError:
            return None
        stream.sendall(f"{identifier}\n\n6\n0\n0\n0\n0\n".encode())  # unit, priority, four flags: none
        return stream.detach()


def _log_file(account: Account) -> int:
    directory = os.path.join(account.runtime_dir, "svc")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(os.path.join(directory, "agent.log"), flags, 0o600)
    if os.fstat(file).st_size > LOG_MAX:
        os.ftruncate(file, 0)
    return file
