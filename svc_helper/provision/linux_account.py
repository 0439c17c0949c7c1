"""The Linux account and its home directory, made whole from wherever a killed attempt left them.

useradd(8) writes passwd, shadow and group one after the other, each at once. The
home directory is made beside its place and renamed, so that it is there with all
of /etc/skel or not at all. Root opens nothing in it.
"""

from __future__ import annotations

import grp
import os
import pwd
import select
import signal
from collections.abc import Callable

from svc_helper.provision.programs import require
from svc_helper.root.check import login_defs, resolve
from svc_helper.root.drop import Account, become, environment
from svc_helper.root.log import log
from svc_helper.root.verbs import Refusal, refuse_system

SHADOWED = "x"  # in passwd's second field
SKELETON = "/etc/skel"
USER_STEP_S = 15  # a home directory may be on a server that does not answer


def get(name: str) -> Account:
    """The Linux account of a person; raises Refusal."""
    refuse_system(name)
    account = resolve(name)
    if account is None:
        raise Refusal("refused", f"{name} has no Linux account with a home directory; see /etc/passwd")
    return account


def ensure(name: str) -> None:
    """See to the account, with a locked password if it is new, and to what a killed useradd left out."""
    refuse_system(name)
    if not exists(name):
        create(name)
    account = get(name)
    if has_line("passwd", name) and not has_line("shadow", name) and pwd.getpwnam(name)[1] == SHADOWED:
        require(["usermod", "--password", "!", "--", name], f"give {name} a line in /etc/shadow: pwconv")
    try:
        grp.getgrgid(account.gid)
    except KeyError:
        require(["groupadd", "--gid", str(account.gid), "--", name], f"make a group of gid {account.gid}")


def exists(name: str) -> bool:
    """Whether there is an account of that name, whole or not."""
    try:
        return pwd.getpwnam(name).pw_name == name
    except KeyError:
        return False


def has_line(file: str, name: str) -> bool:
    """Whether the account is in a file of /etc, and not only in some directory server."""
    try:
        with open(f"/etc/{file}", "rb") as lines:
            return any(line.startswith(name.encode() + b":") for line in lines)
    except FileNotFoundError:
        return False


def create(name: str) -> None:
    """Run useradd; home directory and subordinate ids are steps of their own."""
    command = ["useradd", "--no-create-home", "--shell", "/bin/bash"]
    command += ["--key", "SUB_UID_COUNT=0", "--key", "SUB_GID_COUNT=0"]
    try:
        require_left_over(grp.getgrnam(name))
        command += ["--gid", name]
    except KeyError:
        pass
    try:
        require([*command, "--", name], "the helper's log has its words")
    except Refusal:
        if not exists(name):  # the useradd of a helper that was killed may have been about it still
            raise


def require_left_over(group: grp.struct_group) -> None:
    """Raise Refusal unless the group of a new account's name is empty and nobody's."""
    defs = login_defs()
    usual = defs.get("GID_MIN", 1000) <= group.gr_gid <= defs.get("GID_MAX", 60000)
    users = [entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group.gr_gid]
    strangers = sorted({*group.gr_mem, *users} - {group.gr_name})
    if strangers or not usual:
        why = f"it is the group of {strangers[0]}" if strangers else "it is a system group"
        raise Refusal(
            "conflict",
            f"the group {group.gr_name} (gid {group.gr_gid}) is in the way: {why};"
            f" `groupdel {group.gr_name}`, or take another name",
        )


def ensure_home(account: Account) -> None:
    """Make the home directory if there is none."""
    if os.path.lexists(account.home):
        return
    parent, name = os.path.split(account.home)
    parent = os.path.realpath(parent)
    if not roots_alone(parent):
        raise Refusal(
            "conflict",
            f"{account.home} is missing, and others than root may write {parent} or above; make it by hand",
        )
    aside = f"{parent}/.svc-{account.name}"
    if not os.path.lexists(aside):
        os.mkdir(aside, 0o700)
    if os.lstat(aside).st_uid not in (0, account.uid):
        raise Refusal("conflict", f"{aside} is left over from another account; remove it")
    os.chown(aside, account.uid, account.gid, follow_symlinks=False)
    if not as_user(account._replace(home=aside), lambda: copy_skeleton(account, aside)):
        raise Refusal("failed", f"{SKELETON} could not be copied for {account.name}; is it readable for all?")
    os.rename(aside, f"{parent}/{name}")
    log("home directory made", "info", user=account.name, path=account.home)


def roots_alone(directory: str) -> bool:
    """Whether nobody but root can put anything in a directory or in its place."""
    status = os.stat(directory, follow_symlinks=False)
    mine = status.st_uid == 0 and not status.st_mode & 0o022
    return mine and (directory == "/" or roots_alone(os.path.dirname(directory)))


def copy_skeleton(account: Account, target: str) -> None:
    """As the user, and to the end of the process: a copy of /etc/skel; what is there already is replaced."""
    if not os.path.isdir(SKELETON):
        return
    os.dup2(1, 2)  # root's log is not left to a process that its user may trace
    command = ["cp", "-RT", "--remove-destination", "--", SKELETON, target]
    os.execve("/bin/cp", command, environment(account))  # noqa: S606  no shell, no text of the user's


def as_user(account: Account, work: Callable[[], None]) -> bool:
    """Whether the work succeeds in a child that is the account and holds nothing of root's but the log."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(USER_STEP_S)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.close(null)
            become(account)
            work()
            code = 0
        except Exception as error:  # noqa: BLE001  the process ends here; its reason goes to the log
            why = f"{type(error).__name__}: {error}"
            log("a step of the account's own failed", "error", user=account.name, why=why)
        finally:
            os._exit(code)
    pidfd = os.pidfd_open(pid)
    if not select.select([pidfd], [], [], USER_STEP_S + 1)[0]:
        os.kill(pid, signal.SIGKILL)  # stopped by its user, while everybody's administration waits
    os.close(pidfd)
    return os.waitpid(pid, 0)[1] == 0
