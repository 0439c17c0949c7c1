"""The Linux account and its home directory, completed from wherever an interrupted run left them.

useradd(8) replaces passwd, shadow and group one after the other. The home directory is
created under a draft name and renamed, so that it appears with all of /etc/skel. Root opens
nothing in it.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from svc_helper.provision.programs import OUTPUT_MAX, in_one_line, require
from svc_helper.provision.verbs import Refusal, reason, refuse_system
from svc_helper.root.check import login_defs, resolve
from svc_helper.root.drop import Account, become, environment
from svc_helper.root.log import log
from svc_helper.wire.limits import NEW_USER_NAME

SHADOWED = "x"  # in passwd's second field
SKELETON = "/etc/skel"
NO_HOMES = ("/", "/nonexistent", "/dev/null")  # of accounts that nobody logs in to
NEW_HOMES = "/home"
KILL_S = 5  # for a killed child to end
STOPPED_S = 0.5  # until a look whether it was stopped
USER_STEP_S = 15  # a home directory may be on a file server that hangs


def get(name: str) -> Account:
    """The Linux account of a person; raises Refusal."""
    refuse_system(name)
    account = resolve(name)
    if account is None:
        raise Refusal("refused", f"{name} has no Linux account with a home directory; see /etc/passwd")
    return account


def ensure(name: str) -> None:
    """Create the account, with a locked password, or complete what an interrupted useradd left out."""
    refuse_system(name)
    if not exists(name):
        create(name)
    account = get(name)
    if has_line("passwd", name) and not has_line("shadow", name) and pwd.getpwnam(name)[1] == SHADOWED:
        require(["usermod", "--password", "!", "--", name], f"give {name} a line in /etc/shadow: pwconv")
    try:
        grp.getgrgid(account.gid)
    except KeyError:
        require(["groupadd", "--gid", str(account.gid), "--", name], f"create a group with gid {account.gid}")


def require_eligible(name: str) -> None:
    """Raise Refusal for a name or an account that cannot be enrolled; changes nothing."""
    refuse_system(name)
    if exists(name):
        require_own_home(get(name))
    else:
        require_new_name(name)


def exists(name: str) -> bool:
    """Whether there is an account of that name, complete or not."""
    return known_as(name) == name


def known_as(name: str) -> str:
    """The name that the host has for an account, which may be another spelling; empty without an account."""
    try:
        return pwd.getpwnam(name).pw_name
    except KeyError:
        return ""


def has_line(file: str, name: str) -> bool:
    """Whether the account is in this file of /etc, not only in a directory service."""
    try:
        with open(f"/etc/{file}", "rb") as lines:
            return any(line.startswith(name.encode() + b":") for line in lines)
    except FileNotFoundError:
        return False


def require_new_name(name: str) -> None:
    """Raise Refusal for a name that useradd would not take, or whose group is another's."""
    known = known_as(name)
    if known:  # a directory service that knows no case, or adds a domain
        raise Refusal("refused", f"the Linux account {name} is named {known}: svc admin create-user {known}")
    if not re.fullmatch(NEW_USER_NAME, name):
        raise Refusal(
            "refused",
            f"there is no Linux account {name}, and a new one cannot have that name:"
            " a-z, 0-9, _ and -, at most 32, beginning with a-z or _",
        )
    with suppress(KeyError):
        require_unused(grp.getgrnam(name))


def create(name: str) -> None:
    """Run useradd; home directory and subordinate ids are separate steps. Raises Refusal."""
    require_new_name(name)
    command = ["useradd", "--no-create-home", "--shell", "/bin/bash"]
    command += ["--key", "SUB_UID_COUNT=0", "--key", "SUB_GID_COUNT=0"]
    with suppress(KeyError):
        command += ["--gid", grp.getgrnam(name).gr_name]
    try:
        require([*command, "--", name])
    except Refusal:
        if not exists(name):  # the useradd of a killed helper may still have been running
            raise


def require_unused(group: grp.struct_group) -> None:
    """Raise Refusal unless the group of a new account's name has no members and is not a system group."""
    defs = login_defs()
    ordinary_gid = defs.get("GID_MIN", 1000) <= group.gr_gid <= defs.get("GID_MAX", 60000)
    users = [entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group.gr_gid]
    others = sorted({*group.gr_mem, *users} - {group.gr_name})
    if others or not ordinary_gid:
        why = f"it is the group of {others[0]}" if others else "it is a system group"
        raise Refusal(
            "conflict",
            f"the group {group.gr_name} (gid {group.gr_gid}) exists: {why};"
            f" run `groupdel {group.gr_name}`, or choose another name",
        )


