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
from svc_helper.provision import leaving, linux_account, logins, registries, subids
from svc_helper.provision.enrolment import changing
from svc_helper.provision.programs import require
from svc_helper.provision.verbs import Refusal, RootVerb, failure, refuse_system
from svc_helper.root import runtime_dir
from svc_helper.root.agents import Host, read_only_roots, resolve_roots
from svc_helper.root.check import resolve
from svc_helper.root.drop import Account
from svc_helper.root.enrolment import Entry
from svc_helper.root.log import log

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

    @property
    def enrolled(self) -> list[Account]:
        """The Linux accounts of the list that still exist."""
        return [account for name in self.entries if (account := resolve(name)) is not None]


def ensure(host: Host, name: str, administrator: bool) -> dict[str, Any]:
    """Perform every step that is missing; a refusal begins with the name of its step."""
    refuse_system(name)
    created = not linux_account.exists(name)
    try:
        with changing(host.state_dir) as entries:  # one at a time: two would choose the same subordinate ids
            request = Request(host, name, administrator, entries)
            for step, perform in STEPS:
                perform_step(step, perform, request)
            logins.share(host.state_dir, entries.values())
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
        logins.share(host.state_dir, entries.values())
    return {"name": name, "was_enrolled": was_enrolled}


def mark(host: Host, name: str, administrator: bool) -> dict[str, Any]:
    """Set or clear the administrator mark of an enrolled account."""
    refuse_system(name)
    with changing(host.state_dir) as entries:
        if name not in entries:
            raise Refusal("not_found", f"{name} is not enrolled")
        entries[name] = entries[name]._replace(administrator=administrator)
    return {"name": name, "administrator": administrator}


# --- the steps of ensure -------------------------------------------------------------


def refuse_foreign_directory(request: Request) -> None:
    """Refuse to enrol an account whose runtime directory has another's files: they would act for this one."""
    account = request.account
    path = account.runtime_dir
    for entry in request.entries.values():
        found = resolve(entry.name) if entry.uid == account.uid else None
        if found is not None and found.uid == account.uid:
            return  # enrolled before: the helper looks at each start; under another name: refused below
    if not os.path.lexists(path) or runtime_dir.belongs_to(account):
        return
    if os.path.exists(f"{runtime_dir.LOGIND}/{account.uid}"):
        remedy = f"loginctl terminate-user {account.uid}"
    else:
        remedy = f"mv -T {path} {path}.former"
    raise Refusal(
        "conflict", f"{path} was not created for {account.name}; it may be a former account's: sudo {remedy}"
    )


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
    why = linux_account.failure_as_user(account, lambda: write_files(account, roots))
    if why:
        raise Refusal(
            "failed",
            f"{account.name} cannot write {account.home} or a file root: {why};"
            f" check its owner: ls -ld {account.home}",
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
    ("subordinate uids", lambda request: subids.ensure(request.account, "uid", request.enrolled)),
    ("subordinate gids", lambda request: subids.ensure(request.account, "gid", request.enrolled)),
    ("runtime directory", refuse_foreign_directory),
    ("lingering", enable_lingering),
    ("file roots and storage driver", create_files),
    ("enrolment", enrol),  # last: the helper acts only for complete accounts
)

VERBS: dict[str, RootVerb] = {
    "account.ensure": lambda host, call: ensure(host, call.user or "", call.args["administrator"]),
    "account.forget": lambda host, call: forget(host, call.user or ""),
    "account.clear": lambda host, call: leaving.clear(
        host, call.user or "", call.args["uid"], call.args["image_refs"]
    ),
    "account.move": lambda host, call: leaving.move(host, call.user or "", call.args["uid"]),
    "account.mark": lambda host, call: mark(host, call.user or "", call.args["administrator"]),
    "registries.login": lambda host, call: logins.login(host.state_dir, **call.args),
    "registries.logout": lambda host, call: logins.logout(host.state_dir, **call.args),
    "registries.write": lambda host, call: registries.write(host.state_dir, call.args["registries"]),
}
