"""Account provisioning: the root verbs that create and remove accounts.

Each runs as root in a forked child, which sends the reply. Every step can be repeated and
can be killed at any point; the next run continues from there. No step starts Podman, whose
pause process would keep this mount namespace, and none opens a path below a user's directory
as root.
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


class Request(NamedTuple):
    """The account to provision, and the enrolment list, which it is added to last."""

    host: Host
    name: str
    administrator: bool
    entries: dict[str, Entry]

    @property
    def account(self) -> Account:
        """The Linux account in its present state; raises Refusal."""
        return linux_account.get(self.name)


def ensure(host: Host, name: str, administrator: bool) -> dict[str, Any]:
    """Perform every step that is missing; a refusal begins with the name of its step."""
    refuse_system(name)
    created = not linux_account.exists(name)
    try:
        with changing(host.state_dir) as entries:  # one at a time: two would choose the same subordinate ids
            request = Request(host, name, administrator, entries)
            for step, perform in STEPS:
                perform_step(step, perform, request)
    except OSError as error:  # of the list itself, which is written after all steps
        raise failure(error, "enrolment list") from None
    account = request.account
    return {"name": name, "uid": account.uid, "home": account.home, "created": created}


def perform_step(step: str, perform: Callable[[Request], None], request: Request) -> None:
    """Perform one step; puts its name into a refusal."""
    try:
        perform(request)
    except OSError as error:
        raise failure(error, step) from None
    except Refusal as refusal:
        raise Refusal(refusal.code, f"{step}: {refusal.message}") from None


def forget(host: Host, name: str) -> dict[str, Any]:
    """Remove the account from the list; the Linux account and its files stay."""
    refuse_system(name)
    with changing(host.state_dir) as entries:
        was_enrolled = entries.pop(name, None) is not None
    return {"name": name, "was_enrolled": was_enrolled}


# --- the steps of ensure -------------------------------------------------------------


def enable_lingering(request: Request) -> None:
    """With systemd: start the user's service manager without a login, and wait for it."""
    if not request.host.systemd:
        return
    account = request.account
    require(["loginctl", "enable-linger", account.name], "is systemd-logind running?")
    deadline = time.monotonic() + LINGER_WAIT_S
    while not os.path.exists(f"{account.runtime_dir}/bus"):
        if time.monotonic() > deadline:
            raise Refusal(
                "failed",
                f"user@{account.uid} did not start in time; see `systemctl status user@{account.uid}`",
            )
        time.sleep(0.05)


def create_files(request: Request) -> None:
    """Create the file roots and the storage driver's setting, as the user."""
    account = request.account
    patterns = request.host.file_roots
    read_only = read_only_roots(patterns)  # the administrator creates these
    roots = [path for name, path in resolve_roots(patterns, account).items() if name not in read_only]
    if not linux_account.as_user(account, lambda: write_files(account, roots)):
        raise Refusal(
            "failed",
            f"{account.name} could not write {account.home} or a file root in time;"
            f" check its owner and the helper's log: ls -ld {account.home}",
        )


def write_files(account: Account, roots: list[str]) -> None:
    """As the user: create the file roots, and set the overlay driver unless Podman was used before.

    Podman trusts the home directory's owner, and the owner of a link to it.
    """
    for stat in (os.lstat, os.stat):
        if stat(account.home).st_uid not in (0, account.uid):
            raise PermissionError(f"{account.home} belongs to another account")
    for root in roots:
        os.makedirs(root, mode=0o700, exist_ok=True)
    storage = f"{account.home}/.config/containers/storage.conf"
    if os.path.lexists(storage) or os.path.lexists(f"{account.home}/.local/share/containers/storage"):
        return
    os.makedirs(os.path.dirname(storage), mode=0o700, exist_ok=True)
    atomic_file.replace(storage, STORAGE.encode(), draft=f"{storage}.svc")


def enrol(request: Request) -> None:
    """Add the account to the list, in place of former accounts of its name or uid."""
    name, uid, entries = request.name, request.account.uid, request.entries
    for other in [entry for entry in entries.values() if entry.uid == uid and entry.name != name]:
        account = resolve(other.name)
        if account is not None and account.uid == uid:
            raise Refusal("conflict", f"uid {uid} is enrolled as {other.name}; give {name} a uid of its own")
        log("the enrolment of a removed account is dropped", "warning", user=other.name, uid=uid)
        del entries[other.name]
    before = entries.get(name)
    if before is not None and before.uid != uid:
        log("an enrolled name has a new uid", "warning", user=name, uid=uid, before=before.uid)
    entries[name] = Entry(name, uid, request.administrator)


STEPS: tuple[tuple[str, Callable[[Request], None]], ...] = (
    ("Linux account", lambda request: linux_account.ensure(request.name)),
    ("home directory", lambda request: linux_account.ensure_home(request.account)),
    ("subordinate uids", lambda request: subids.ensure(request.account, "uid")),
    ("subordinate gids", lambda request: subids.ensure(request.account, "gid")),
    ("lingering", enable_lingering),
    ("file roots and storage driver", create_files),
    ("enrolment", enrol),  # last: the helper acts only for complete accounts
)

VERBS: dict[str, RootVerb] = {
    **RESIDENT,
    "account.ensure": lambda host, call: ensure(host, call.user or "", call.args["administrator"]),
    "account.forget": lambda host, call: forget(host, call.user or ""),
}
