"""What is left on the host of an account that is deleted: the Linux account, or the files of a former one."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from typing import NamedTuple

from svc.admin.findings import lines_of, linux_account, read_enrolled
from svc.settings import Settings
from svc_helper.wire.limits import USER_NAME

USERADD = "/etc/default/useradd"
LINGER = "/var/lib/systemd/linger"
SYSTEMD = "/run/systemd/system"


class Linux(NamedTuple):
    """The Linux side of an account."""

    exists: bool  # the very Linux account that was enrolled: this name with this uid
    uid: int | None  # of the enrolment; without one, of the database, which may have none
    is_enrolled: bool
    stays: list[str]
    next_commands: list[str]


def find_linux(settings: Settings, name: str, former: str, uid: int | None) -> Linux:
    """What there is; `former` and `uid` are the database's word; root's own list overrules the uid."""
    enrolled = next((entry for entry in read_enrolled(settings.state_dir) if entry.name == name), None)
    uid = enrolled.uid if enrolled else uid
    account = linux_account(name)
    if account is not None and account.pw_uid == uid:
        return Linux(True, uid, enrolled is not None, *_of_account(account))
    former = former if re.fullmatch(USER_NAME, former) else name
    stays, commands = _of_former(settings, former, uid) if uid and not _in_use(uid) else ([], [])
    if account is not None:
        stays.append(f"the Linux account {name} (uid {account.pw_uid}), which is another one")
    return Linux(False, uid, enrolled is not None, stays, commands)


def _of_account(account: pwd.struct_passwd) -> tuple[list[str], list[str]]:
    name = account.pw_name
    stays = [f"the Linux account {name} with {account.pw_dir}, also the files of its workspaces"]
    userdel = f"sudo userdel --remove {name}"
    if os.path.isdir(SYSTEMD) and os.path.exists(f"{LINGER}/{name}"):
        stays.append("its lingering: the user's own services run without a login")
        userdel = f"sudo loginctl disable-linger {name} && {userdel}"
    return stays, [f"to remove the Linux account and its files too: {userdel}"]


def _in_use(uid: int) -> bool:
    """Whether an account has this uid now: whatever has it is that account's."""
    try:
        return bool(pwd.getpwuid(uid))
    except (KeyError, OverflowError):
        return False


def _of_former(settings: Settings, name: str, uid: int) -> tuple[list[str], list[str]]:
    """The files that are still in the storage of a former Linux account, and its processes."""
    stays = [f"the files of the former Linux account {name}: {path}" for path in _paths(settings, name, uid)]
    commands = []
    processes = sum(1 for pid in os.listdir("/proc") if pid.isdecimal() and _uid_of(f"/proc/{pid}") == uid)
    if processes:
        stays.append(f"{processes} running process(es) of uid {uid}")
        commands.append(f"to end the processes of uid {uid}: sudo pkill -KILL --uid {uid}")
    stays = stays or [f"no files of the former Linux account {name} (uid {uid}) where they were"]
    return stays, [*commands, "to find all files without an owner: sudo find / -xdev -nouser"]


def _paths(settings: Settings, name: str, uid: int) -> Iterator[str]:
    """Where the account's files were: a directory that is there counts if its owner is still the uid."""
    home = os.path.join(_homes(), name)
    roots = [
        path.removesuffix(":ro").replace("%h", home).replace("%u", name)
        for path in settings.file_roots.values()
    ]
    outside = [path for path in sorted(roots) if not path.startswith(f"{home}/")]
    store = [settings.store_dir.replace("%u", name)] if settings.store_dir else []
    for path in dict.fromkeys([home, *outside, *store, f"/run/user/{uid}"]):
        if _uid_of(path) == uid:
            yield path
    if os.path.exists(f"{LINGER}/{name}"):
        yield f"{LINGER}/{name}"
    for kind in ("subuid", "subgid"):
        for line in lines_of(f"/etc/{kind}"):
            if line.startswith(f"{name}:"):
                yield f"the line {line} in /etc/{kind}"


def _homes() -> str:
    """The directory of home directories, as useradd(8) has it."""
    found = [match[1] for line in lines_of(USERADD) if (match := re.fullmatch(r"HOME=(/\S*)", line.strip()))]
    return found[-1] if found else "/home"


def _uid_of(path: str) -> int | None:
    try:
        return os.lstat(path).st_uid
    except OSError:
        return None
