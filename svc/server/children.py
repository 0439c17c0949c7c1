"""Starts the supervisor's children, each with only the privileges and descriptors that it needs.

A child is exec'd, never only forked: it gets its descriptors at fixed numbers, a new
environment and, by setpriv, an identity that it cannot change.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Sequence

from svc.host.accounts import Accounts
from svc.host.detach import detach
from svc.log import log

SETPRIV = "/usr/bin/setpriv"
FIRST_FD = 3  # descriptors of a child are numbered from here, in the order given
HIGH_FD = 100  # the supervisor's own descriptors are above, so that dup2 never closes one of them


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


def isolated(module: str, *arguments: str) -> list[str]:
    """The command line that runs `module`'s main() with the packages that this process has.

    No environment and no site (-I, -S), but the same path: of a virtual environment, of the private
    tree beside the launcher, or of a source tree.
    """
    path = [each for each in sys.path if os.path.isabs(each)]
    code = f"import sys; sys.path[:] = {path!r}; from {module} import main; sys.exit(main())"
    return [sys.executable, "-I", "-S", "-c", code, *arguments]


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


def spawn_detached(
    command: Sequence[str],
    descriptors: Sequence[int],
    env: dict[str, str],
    output: int,
    prepare: Callable[[], None],
) -> int:
    """As `spawn`, in a session of its own without a terminal, its output into a pipe.

    `prepare` runs in the forked child before the command; what it raises ends the child.
    """
    pid = os.fork()
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            detach(output)
            prepare()
            for place, descriptor in enumerate(descriptors):
                os.dup2(descriptor, FIRST_FD + place)
            os.execve(command[0], list(command), env)  # noqa: S606  no shell, a command built here
        except BaseException as error:  # noqa: BLE001  the process ends here; the log gets the reason
            log("app", f"the app could not be started: {type(error).__name__}: {error}", "critical")
        finally:
            os._exit(1)
    return pid


def as_app(accounts: Accounts, command: Sequence[str]) -> list[str]:
    """The command as the app parent: CAP_SETUID and CAP_SETGID, for its roles, and no more can be gained.

    Two calls of setpriv: a capability must be inheritable before the bounding set is emptied.
    """
    options = ["--no-new-privs", "--pdeathsig", "TERM"]
    if not accounts.separate:  # pam_systemd gives a session at a seat CAP_WAKE_ALARM
        return [SETPRIV, *options, "--inh-caps=-all", "--ambient-caps=-all", "--", *command]
    options += [
        f"--reuid={accounts.uid}",
        f"--regid={accounts.gid}",
        "--clear-groups",
        "--bounding-set=-all",
        "--ambient-caps=-all,+setuid,+setgid",
    ]
    return [SETPRIV, "--inh-caps=-all,+setuid,+setgid", "--", SETPRIV, *options, "--", *command]


def as_root(command: Sequence[str]) -> list[str]:
    """The command with the supervisor's privileges; it gets SIGTERM when the supervisor exits."""
    return [SETPRIV, "--pdeathsig", "TERM", "--", *command]
