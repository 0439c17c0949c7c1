"""Account provisioning: the root verbs that create and remove accounts.

Each runs in a forked child, as root, and sends the reply itself. Every step may
be repeated and may be killed at any point: the next run continues from what is
there. None starts Podman, whose pause process would keep this mount namespace,
and none opens a path below a user's directory as root.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from svc_helper import atomic_file
from svc_helper.provision import linux_account, subids
from svc_helper.provision.programs import require
from svc_helper.root.agents import Host, read_only_roots, resolve_roots
from svc_helper.root.check import resolve
from svc_helper.root.drop import Account
from svc_helper.root.enrolment import Entry, changing
from svc_helper.root.log import log
from svc_helper.root.verbs import RESIDENT, Refusal, RootVerb, failure, refuse_system

LINGER_WAIT_S = 10
STORAGE = '# Written by svc: without it the first Podman may choose vfs.\n[storage]\ndriver = "overlay"\n'


class Making(NamedTuple):
    """An account on its way to being whole, and the enrolment list that it comes on last."""

    host: Host
    name: str
    administrator: bool
    entries: dict[str, Entry]

    @property
    def account(self) -> Account:
        """The Linux account as it is now; raises Refusal."""
        return linux_account.get(self.name)


def ensure(host: Host, name: str, administrator: bool) -> dict[str, Any]:
    """Make the account whole, step by step, adopting what is there; a refusal says which step it was."""
    refuse_system(name)
    created = not linux_account.exists(name)
    try:
        with changing(host.state_dir) as entries:  # one at a time: two would choose the same subordinate ids
            making = Making(host, name, administrator, entries)
            for step, do in STEPS:
                take(step, do, making)
    except OSError as error:  # of the list's own file, which is written when all steps are done
        raise failure(error, "enrolment list") from None
    account = making.account
    return {"name": name, "uid": account.uid, "home": account.home, "created": created}


def take(step: str, do: Callable[[Making], None], making: Making) -> None:
    """Take one step; a refusal has its name."""
    try:
        do(making)
    except OSError as error:
        raise failure(error, step) from None
    except Refusal as refusal:
        raise Refusal(refusal.code, f"{step}: {refusal.message}") from None


def forget(host: Host, name: str) -> dict[str, Any]:
    """Enrol the account no more; the Linux account and its files stay."""
    refuse_system(name)
    with changing(host.state_dir) as entries:
        was_enrolled = entries.pop(name, None) is not None
    return {"name": name, "was_enrolled": was_enrolled}


# --- the steps of ensure -------------------------------------------------------------


def enable_lingering(making: Making) -> None:
    """With systemd: let the user's own service manager run without a login, and wait until it does."""
    if not making.host.systemd:
        return
    account = making.account
    require(["loginctl", "enable-linger", account.name], "is systemd-logind running?")
    until = time.monotonic() + LINGER_WAIT_S
    while not os.path.exists(f"{account.runtime_dir}/bus"):
        if time.monotonic() > until:
            raise Refusal("failed", f"see `systemctl status user@{account.uid}`: it did not start in time")
        time.sleep(0.05)


def make_files(making: Making) -> None:
    """Make the file roots and the storage driver's setting, as the user."""
    account = making.account
    patterns = making.host.file_roots
    kept = read_only_roots(patterns)  # the administrator makes these
    roots = [path for name, path in resolve_roots(patterns, account).items() if name not in kept]
    if not linux_account.as_user(account, lambda: write_files(account, roots)):
        raise Refusal(
            "failed",
            f"{account.name} cannot write {account.home} or a file root in time;"
            f" see whose it is and the log: ls -ld {account.home}",
        )


def write_files(account: Account, roots: list[str]) -> None:
    """As the user: the file roots, and overlay as the storage driver of a Podman never used before.

    Whose the home is, and the link to it, decides what Podman does for the account.
    """
    for look in (os.lstat, os.stat):
        if look(account.home).st_uid not in (0, account.uid):
            raise PermissionError(f"{account.home} is somebody else's")
    for root in roots:
        os.makedirs(root, mode=0o700, exist_ok=True)
    storage = f"{account.home}/.config/containers/storage.conf"
    if os.path.lexists(storage) or os.path.lexists(f"{account.home}/.local/share/containers/storage"):
        return
    os.makedirs(os.path.dirname(storage), mode=0o700, exist_ok=True)
    atomic_file.replace(storage, STORAGE.encode(), draft=f"{storage}.svc")


def enrol(making: Making) -> None:
    """Put the account on the list, whatever was said of its name or uid when these were somebody else's."""
    uid, entries = making.account.uid, making.entries
    for other in [entry for entry in entries.values() if entry.uid == uid and entry.name != making.name]:
        account = resolve(other.name)
        if account is not None and account.uid == uid:
            raise Refusal("conflict", f"uid {uid} is enrolled as {other.name}; give {making.name} its own")
        log("an entry of an account that is gone is dropped", "warning", user=other.name, uid=uid)
        del entries[other.name]
    before = entries.get(making.name)
    if before is not None and before.uid != uid:
        log("an account of this name was another's", "warning", user=making.name, uid=uid, before=before.uid)
    entries[making.name] = Entry(making.name, uid, making.administrator)


STEPS: tuple[tuple[str, Callable[[Making], None]], ...] = (
    ("Linux account", lambda making: linux_account.ensure(making.name)),
    ("home directory", lambda making: linux_account.ensure_home(making.account)),
    ("subordinate uids", lambda making: subids.ensure(making.account, "uid")),
    ("subordinate gids", lambda making: subids.ensure(making.account, "gid")),
    ("lingering", enable_lingering),
    ("file roots and storage driver", make_files),
    ("enrolment", enrol),  # last: nobody is acted for before all else is there
)

VERBS: dict[str, RootVerb] = {
    **RESIDENT,
    "account.ensure": lambda host, call: ensure(host, call.user or "", call.args["administrator"]),
    "account.forget": lambda host, call: forget(host, call.user or ""),
}
