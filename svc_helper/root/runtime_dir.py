"""/run/user/UID where no logind creates it, and for whom root created each.

What a former owner of a uid left in its directory (hooks of containers, sockets) would act for the
next one. So root records the name, and replaces a directory that is not the account's own.
"""

from __future__ import annotations

import contextlib
import os

from svc_helper import atomic_file
from svc_helper.root.drop import Account
from svc_helper.root.log import log

RUNTIME = "/run/user"  # root's: nobody else creates or exchanges a name in it
LOGIND = "/run/systemd/users"  # logind's own record of whose a directory is


def ensure(account: Account) -> None:
    """Create the directory of an account, also in place of a former owner's; raises OSError."""
    os.makedirs(RUNTIME, mode=0o755, exist_ok=True)
    path = account.runtime_dir
    if os.path.lexists(path) and not belongs_to(account):
        _set_aside(path, account)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    record = f"{account.name} {os.lstat(path).st_ino}\n"  # as the next directory has another inode
    atomic_file.replace(_record(account.uid), record.encode(), durable=False)
    os.chown(path, account.uid, account.gid)


def belongs_to(account: Account) -> bool:
    """Whether the existing directory was created for this very account, by us or by logind."""
    inode = os.lstat(account.runtime_dir).st_ino
    expected = {
        _record(account.uid): f"{account.name} {inode}",
        f"{LOGIND}/{account.uid}": f"NAME={account.name}",
    }
    for path, line in expected.items():
        with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8", errors="replace") as file:
            if line in file.read().splitlines():
                return True
    return False


def _record(uid: int) -> str:
    return f"{RUNTIME}/.svc-{uid}"


def _set_aside(path: str, account: Account) -> None:
    """Move a directory out of every user's reach; nothing in it is opened."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    os.fchown(directory, 0, 0)
    os.fchmod(directory, 0o700)
    os.close(directory)
    aside = f"{_record(account.uid)}-{os.urandom(4).hex()}"
    os.rename(path, aside)
    message = "a runtime directory that was not the account's is set aside"
    log(message, "warning", user=account.name, path=aside)
