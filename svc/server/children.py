"""Starts the supervisor's children, each with only the privileges and descriptors that it needs.

A child is exec'd, never only forked: it gets its descriptors at fixed numbers, a new
environment and, by setpriv, an identity that it cannot change.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import signal
from collections.abc import Sequence
from typing import NamedTuple

from svc.errors import HostRefused

SETPRIV = "/usr/bin/setpriv"
FIRST_FD = 3  # descriptors of a child are numbered from here, in the order given
HIGH_FD = 100  # the supervisor's own descriptors are above, so that dup2 never closes one of them


class Account(NamedTuple):
    """The unprivileged account of the app."""

    name: str
    uid: int
    gid: int


def app_account(name: str = "svc") -> Account:
    """The system user that the app runs as; in single-user mode the caller's account."""
    if os.geteuid() != 0:
        me = pwd.getpwuid(os.geteuid())
        return Account(me.pw_name, me.pw_uid, me.pw_gid)
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise HostRefused(
            f"there is no system user {name}", hint=f"sudo useradd --system --shell /usr/sbin/nologin {name}"
        ) from None
    if found.pw_uid == 0:
        raise HostRefused(f"the user {name} has uid 0, but the app must not run as root")
    return Account(found.pw_name, found.pw_uid, found.pw_gid)


def move_high(descriptor: int) -> int:
    """Move a descriptor above HIGH_FD, close-on-exec; closes the low one."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    os.close(descriptor)
    return moved


def set_close_on_exec() -> None:
    """Mark every inherited descriptor as close-on-exec, so that no child gets it."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the listing's own descriptor is closed by now
            if int(name) > 2:
                os.set_inheritable(int(name), False)


def spawn(command: Sequence[str], descriptors: Sequence[int], env: dict[str, str]) -> int:
    """Start a command with exactly these descriptors at 3, 4, ...; returns its pid."""
    actions: list[tuple[int, int, int]] = [
        (os.POSIX_SPAWN_DUP2, descriptor, FIRST_FD + place) for place, descriptor in enumerate(descriptors)
    ]
    return os.posix_spawn(
        command[0],
        list(command),
        env,
        file_actions=actions,
        setsigmask=(),
        setsigdef=(signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP, signal.SIGPIPE),
    )


def as_app(account: Account, command: Sequence[str]) -> list[str]:
    """The command under the app's identity: no capabilities, and none can be gained."""
    options = ["--no-new-privs", "--pdeathsig", "TERM"]
    if os.geteuid() == 0:
        options += [
            f"--reuid={account.uid}",
            f"--regid={account.gid}",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
            "--ambient-caps=-all",
        ]
    return [SETPRIV, *options, "--", *command]


def as_root(command: Sequence[str]) -> list[str]:
    """The command with the supervisor's privileges; it gets SIGTERM when the supervisor exits."""
    return [SETPRIV, "--pdeathsig", "TERM", "--", *command]
