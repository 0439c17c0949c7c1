"""The accounts of the app: one for the parent, which owns the database, and one for each of its roles.

A role is a process that reads what strangers send or users' agents answer. With a uid of its own it
cannot signal, trace or follow another role, and what is left of it can be killed by uid.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from typing import NamedTuple

from svc.errors import HostRefused

ROLES = ("unix", "tls", "worker")
APP = "svc"
HOME = "/var/lib/svc/data"


class Accounts(NamedTuple):
    """The app's uid, the group that all of its accounts have alone, and the uid of each role."""

    uid: int
    gid: int
    roles: dict[str, int]

    @property
    def separate(self) -> bool:
        """Whether the roles have accounts of their own: not in single-user mode."""
        return self.uid not in self.roles.values()


def role_account(role: str) -> str:
    """The name of a role's account."""
    return f"{APP}-{role}"


def creation(name: str) -> str:
    """The command that creates a missing account, run by root."""
    group = "--user-group" if name == APP else f"--gid {APP}"
    return f"useradd --system {group} --home-dir {HOME} --no-create-home --shell /usr/sbin/nologin {name}"


def find_accounts() -> Accounts:
    """The app's accounts; in single-user mode all are the caller's. Raises HostRefused."""
    if os.geteuid() != 0:
        me = pwd.getpwuid(os.geteuid())
        return Accounts(me.pw_uid, me.pw_gid, dict.fromkeys(ROLES, me.pw_uid))
    app = _system_account(APP)
    roles = {}
    for role in ROLES:
        found = _system_account(role_account(role))
        if found.pw_gid != app.pw_gid:
            name = found.pw_name
            raise HostRefused(
                f"the group of the user {name} is not {APP}", hint=f"sudo usermod --gid {APP} {name}"
            )
        roles[role] = found.pw_uid
    if len({app.pw_uid, *roles.values()}) != 1 + len(ROLES):
        raise HostRefused("two accounts of the app have the same uid", hint=f"getent passwd | grep ^{APP}")
    return Accounts(app.pw_uid, app.pw_gid, roles)


def own_uids() -> set[int]:
    """The uids of those of the app's accounts that this host has."""
    found = set()
    for name in (APP, *map(role_account, ROLES)):
        with contextlib.suppress(KeyError):
            found.add(pwd.getpwnam(name).pw_uid)
    return found


def _system_account(name: str) -> pwd.struct_passwd:
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise HostRefused(f"there is no system user {name}", hint=f"sudo {creation(name)}") from None
    if found.pw_uid == 0:
        raise HostRefused(f"the user {name} has uid 0, but the app must not run as root")
    return found
