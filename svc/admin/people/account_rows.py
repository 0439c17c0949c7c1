"""Changes of account rows by `svc admin create-user`; each runs in a process of the database's owner.

Every change is one transaction with its audit row: a process killed in it leaves
nothing. The results come from an unprivileged process, so root checks them.
"""

from __future__ import annotations

from typing import Any

from svc.actions.table import ADMIN_CREATE_USER, ADMIN_RETIRE_USER
from svc.admin.actor import note
from svc.admin.findings import linux_account
from svc.db.connect import open_database, write
from svc.db.secret_check import read_own
from svc.domain import configuration
from svc.domain.accounts import keys, passwords, removal, retirement, users
from svc.domain.accounts.users import Account
from svc.errors import Conflict, NameTaken
from svc.settings import Settings

BEGUN = "its setup began and did not end"
DELETE = "sudo svc admin list-users"  # which prints the command


def inspect(path: str, secret_file: str, name: str) -> dict[str, Any]:
    """The account's row in brief; checks the signing secret too, so that its absence is reported early."""
    open_database(path)
    read_own(secret_file)
    user = users.find(name)
    if user is not None and removal.is_begun(user):
        raise Conflict(
            f"the deletion of the account {name} began and did not end; complete it first", hint=DELETE
        )
    if user is None or _is_gone(user):
        return {"whole": False, "uid": None, "superuser": False, "display_name": ""}
    return {
        "whole": user.provisioning == users.READY,
        "uid": user.uid,
        "superuser": bool(user.superuser),
        "display_name": user.display_name,
    }


def _is_gone(user: Account) -> bool:
    """Whether the row belongs to a former Linux account of the same name, or is a retired account's."""
    return users.is_retired(user) or (user.uid not in (None, 0) and linux_uid(user.name) != user.uid)


def linux_uid(name: str) -> int | None:
    """The uid of a Linux account; None when there is none."""
    account = linux_account(name)
    return account.pw_uid if account else None


def begin(path: str, name: str, display_name: str, superuser: bool) -> list[str]:
    """Create or update the row as incomplete; returns the names of the accounts retired by that.

    An account of that name whose Linux account is gone is retired here, before a
    new Linux account gets its name and perhaps its uid.
    """
    open_database(path)
    retired = []
    with write():
        user = users.find(name)
        if user is not None and _is_gone(user):
            retired.append(_retire(user))
            user = None
        if user is not None and user.provisioning == users.READY:
            raise NameTaken(
                f"another process has just created the account {name}", hint="sudo svc admin list-users"
            )
        user = user or users.create(name)
        users.update(
            user,
            superuser=superuser,
            display_name=display_name or user.display_name,
            provisioning=users.INCOMPLETE,
            provisioning_note=BEGUN,
        )
        note(ADMIN_CREATE_USER, name, "begun", superuser=superuser)
    return retired


def _retire(user: Account) -> str:
    name = retirement.retire(user)
    note(ADMIN_RETIRE_USER, name, "ok", was=user.name, uid=user.uid)
    return name


def abandon(path: str, name: str, reason: str, *, retryable: bool, refused: bool) -> None:
    """Note in the row why it is incomplete; remove the row of a refused account that never had a uid."""
    open_database(path)
    with write():
        user = users.get(name)
        note(ADMIN_CREATE_USER, name, "refused" if refused else "failed")
        if refused and user.uid is None:
            users.remove(user)
            return
        users.update(
            user, provisioning=users.INCOMPLETE if retryable else users.CLEANUP, provisioning_note=reason
        )


def finish(path: str, settings: Settings, name: str, uid: int, password: str) -> list[str]:
    """Make the account ready with its uid and password; returns the names of the accounts retired by that."""
    open_database(path)
    configuration.configure_only(secret=read_own(settings.secret_file))
    password_hash = passwords.hash_password(password, keys.secret())
    try:
        with write():
            retired = _retire_former(uid, name)
            user = users.get(name)
            users.update(user, uid=uid, provisioning=users.READY, provisioning_note="")
            users.set_password(user, password_hash, len(password))
            note(ADMIN_CREATE_USER, name, "ok", uid=uid)
    except Conflict as error:
        abandon(path, name, error.message, retryable=False, refused=False)
        raise
    return retired


def _retire_former(uid: int, name: str) -> list[str]:
    """Retire the former account that has this uid; raises Conflict when that account is still in use."""
    other = users.find_by_uid(uid)
    if other is None or other.name == name:
        return []
    if not _is_gone(other):
        raise Conflict(
            f"uid {uid} belongs to the service account {other.name}; give {name} a uid of its own",
            hint="sudo svc admin list-users",
        )
    return [_retire(other)]
