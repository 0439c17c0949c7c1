"""What `svc admin create-user` does to account rows, each in a process of the database's owner.

Every function is one transaction with its audit row: killed before its end it
never was. What root believes of the answers is for root to check.
"""

from __future__ import annotations

import pwd
from typing import Any

from svc.admin.actor import note
from svc.db.connect import open_database, write
from svc.db.secret import read_secret
from svc.domain import configuration
from svc.domain.accounts import keys, passwords, retirement, users
from svc.domain.accounts.users import Account
from svc.errors import Conflict, NameTaken
from svc.settings import Settings

ACTION, RETIRED = "admin.create_user", "admin.retire_user"
BEGUN = "its setup began and did not end"


def look(path: str, secret_file: str, name: str) -> dict[str, Any]:
    """What there is of the account (of a former one: nothing); tells early if no password could be kept."""
    open_database(path)
    read_secret(secret_file)
    user = users.find(name)
    if user is None or _is_gone(user):
        return {"whole": False, "uid": None, "superuser": False, "display_name": ""}
    return {
        "whole": user.provisioning == users.READY,
        "uid": user.uid,
        "superuser": bool(user.superuser),
        "display_name": user.display_name,
    }


def _is_gone(user: Account) -> bool:
    """Whether the account was another Linux account's than the one that has its name now."""
    return user.uid not in (None, 0) and linux_uid(user.name) != user.uid


def linux_uid(name: str) -> int | None:
    """The uid that a name has on this host."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def begin(path: str, name: str, display_name: str, superuser: bool) -> list[str]:
    """The row, incomplete until the host has done its part; returns whom that retired.

    An account of that name whose Linux account is no more is retired here, before
    a new Linux account gets its name and perhaps its uid.
    """
    open_database(path)
    retired = []
    with write():
        user = users.find(name)
        if user is not None and _is_gone(user):
            retired.append(_retire(user))
            user = None
        if user is not None and user.provisioning == users.READY:
            raise NameTaken(f"the account {name} was made just now", hint="svc admin list-users")
        user = user or users.create(name)
        users.update(
            user,
            superuser=superuser,
            display_name=display_name or user.display_name,
            provisioning=users.INCOMPLETE,
            provisioning_note=BEGUN,
        )
        note(ACTION, name, "begun", superuser=superuser)
    return retired


def _retire(user: Account) -> str:
    was = {"was": user.name, "uid": user.uid}
    name = retirement.retire(user)
    note(RETIRED, name, "ok", **was)
    return name


def leave(path: str, name: str, why: str, *, for_now: bool, refused: bool) -> None:
    """Say in the row why it is not whole; one that the host refused and that never had an account goes."""
    open_database(path)
    with write():
        user = users.get(name)
        note(ACTION, name, "refused" if refused else "failed")
        if refused and user.uid is None:
            users.remove(user)
            return
        users.update(user, provisioning=users.INCOMPLETE if for_now else users.CLEANUP, provisioning_note=why)


def finish(path: str, settings: Settings, name: str, uid: int, password: str) -> list[str]:
    """Make the account ready: its uid, its password, nothing of a former one; returns whom that retired."""
    open_database(path)
    configuration.configure(settings, read_secret(settings.secret_file))
    password_hash = passwords.hash_password(password, keys.secret())
    try:
        with write():
            retired = _free(uid, name)
            user = users.get(name)
            users.update(user, uid=uid, provisioning=users.READY, provisioning_note="")
            users.set_password(user, password_hash, len(password))
            note(ACTION, name, "ok", uid=uid)
    except Conflict as error:
        leave(path, name, error.message, for_now=False, refused=False)
        raise
    return retired


def _free(uid: int, name: str) -> list[str]:
    """Retire whoever had the uid before; raises Conflict for somebody who has it still."""
    other = users.find_by_uid(uid)
    if other is None or other.name == name:
        return []
    if not _is_gone(other):
        raise Conflict(
            f"uid {uid} is that of the service account {other.name}; give {name} a uid of its own",
            hint="svc admin list-users",
        )
    return [_retire(other)]
