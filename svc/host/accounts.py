"""The accounts of the app: one for the parent, which owns the database, and one for each of its roles.

A role is a process that reads what strangers send or users' agents answer. With a uid of its own it
cannot signal, trace or follow another role, and what is left of it can be killed by uid. The roles of
ROLES have the helper's pairs and the app's group, which opens the database; `apps` has neither.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from typing import NamedTuple

from svc.errors import HostRefused

ROLES = ("unix", "tls", "worker")
APPS = "apps"  # the process between browsers and programs of workspaces
PARENT_CAPABILITIES = 1 << 6 | 1 << 7  # of the app parent, which becomes them: CAP_SETGID, CAP_SETUID
APP = "svc"
HOME = "/var/lib/svc/data"


class Identity(NamedTuple):
    """A uid and the one group that goes with it."""

    uid: int
    gid: int


class Accounts(NamedTuple):
    """The app's uid, the group that its roles have alone, the uid of each role, and who `apps` is."""

    uid: int
    gid: int
    roles: dict[str, int]
    apps: Identity

    @property
    def uids(self) -> dict[str, int]:
        """The uid of each role, `apps` among them."""
        return {**self.roles, APPS: self.apps.uid}

    @property
    def separate(self) -> bool:
        """Whether the roles have accounts of their own: not in single-user mode."""
        return self.uid not in self.roles.values()


def role_account(role: str) -> str:
    """The name of a role's account."""
    return f"{APP}-{role}"


def creation(name: str) -> str:
    """The command that creates a missing account, run by root."""
    group = "--user-group" if name in (APP, role_account(APPS)) else f"--gid {APP}"
    return f"useradd --system {group} --home-dir {HOME} --no-create-home --shell /usr/sbin/nologin {name}"


def find_accounts() -> Accounts:
    """The app's accounts; in single-user mode all are the caller's. Raises HostRefused."""
    if os.geteuid() != 0:
        me = pwd.getpwuid(os.geteuid())
        return Accounts(me.pw_uid, me.pw_gid, dict.fromkeys(ROLES, me.pw_uid), Identity(me.pw_uid, me.pw_gid))
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
    accounts = Accounts(app.pw_uid, app.pw_gid, roles, _apps(app.pw_gid))
    if len({app.pw_uid, *accounts.uids.values()}) != 2 + len(ROLES):
        raise HostRefused("two accounts of the app have the same uid", hint=f"getent passwd | grep ^{APP}")
    return accounts


def _apps(group: int) -> Identity:
    """The account of `apps`, in a group of its own: the app's would open the database."""
    name = role_account(APPS)
    found = _system_account(name)
    others = [each for each in os.getgrouplist(name, found.pw_gid) if each != found.pw_gid]
    if found.pw_gid in (0, group) or others:
        hint = f"sudo groupadd --system {name}; sudo usermod --gid {name} --groups '' {name}"
        raise HostRefused(f"the user {name} has no group of its own, or is in others", hint=hint)
    return Identity(found.pw_uid, found.pw_gid)


def own_uids() -> set[int]:
    """The uids of those of the app's accounts that this host has."""
    found = set()
    for name in (APP, *map(role_account, (*ROLES, APPS))):
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
