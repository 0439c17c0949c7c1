"""The missing steps of an account's setup, from files of the host that everybody may read.

For `svc admin list-users`, which runs as the database's owner; `account.ensure` of
the root helper takes the steps.
"""

from __future__ import annotations

import os
import pwd
import re
from typing import Any, NamedTuple

from svc.admin.checks.subids import SUBIDS
from svc.admin.command import for_database
from svc.admin.findings import Host, linux_account, read_ranges
from svc.domain.accounts import removal, users
from svc.domain.accounts.users import Account
from svc.limits import LOGIN_FAILURES_IN_A_ROW
from svc_helper.wire.limits import USER_NAME


class Remainder(NamedTuple):
    """The missing steps, the exact next command, and a note if the row has none; all empty when complete."""

    steps: list[str]
    command: str
    note: str = ""


DONE = Remainder([], "")


def record(user: Account, host: Host) -> dict[str, Any]:
    """The account's record with its missing steps."""
    left = inspect(user, host)
    return users.record(user) | {
        "note": left.note or user.provisioning_note,
        "password": password_state(user),
        "left_to_do": left.steps,
        "next_command": left.command,
    }


def password_state(user: Account) -> str:
    """The state of the password login: none, closed, locked or set."""
    if user.password_hash is None:
        return "none"
    if user.password_closed:
        return "closed"
    return "locked" if user.failed_logins >= LOGIN_FAILURES_IN_A_ROW else "set"


def inspect(user: Account, host: Host) -> Remainder:
    """The missing steps of an incomplete account; of a ready one only whether its Linux account is the same.

    What else a ready account needs on the host is checked by `svc admin doctor`.
    """
    delete = for_database(f"delete-user {user.name}", host.settings)
    if users.is_retired(user):
        return Remainder(["files that the Linux account may have left"], delete)
    command = for_database(f"create-user {user.name}", host.settings)
    if not re.fullmatch(USER_NAME, user.name):  # untrusted: it must not get into a command for root to paste
        return Remainder(["a name that no account can have"], "sudo svc admin doctor")
    account = linux_account(user.name)
    if removal.is_begun(user):
        return Remainder(["the rest of its deletion"], delete)
    if user.provisioning != users.READY:
        return Remainder(_steps(user, account, host), command)
    if user.uid == 0 or (account is not None and account.pw_uid == user.uid):
        return DONE
    if account is None:
        return Remainder(["its deletion"], delete, "its Linux account is gone")
    note = f"its Linux account has uid {account.pw_uid} now; a new one inherits nothing from this account"
    return Remainder(["Linux account"], command, note)


def _steps(user: Account, account: pwd.struct_passwd | None, host: Host) -> list[str]:
    """The missing steps, in the order in which they are taken."""
    uid = account.pw_uid if account else None
    missing = {
        "Linux account": account is None or user.uid not in (None, uid),
        "home directory": account is None or not os.path.isdir(host.at(account.pw_dir)),
        "subordinate uids": not _has_range(user.name, uid, host.at("/etc/subuid")),
        "subordinate gids": not _has_range(user.name, uid, host.at("/etc/subgid")),
        "lingering": host.systemd and not os.path.exists(host.at(f"/var/lib/systemd/linger/{user.name}")),
        "enrolment": host.knows_enrolled
        and not any((entry.name, entry.uid) == (user.name, uid) for entry in host.enrolled),
        "administrator's mark (--superuser, if you want it)": bool(user.superuser)
        and host.knows_enrolled
        and not any(entry.name == user.name and entry.administrator for entry in host.enrolled),
        "password": user.password_hash is None,
    }
    return [step for step, is_missing in missing.items() if is_missing]


def _has_range(name: str, uid: int | None, path: str) -> bool:
    spans = (span for span in read_ranges(path) if span.owner in (name, str(uid)))
    return any(span.end - span.start >= SUBIDS for span in spans)