def ensure_home(account: Account) -> None:
    """Create the home directory if there is none; raises Refusal, also for one that is not the account's."""
    require_own_home(account)
    if os.path.lexists(account.home):
        return
    parent, name = os.path.split(account.home)
    parent = os.path.realpath(parent)
    if not only_root_writes(parent):
        raise Refusal(
            "conflict",
            f"{account.home} is missing, and others than root can write {parent} or above; create it by hand",
        )
    draft = f"{parent}/.svc-{account.name}"
    if not os.path.lexists(draft):
        os.mkdir(draft, 0o700)
    if os.lstat(draft).st_uid not in (0, account.uid):
        raise Refusal("conflict", f"{draft} belongs to another account; remove it")
    os.chown(draft, account.uid, account.gid, follow_symlinks=False)
    why = failure_as_user(account._replace(home=draft), lambda: copy_skeleton(account, draft))
    if why:
        raise Refusal(
            "failed",
            f"{SKELETON} could not be copied for {account.name}; make it readable for all users: {why}",
        )
    os.rename(draft, f"{parent}/{name}")
    log("home directory created", "info", user=account.name, path=account.home)


def require_own_home(account: Account) -> None:
    """Raise Refusal for a path that stands for no home, is another account's too, or fits into no message."""
    try:
        account.home.encode()
    except UnicodeEncodeError:
        raise Refusal(
            "refused",
            f"the path of the home directory of {account.name} is not UTF-8;"
            f" sudo usermod --move-home --home {NEW_HOMES}/{account.name} {account.name}",
        ) from None
    home = os.path.normpath(f"/{account.home}").replace("//", "/")
    why = "which stands for none" if home in NO_HOMES else ""
    for entry in pwd.getpwall():
        if entry.pw_uid != account.uid and os.path.normpath(entry.pw_dir) == home:
            why = why or f"which {entry.pw_name} has too"
    if why:
        raise Refusal(
            "conflict",
            f"{account.name} has no home directory of its own but {account.home}, {why}; set another, here"
            f" usermod --home {NEW_HOMES}/{account.name} {account.name}, or in the directory service",
        )


def only_root_writes(directory: str) -> bool:
    """Whether only root can create names in a directory and in those above it."""
    status = os.stat(directory, follow_symlinks=False)
    own = status.st_uid == 0 and not status.st_mode & 0o022
    return own and (directory == "/" or only_root_writes(os.path.dirname(directory)))


def copy_skeleton(account: Account, target: str) -> None:
    """As the user, ending the process: copy /etc/skel over what is in the target."""
    if not os.path.isdir(SKELETON):
        return
    command = ["cp", "-RT", "--remove-destination", "--", SKELETON, target]
    os.execve("/bin/cp", command, environment(account))  # noqa: S606  no shell, no text of the user's


def outcome(pid: int, within_s: float) -> int:
    """The exit code of a child that its user may stop or trace; killed when stopped, or after `within_s`.

    Nobody waits for whoever traces it and keeps its end from its parent: for that, too, the code is -SIGKILL.
    """
    pidfd, until = os.pidfd_open(pid), time.monotonic() + within_s
    while not select.select([pidfd], [], [], STOPPED_S)[0]:
        if time.monotonic() > until or os.waitid(os.P_PIDFD, pidfd, os.WSTOPPED | os.WNOHANG):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            select.select([pidfd], [], [], KILL_S)
            break
    os.close(pidfd)
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else -signal.SIGKILL


def failure_as_user(account: Account, work: Callable[[], None]) -> str:
    """Run work as the account in a child without our descriptors; why it failed, empty if it succeeded.

    The user may trace the child, so the reason is untrusted, and the child does not hold root's log.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(USER_STEP_S)
            os.dup2(writing, 2)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.close(null)
            become(account)
            work()
            code = 0
        except Exception as error:  # noqa: BLE001  the process ends here; its parent gets the reason
            os.write(2, reason(error).encode("utf-8", "backslashreplace"))
        finally:
            os._exit(code)
    os.close(writing)
    code = outcome(pid, USER_STEP_S + 1)  # the lock is held meanwhile
    try:
        why = in_one_line(os.read(reading, OUTPUT_MAX * 4))
    except BlockingIOError:  # of a process that the child has left
        why = ""
    os.close(reading)
    if code == 0:
        return ""
    late = "it took too long" if code in (-signal.SIGALRM, -signal.SIGKILL) else f"exit status {code}"
    return why or late
