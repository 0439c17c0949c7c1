"""The steps of `svc admin create-user` on the account's row, each in a process of the database's owner."""

from __future__ import annotations

import pwd

from svc.admin.operator import note
from svc.db.connect import open_database
from svc.db.models import User
from svc.db.secret import read_secret
from svc.domain import passwords, users
from svc.errors import Conflict, NameTaken

ACTION = "admin.create_user"
BEGUN = "setting up the Linux account began and did not end; run the same command again"


def refuse_finished(path: str, secret_file: str, name: str) -> None:
    """NameTaken for an account that is whole; also finds out early whether a password could be kept."""
    open_database(path)
    read_secret(secret_file)
    user = users.find(name)
    if user is None or user.provisioning != users.READY:
        return
    if user.uid == 0 or _linux_uid(name) == user.uid:
        raise NameTaken(f"there is an account {name}", hint=f"svc admin set-password {name}")


def _linux_uid(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def begin(path: str, name: str, display_name: str, superuser: bool) -> None:
    """The row, incomplete until the host has done its part."""
    open_database(path)
    user = users.find(name) or users.create(name)
    users.update(
        user,
        superuser=superuser,
        display_name=display_name or user.display_name,
        provisioning=users.INCOMPLETE,
        provisioning_note=BEGUN,
    )
    note(ACTION, name, "begun")


def leave(path: str, name: str, why: str, *, for_now: bool, refused: bool) -> None:
    """Say in the row what is left to do; one that never had a Linux account goes when the host refused it."""
    open_database(path)
    user = users.get(name)
    note(ACTION, name, "refused" if refused else "failed")
    if refused and user.uid is None:
        users.remove(user)
        return
    users.update(
        user,
        provisioning=users.INCOMPLETE if for_now else users.CLEANUP,
        provisioning_note=f"{why}; mend that and run the same command again",
    )


def finish(path: str, secret_file: str, name: str, uid: int, password: str) -> None:
    """Make the account ready: its uid, its password."""
    open_database(path)
    user = users.get(name)
    other = User.get_or_none((User.uid == uid) & (User.id != user.id))
    if other is not None:
        why = f"uid {uid} is that of the service account {other.name}"
        leave(path, name, why, for_now=False, refused=False)
        raise Conflict(why, hint="svc admin list-users")
    password_hash = passwords.hash_password(password, read_secret(secret_file))
    users.update(
        user,
        uid=uid,
        password_hash=password_hash,
        password_length=len(password),
        provisioning=users.READY,
        provisioning_note="",
    )
    note(ACTION, name, "ok")
